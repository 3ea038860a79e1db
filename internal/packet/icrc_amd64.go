//go:build !purego && !race

package packet

import (
	"math/bits"

	"golang.org/x/sys/cpu"
)

// putFoldedCRC is putSeededCRC in assembly. n is a multiple of 4, from foldLeast to foldMost. Under the race detector putSeededCRC runs instead, since it
// doesn't see what assembly reads and writes.
//
//go:noescape
func putFoldedCRC(b *byte, n int)

// folds: this processor has what putFoldedCRC needs, as all but the first ones of this architecture have.
var folds = cpu.X86.HasSSSE3 && cpu.X86.HasPCLMULQDQ

// foldTable multiplies 16 octets with n blocks behind them by x^128n: x^(128n+32) mod P for the first eight octets, x^(128n-32) mod P for the others, at n-1.
var foldTable = func() (t [foldMost / 16][2]uint64) { //nolint:unused // icrc_amd64.s reads it
	power := uint32(1 << 31) // x^0, the highest power in the lowest bit
	for n := range 32 + 128*len(t) {
		if n%128 == 96 {
			t[n/128][1] = uint64(power) << 1
		}
		if n%128 == 32 && n > 32 {
			t[n/128-1][0] = uint64(power) << 1
		}
		power = power>>1 ^ power&1*bits.Reverse32(0x04c11db7)
	}
	t[len(t)-1][0] = uint64(power) << 1
	return t
}()
