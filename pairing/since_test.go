package pairing

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// TestSince: Since is the time of the first packet after the answer changed, whatever changed it, and stays until the answer changes again.
// An Unknown answer has none, and its flow doesn't touch the memory for it.
func TestSince(t *testing.T) {
	w := newWire(t)
	request := func() int64 {
		w.send(0, 200, packet.RCSendOnly, 5, 52769)
		return w.now
	}
	want := func(when string, since int64) {
		t.Helper()
		if got := w.workers[0].Describe(w.find(0, 200)).Since; got != since {
			t.Errorf("%s: since %d, want %d", when, got, since)
		}
	}
	request()
	want("after the first packet", 0)
	request()
	want("after the second packet", 0)
	if since := w.workers[0].since[w.find(0, 200)]; since != 0 {
		t.Errorf("a flow without a source QP has used the memory for it: %d", since)
	}
	m, err := NewQPMap([]QPPair{{Source: alice, Destination: bob, SourceQP: 100, DestinationQP: 200}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	w.workers[0].SetStatic(m)
	w.sweep()
	want("confirmed by the map, before the next packet", 0)
	confirmed := request()
	want("confirmed by the map", confirmed)
	request()
	want("still confirmed", confirmed)
	w.workers[0].SetStatic(nil)
	w.sweep()
	want("withdrawn, before the next packet", 0)
	request()
	want("unknown again", 0)
	w.workers[0].SetStatic(m)
	w.sweep()
	want("confirmed again, before the next packet", 0)
	again := request()
	want("confirmed again", again)
}
