//go:build !long && !race

package dataplane

// queueSeeds is how many runs TestQueuedFlowsStay makes.
const queueSeeds = 200
