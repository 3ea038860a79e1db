//go:build !race

package flowtable

const ownerRounds = 300_000
