//go:build !long && race

package endpoint

const mutants = 20_000
