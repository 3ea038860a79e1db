//go:build race

package pairing

// eachScene: the race detector makes scenes ten times slower, so it sees each twelfth.
const eachScene = 12
