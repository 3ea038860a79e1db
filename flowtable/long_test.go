//go:build long

package flowtable

const (
	runsAScene = 26
	leastPairs = 1_000_000
)
