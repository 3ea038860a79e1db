//go:build !race && !long

package pairing

// eachScene: half of the scenes, and of each kind of traffic some.
const eachScene = 2
