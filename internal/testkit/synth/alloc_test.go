package synth

import "testing"

// TestNoAllocations: once all memory is there, an event and its headers cost none.
func TestNoAllocations(t *testing.T) {
	tr := New(Config{Messages: 1 << 30, Mix: Mix{1, 1, 1, 1, 1, 1}, Requesters: FromBoth, CE: .01,
		LossAfter: [2]float64{.01, .01}, Transports: Transports{RC: 3, UC: 1, UD: 1, XRC: 1}})
	for range 1 << 18 {
		tr.Next()
	}
	var head [HeadLen]byte
	n := testing.AllocsPerRun(10, func() {
		for range 1000 {
			e, ok := tr.Next()
			if !ok || Head(&e, head[:]) == 0 {
				t.Fatal("came to an end")
			}
		}
	})
	if n > 5 { // of 1,000 events: a queue may still grow a little
		t.Errorf("%v allocations in 1,000 events", n)
	}
}
