//go:build !purego && !race

package packet

import "golang.org/x/sys/cpu"

// putFoldedCRC is putSeededCRC in assembly. n is a multiple of 4, and at least 16. Under the race detector putSeededCRC runs instead, since it
// doesn't see what assembly reads and writes.
//
//go:noescape
func putFoldedCRC(b *byte, n int)

// folds: this processor has what putFoldedCRC needs, as all but the first ones of this architecture have.
var folds = cpu.X86.HasSSSE3 && cpu.X86.HasPCLMULQDQ
