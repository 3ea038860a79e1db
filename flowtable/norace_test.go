//go:build !race

package flowtable

// Size of the longer tests.
const (
	ownerRounds = 300_000
	fillFlows   = 100_000
)
