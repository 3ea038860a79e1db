//go:build !long

package dataplane_test

// See the longer mode.
const (
	fairDraws   = 100
	fairSenders = 100
	fairLarge   = 100
	fairWrong   = 0
)
