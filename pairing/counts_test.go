//go:build !long

package pairing

var connectionCounts = []int{2000, 16_000, 100_000}

const mostConnections = 16_000 // of mixes other than the first
