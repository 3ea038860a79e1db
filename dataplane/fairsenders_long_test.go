//go:build long

package dataplane_test

// fairDraws and fairSenders are how many crowds TestFairBetweenSenders draws, and how many senders a crowd has at most; in fairWrong of them a sender may be asked below half
// of its share, or not above 1.25 of it: F is lower than the share for a time where hundreds of senders begin at once (13 of the first 400).
const (
	fairDraws   = 2_000
	fairSenders = 1_000
	fairWrong   = fairDraws / 20
)
