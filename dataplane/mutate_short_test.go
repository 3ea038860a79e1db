//go:build !long && !race

package dataplane_test

// mutants is how many frames TestMutants sends: fewer under the race detector, ten million with the tag long.
const mutants = 200_000
