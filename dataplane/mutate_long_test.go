//go:build long

package dataplane_test

const mutants = 10_000_000

const losslessFrames = 1500
