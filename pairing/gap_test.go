package pairing

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// Two requests in a row less than 2^16 PSNs ahead, in a pair that RDMA-CM has confirmed: more requests were lost before the gateway than usual, or
// the two are forged.

// behindGap is a pair that RDMA-CM has confirmed, after two such requests, and the PSN that its next request had before them.
func behindGap(t *testing.T, ahead uint32) (w *wire, next uint32) {
	w, next, port := paired(t, false)
	w.is(0, 200, 100, EvidenceCM)
	w.send(0, 200, packet.RCSendOnly, next+ahead, port)
	w.send(0, 200, packet.RCSendOnly, next+ahead+1, port)
	if w.usable(0) || w.workers[0].counts.Reuses != 0 {
		t.Fatalf("after the gap: %v", w.view(0, 200))
	}
	return w, next
}

// TestForgedGap: the flow is suspended until its peer flow has answered a request sent since at the old PSNs. Then the forged packets have no
// effect left.
func TestForgedGap(t *testing.T) {
	for _, again := range []uint32{0, 1, 3} { // gaps that are forged on top of the first one
		w, next := behindGap(t, 65_000)
		for i := range again {
			w.send(0, 200, packet.RCSendOnly, next+65_000*(i+2), 7)
			w.send(0, 200, packet.RCSendOnly, next+65_000*(i+2)+1, 7)
		}
		w.send(0, 200, packet.RCSendOnly, next, 7)
		w.is(0, 200, 0, 0)
		if w.usable(0) {
			t.Error("not answered, and not suspended")
		}
		w.send(1, 100, packet.RCAcknowledge, next, 7)
		w.send(0, 200, packet.RCSendOnly, next+1, 7)
		w.is(0, 200, 100, EvidenceCM)
		a := w.at(0, 200)
		if got := a.Sent(); got.High() != (next+1)&packet.PSNMask {
			t.Errorf("%d more gaps: the highest PSN is %d, want %d", again, got.High(), next+1)
		}
		w.talk(100, 200, next+2, 200, 7)
		w.is(0, 200, 100, EvidenceCM)
		w.is(1, 100, 200, EvidenceCM)
	}
}

// TestGapEnds: which requests and responses end the suspension after a gap, and what the highest PSN is then.
func TestGapEnds(t *testing.T) {
	const ahead = 1000
	for _, c := range []struct {
		name     string
		requests []uint32 // PSNs, from the one that was next
		ack      uint32
		then     uint32
		want     bool
		high     uint32
	}{
		{"answered behind the gap", nil, ahead + 1, ahead + 2, true, ahead + 2},
		{"answered before the gap", nil, packet.PSNMask, ahead + 2, false, 0},
		{"answered between", nil, 5, ahead + 2, false, 0},
		{"sent again, nothing new", []uint32{packet.PSNMask - 9}, packet.PSNMask, packet.PSNMask - 8, false, 0},
		{"goes on, answered before", []uint32{0}, packet.PSNMask, 1, false, 0},
		{"goes on after a loss", []uint32{maxGap - 1}, maxGap - 1, maxGap, true, maxGap},
		{"goes on after more loss", []uint32{maxGap}, maxGap, maxGap + 1, false, 0},
		{"goes on, answered far beyond", []uint32{0}, 500, 1, false, 0},
		{"goes on and back, answered", []uint32{0, 1, 2, 0}, 1, 1, false, 0},
		{"goes on and back and on, answered", []uint32{0, 1, 2, 0, 1, 2}, 1, 3, true, 3},
	} {
		w, next := behindGap(t, ahead)
		for _, psn := range c.requests {
			w.send(0, 200, packet.RCSendOnly, next+psn, 7)
		}
		w.send(1, 100, packet.RCAcknowledge, next+c.ack, 7)
		w.send(0, 200, packet.RCSendOnly, next+c.then, 7)
		n := w.flow(0, 200)
		if w.usable(0) != c.want || c.want && n.high != (next+c.high)&packet.PSNMask {
			t.Errorf("%s: %v, the highest PSN is %d, want %d", c.name, w.view(0, 200), n.high, (next+c.high)&packet.PSNMask)
		}
	}
}

// TestGapOfUC: nothing would end the suspension of a UC flow, so two packets after a gap end the record.
func TestGapOfUC(t *testing.T) {
	w := newWire(t)
	w.connect(100, 200)
	for i := range uint32(100) {
		w.send(0, 200, packet.UC|packet.RCSendOnly, psnB+i, 7)
		w.send(1, 100, packet.UC|packet.RCSendOnly, psnA+i, 7)
	}
	w.is(0, 200, 100, EvidenceCM)
	w.send(0, 200, packet.UC|packet.RCSendOnly, psnB+1000, 7)
	w.send(0, 200, packet.UC|packet.RCSendOnly, psnB+1001, 7)
	if n := w.workers[0].counts.Reuses; n != 1 {
		t.Errorf("%d records ended, want 1", n)
	}
}
