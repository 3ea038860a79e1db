//go:build long

package pairing

const (
	runsAScene    = 26
	leastPairs    = 2_000_000
	eachPeerScene = 1
)
