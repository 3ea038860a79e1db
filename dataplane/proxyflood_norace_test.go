//go:build !race

package dataplane_test

// floodSeconds is how long the flood of TestProxyFlood lasts: 100,000 notifications each second.
const floodSeconds = 10
