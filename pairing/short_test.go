//go:build !long

package pairing

const (
	runsAScene    = 1
	leastPairs    = 12_000
	eachPeerScene = 12 // of TestPeersNeverWrong
)
