//go:build !long && !race

package dataplane_test

// mutants is how many frames TestMutants sends: fewer under the race detector, ten million with the tag long.
const mutants = 50_000

// losslessFrames is how many frames TestLossless sends at most: fewer under the race detector.
const losslessFrames = 1500
