//go:build long

package flowtable

const (
	runsAScene = 20
	leastPairs = 1_000_000
)
