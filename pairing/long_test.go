//go:build long

package pairing

const (
	runsAScene    = 26
	leastPairs    = 1_000_000
	eachPeerScene = 1
)
