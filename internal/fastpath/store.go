package fastpath

import (
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// StoreSet stores from[i] in to[i] for each bit i of set, as Store64 does. One goroutine stores there, and others read.
func StoreSet(to []atomic.Uint64, from []uint64, set uint64) {
	n := min(len(to), len(from), 64)
	for set &= 1<<n - 1; set != 0; set &= set - 1 {
		i := bits.TrailingZeros64(set)
		Store64((*atomic.Int64)(unsafe.Pointer(&to[i])), int64(from[i]))
	}
}
