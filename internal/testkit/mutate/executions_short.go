//go:build !long && !race

package mutate

// Executions is how many mutants a fuzz target of a codec gets: fewer under the race detector, many more with the tag long.
const Executions = 100_000
