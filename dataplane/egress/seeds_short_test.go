//go:build !long && !race

package egress

// queueSeeds is how many runs TestSharesOfLiveFlows makes.
const queueSeeds = 40

// lineTime is how many nanoseconds TestLineHoldsRate simulates of a line of 10 Gbit/s or more.
const lineTime = 100_000_000
