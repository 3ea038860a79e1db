//go:build long

package cnpdec

const mutants = 25_000_000
