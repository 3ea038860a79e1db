//go:build !race

package flowtable

// How much the longer tests do.
const (
	ownerRounds = 300_000
	fillFlows   = 100_000
)
