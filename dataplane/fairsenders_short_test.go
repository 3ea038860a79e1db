//go:build !long

package dataplane_test

// fairDraws and fairSenders are how many crowds TestFairBetweenSenders draws, and how many senders a crowd has at most.
const (
	fairDraws   = 100
	fairSenders = 200
)
