//go:build long

package dataplane

// queueSeeds is how many runs TestSharesOfLiveFlows makes.
const queueSeeds = 2000
