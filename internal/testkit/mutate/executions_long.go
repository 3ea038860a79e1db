//go:build long

package mutate

// Executions is 25 million.
const Executions = 25_000_000
