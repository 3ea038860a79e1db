//go:build !race && long

package pairing

const eachScene = 1
