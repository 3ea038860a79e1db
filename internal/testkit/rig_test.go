package testkit

import (
	"runtime"
	"sync/atomic"
	"testing"
)

// TestReleasedOnce closes Rigs while the garbage collector runs: the memory of one is never released a second time, when another one has its addresses.
func TestReleasedOnce(t *testing.T) {
	var done atomic.Bool
	defer done.Store(true)
	go func() {
		for !done.Load() {
			runtime.GC()
		}
	}()
	for range 500 {
		r := New(t, Setup{Frames: 1 << 14, Buffers: 256})
		r.Inject(t, 0, make([]byte, 64))
		r.Settle()
		r.Drain()
		r.Close(t)
	}
}
