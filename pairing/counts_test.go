//go:build !long

package pairing

var connectionCounts = []int{2000, 30_000, 100_000}

const mostConnections = 30_000 // of mixes other than the first
