//go:build !long

package pairing

const (
	runsAScene    = 1
	leastPairs    = 15_000
	eachPeerScene = 12 // of TestPeersNeverWrong
)
