//go:build long

package dataplane

// queueSeeds is how many runs TestQueuedFlowsStay makes.
const queueSeeds = 2000
