package fastpath_test

import (
	"sync/atomic"
	"testing"

	"github.com/cnpgate/cnpgate/internal/fastpath"
)

// FuzzStore64: it stores one word, and nothing beside it.
func FuzzStore64(f *testing.F) {
	f.Add(int64(1))
	f.Add(int64(-1))
	f.Add(int64(1) << 62)
	f.Fuzz(func(t *testing.T, v int64) {
		var got, want [3]atomic.Int64
		want[1].Store(v)
		if fastpath.Store64(&got[1], v); got[0].Load() != 0 || got[1].Load() != want[1].Load() || got[2].Load() != 0 {
			t.Errorf("stored %d: %d, %d, %d", v, got[0].Load(), got[1].Load(), got[2].Load())
		}
	})
}

// FuzzStoreSet: it stores the words of the set, and no others.
func FuzzStoreSet(f *testing.F) {
	f.Add(uint64(0), uint64(1), 64)
	f.Add(uint64(1)<<63|5, uint64(3), 64)
	f.Add(^uint64(0), uint64(9), 7)
	f.Fuzz(func(t *testing.T, set, first uint64, n int) {
		n = min(max(n, 0), 70)
		from := make([]uint64, n)
		for i := range from {
			from[i] = first * uint64(2*i+1)
		}
		to := make([]atomic.Uint64, n)
		fastpath.StoreSet(to, from, set)
		for i := range to {
			want := uint64(0)
			if i < 64 && set>>i&1 != 0 {
				want = from[i]
			}
			if to[i].Load() != want {
				t.Fatalf("%#x: word %d is %d, want %d", set, i, to[i].Load(), want)
			}
		}
	})
}
