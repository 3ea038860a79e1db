//go:build !long && !race

package endpoint

// mutants is how many inputs each fuzz target gets from the mutator: fewer under the race detector, many more with the tag long.
const mutants = 50_000
