//go:build !long && race

package dataplane

// queueSeeds is how many runs TestSharesOfLiveFlows makes.
const queueSeeds = 12
