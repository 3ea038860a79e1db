//go:build !long && !race

// Package effort says how thorough a test is to be: one of its constants is 1 and the others are 0, so that a test's size is a constant such as
// 40*effort.Short + 12*effort.Race + 2000*effort.Long.
package effort

// Short is 1 in the default run, Race under the race detector, and Long with the tag long.
const Short, Race, Long = 1, 0, 0
