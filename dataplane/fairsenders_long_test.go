//go:build long

package dataplane_test

// fairDraws is how many crowds TestFairBetweenSenders draws, fairSenders how many senders a crowd has at most, but for one in fairLarge: these have up to 10,000.
// In fairWrong of them a bound by the fair share of the line may be exceeded: where F is far from it, as thousands of senders begin at once (4 of the first 966).
const (
	fairDraws   = 10_000
	fairSenders = 30
	fairLarge   = 100
	fairWrong   = fairDraws / 50
)
