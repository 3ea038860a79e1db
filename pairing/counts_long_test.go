//go:build long

package pairing

var connectionCounts = []int{2000, 30_000, 100_000, 1_000_000}

const mostConnections = 1_000_000
