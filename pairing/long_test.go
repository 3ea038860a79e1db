//go:build long

package pairing

const (
	runsAScene = 22
	leastPairs = 1_000_000
)
