package pairing

import (
	"encoding/binary"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// A READ request uses as many PSNs as its response has packets. Only the next request shows how many these were.

// read has a side send a READ request of some bytes.
func (w *wire) read(side int, qp, psn uint32, port uint16, bytes uint32) {
	b := make([]byte, 64)
	binary.BigEndian.PutUint32(b[12+12:], bytes) // RETH: 8 of address, 4 of key, 4 of length
	w.frame(side, &packet.Parsed{Kind: packet.RoCEv2, Opcode: packet.RCReadRequest, DestQP: qp, PSN: psn & packet.PSNMask, SrcPort: port}, b)
}

// TestLargeREADs: READs of any length, any path MTU, and as many as a NIC sends at once, don't affect a pair.
func TestLargeREADs(t *testing.T) {
	for _, c := range []struct {
		name            string
		mib, mtu, reads uint32 // MiB a READ, bytes a packet, READs sent at once
	}{
		{"64 MiB", 64, 4096, 1}, {"256 MiB", 256, 4096, 1}, {"64 MiB, two at once", 64, 4096, 2},
		{"16 MiB, small packets, 16 at once", 16, 1024, 16},
	} {
		for _, byPort := range []bool{true, false} {
			w := newWire(t)
			qp, source, psn, port := uint32(200), uint32(100), uint32(1000), uint16(52769)
			why := EvidencePort
			if byPort {
				w.talk(source, qp, psn, 100, port)
				psn += 100
			} else {
				for k := range uint32(1000) {
					w.lockstep(16, k)
				}
				qp, source, psn, port, why = 1000, 5000, randomStart(0)+1000, 50000, EvidencePSN
			}
			w.is(0, qp, source, why)
			packets := c.mib << 20 / c.mtu
			for range 2 {
				w.read(0, qp, psn, port, 4)
				w.read(0, qp, psn+1, port, c.mib<<20)
				w.send(1, source, packet.RCReadRespOnly, psn, port)
				for n := range c.reads - 1 {
					w.read(0, qp, psn+1+(n+1)*packets, port, c.mib<<20)
				}
				w.is(0, qp, source, why)
				for n := range c.reads * packets {
					w.send(1, source, packet.RCReadRespMiddle, psn+1+n, port)
					if n%1024 == 0 {
						w.is(1, source, qp, why)
					}
				}
				psn += 1 + c.reads*packets
			}
			w.is(0, qp, source, why)
			w.is(1, source, qp, why)
			if n := w.workers[0].counts.Contradictions + w.workers[1].counts.Contradictions; n > 0 {
				t.Errorf("%s, by port %v: %d contradictions", c.name, byPort, n)
			}
		}
	}
}

// TestREADEnds: which PSNs a flow's requests have used, after READs and what follows them.
func TestREADEnds(t *testing.T) {
	const begin, bytes, span = 1000, 1 << 18, 1<<10 - 1
	type step struct {
		psn  uint32
		read bool
	}
	for _, c := range []struct {
		name        string
		steps       []step
		first, high uint32
	}{
		{"a READ", []step{{begin, true}}, begin, begin + span},
		{"the next request", []step{{begin, true}, {begin + 64, false}}, begin, begin + 64},
		{"the next READ", []step{{begin, true}, {begin + 64, true}}, begin, begin + 64 + span},
		{"one request more", []step{{begin, true}, {begin + 64, true}, {begin + 128, false}}, begin, begin + 128},
		{"sent again from the first one on", []step{{begin, true}, {begin + 64, true}, {begin, true}, {begin + 64, true}}, begin, begin + 64 + span},
		{"one before it, late", []step{{begin, false}, {begin + 2, true}, {begin + 1, false}}, begin, begin + 2 + span},
		{"goes back behind a request", []step{{begin, false}, {begin + 1, true}, {begin + 600, false}, {begin + 1, true}}, begin, begin + 600},
	} {
		w := newWire(t)
		for _, s := range c.steps {
			if s.read {
				w.read(0, 200, s.psn, 7, bytes)
			} else {
				w.send(0, 200, packet.RCSendOnly, s.psn, 7)
			}
		}
		a := w.at(0, 200)
		if got := a.Sent(); got.First() != c.first || got.High() != c.high {
			t.Errorf("%s: %d to %d, want %d to %d", c.name, got.First(), got.High(), c.first, c.high)
		}
	}
}

// TestForgedREAD: the PSNs that a READ expected adds to a flow's range stay until the flow has passed them, and don't shorten how far
// the flow may go back.
func TestForgedREAD(t *testing.T) {
	w := newWire(t)
	w.talk(100, 200, 1000, 500, 52769)
	w.read(0, 200, 1499+maxGap, 52769, 1<<31)
	a := w.at(0, 200)
	if got := a.Sent(); got.First() != 1000 || got.Width() <= maxSpan {
		t.Errorf("PSNs %d to %d", got.First(), got.High())
	}
	w.talk(100, 200, 1500, maxGap+coarse, 52769)
	if got := a.Sent(); got.High() > 1500+maxGap+coarse {
		t.Errorf("%d PSNs later the highest PSN is %d", maxGap+coarse, got.High())
	}
	w.send(0, 200, packet.RCSendOnly, 1000, 52769)
	w.is(0, 200, 100, EvidencePort)
	w.is(1, 100, 200, EvidencePort)
}

// TestSilenceAfterREADs: a flow of READs whose peer flow is silent is suspended, too: after 16 times the PSNs of one READ, but of 2^15 at most.
func TestSilenceAfterREADs(t *testing.T) {
	for _, c := range []struct{ read, least, most int }{{1 << 14, 16 << 14, 18 << 14}, {1 << 15, 16 << 15, 18 << 15}, {1 << 16, 16 << 15, 19 << 15}} {
		w, psn, port := paired(t, true)
		sent := 0
		for w.usable(0) && sent < 1<<21 {
			w.read(0, 200, psn, port, 1<<31)
			psn, sent = psn+uint32(c.read), sent+c.read
		}
		if sent <= c.least || sent > c.most {
			t.Errorf("READs of %d PSNs: suspended after %d, want %d to %d", c.read, sent, c.least, c.most)
		}
	}
}
