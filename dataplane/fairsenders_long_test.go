//go:build long

package dataplane_test

// fairDraws is how many crowds TestFairBetweenSenders draws, fairSenders how many senders a crowd has at most, but for one in fairLarge: these have up to 10,000.
const (
	fairDraws   = 10_000
	fairSenders = 30
	fairLarge   = 100
)
