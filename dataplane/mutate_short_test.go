//go:build !long

package dataplane_test

// mutants is how many frames TestMutants sends; ten million with the tag long.
const mutants = 200_000
