//go:build !long && race

package effort

const Short, Race, Long = 0, 1, 0
