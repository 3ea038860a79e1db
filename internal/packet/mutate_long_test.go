//go:build long

package packet

const mutants = 25_000_000
