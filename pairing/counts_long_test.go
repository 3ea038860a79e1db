//go:build long

package pairing

var connectionCounts = []int{2000, 16_000, 100_000, 1_000_000}

const mostConnections = 1_000_000
