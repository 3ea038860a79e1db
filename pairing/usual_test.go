//go:build !race && !long

package pairing

// eachScene: a sixth of the scenes, and of each kind of traffic some.
const eachScene = 6
