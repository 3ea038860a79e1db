//go:build long

package endpoint

const mutants = 10_000_000
