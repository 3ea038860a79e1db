//go:build long

package egress

// queueSeeds is how many runs TestSharesOfLiveFlows makes.
const queueSeeds = 2000

// lineTime is how many nanoseconds TestLineHoldsRate simulates of a line of 10 Gbit/s or more.
const lineTime = 1_000_000_000
