//go:build !long

package flowtable

const (
	runsAScene = 1
	leastPairs = 10_000
)
