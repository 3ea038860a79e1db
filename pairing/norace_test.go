//go:build !race

package pairing

const eachScene = 1
