//go:build long

package interleave_test

// long: the mutants run, too.
const long = true
