//go:build !long && !race

package replay_test

// drawnCaptures is how many captures TestHealthOfDrawn draws.
const drawnCaptures = 500
