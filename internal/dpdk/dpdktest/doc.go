// Package dpdktest has what tests and benchmarks of internal/dpdk need and the gateway doesn't: ports whose far end is in the caller's
// hands, and the C code that cuts large packets, by itself. It lies here, and not in internal/testkit, as C stays below internal/dpdk.
//
// The build tag nodpdk leaves everything but this comment out.
package dpdktest
