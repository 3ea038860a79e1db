//go:build !nodpdk

package dpdk

// #include <rte_version.h>
import "C"

// Version is the name and version of the DPDK in use.
func Version() string { return C.GoString(C.rte_version()) }
