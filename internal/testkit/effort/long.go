//go:build long

package effort

const Short, Race, Long = 0, 0, 1
