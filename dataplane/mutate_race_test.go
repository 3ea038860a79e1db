//go:build !long && race

package dataplane_test

const mutants = 50_000

const losslessFrames = 300
