//go:build !long && race

package mutate

// Executions is 20,000.
const Executions = 20_000
