package notify

import (
	"runtime"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// TestHistory: a reader gets the latest records in their order, each once, and the numbers tell how many it missed.
func TestHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const size = 8
		h := newHistory(make([]byte, historySize(size)), size)
		written, at, to := uint64(0), uint64(0), make([]NotificationRecord, rapid.IntRange(1, 2*size).Draw(t, "space"))
		for range rapid.IntRange(1, 20).Draw(t, "rounds") {
			for range rapid.IntRange(0, 3*size).Draw(t, "records") {
				r := h.record()
				r.FlowBytes = 10 * written
				if written++; rapid.Bool().Draw(t, "burst ends") {
					h.Publish()
				}
			}
			h.Publish()
			n, next := h.Read(at, to)
			oldest := max(at, written-min(written, size))
			if want := min(uint64(len(to)), written-oldest); uint64(n) != want || next != oldest+want {
				t.Fatalf("from %d of %d: %d records, then %d, expected %d from %d", at, written, n, next, want, oldest)
			}
			for i, r := range to[:n] {
				if r.Number != oldest+uint64(i) || r.FlowBytes != 10*r.Number {
					t.Fatalf("record %d is %d with %d", oldest+uint64(i), r.Number, r.FlowBytes)
				}
			}
			at = next
		}
	})
}

// TestHistoryHeldSlot: a record whose slot is being read is dropped, and the one before stays whole; the worker goes on.
func TestHistoryHeldSlot(t *testing.T) {
	h := newHistory(make([]byte, historySize(2)), 2)
	write := func() bool {
		r := h.record()
		h.Publish()
		return r != nil
	}
	write()
	write()
	h.slots[0].readers.Add(2)
	if write() || h.slots[0].Number != 0 {
		t.Error("a record was written over one that is being read")
	}
	h.slots[0].readers.Store(0)
	if !write() {
		t.Error("the slot after that can't be written")
	}
	var to [4]NotificationRecord
	if n, next := h.Read(0, to[:]); n != 1 || next != 4 || to[0].Number != 3 {
		t.Errorf("%d records, the first %d, then %d; expected record 3 of 4", n, to[0].Number, next)
	}
	h.record()
	if n, next := h.Read(4, to[:]); n != 0 || next != 4 {
		t.Errorf("%d records while one is being written, then %d", n, next)
	}
	if n, next := h.Read(3, to[:]); n != 0 || next != 4 {
		t.Errorf("%d records whose slots are claimed, then %d", n, next)
	}
}

// TestHistoryReaders: readers never see a record that is half written, whatever the worker does meanwhile; the race detector looks on.
func TestHistoryReaders(t *testing.T) {
	const records, size = 20_000, 16
	h := newHistory(make([]byte, historySize(size)), size)
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			var to [size]NotificationRecord
			for at, n := uint64(0), 0; at < records; runtime.Gosched() {
				n, at = h.Read(at, to[:])
				for i := range to[:n] {
					r := &to[i]
					if r.FlowBytes != r.Number || r.Queued != r.Number || r.Frame[recordedBytes-1] != byte(r.Number) {
						t.Errorf("record %d has %d, %d, %d", r.Number, r.FlowBytes, r.Queued, r.Frame[recordedBytes-1])
						return
					}
				}
			}
		})
	}
	for n := range uint64(records) {
		if r := h.record(); r != nil {
			r.FlowBytes, r.Frame[recordedBytes-1], r.Queued = n, byte(n), n
		}
		if n%3 == 0 {
			h.Publish()
		}
		if n%64 == 0 {
			runtime.Gosched()
		}
	}
	h.Publish()
	readers.Wait()
}
