//go:build !long && race

package cnpdec

const mutants = 20_000
