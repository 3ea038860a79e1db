package fastpath

import (
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// StoreSet stores from[i] in to[i] for each bit i of set. One goroutine stores there, and others read.
func StoreSet(to []atomic.Uint64, from []uint64, set uint64) {
	n := min(len(to), len(from), 64)
	if set &= 1<<n - 1; set != 0 {
		storeSet(&to[0], &from[0], set)
	}
}

// StoreSetGo is the specification of storeSet: to and from are the first elements of arrays with an element for each bit of set.
func StoreSetGo(to *atomic.Uint64, from *uint64, set uint64) {
	for ; set != 0; set &= set - 1 {
		at := bits.TrailingZeros64(set) * 8
		(*atomic.Uint64)(unsafe.Add(unsafe.Pointer(to), at)).Store(*(*uint64)(unsafe.Add(unsafe.Pointer(from), at)))
	}
}
