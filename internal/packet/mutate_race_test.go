//go:build !long && race

package packet

const mutants = 20_000
