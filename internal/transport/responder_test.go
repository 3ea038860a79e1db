package transport

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// take shows a responder a request of one packet.
func take(r *Responder, now int64, psn uint32, op Op) {
	r.Request(now, &Request{PSN: psn, Op: op, Last: true, AckReq: true})
}

func responder(c Config) (r *Responder, n *Counters) {
	c.MTU = 64
	r, n = new(Responder), new(Counters)
	r.Start(&c, n, RC, 100)
	return r, n
}

// said returns the acknowledgement that is due, as syndrome and PSN; 0 and 0 if there is none.
func said(r *Responder) (syndrome uint8, psn uint32) {
	if !r.Acknowledges() {
		return 0, 0
	}
	p := r.Acknowledgement()
	return p.AETH.Syndrome, p.PSN
}

// TestRefuses: which requests a responder refuses, and how often.
func TestRefuses(t *testing.T) {
	for _, c := range []struct {
		name     string
		interval int64
		psns     []uint32 // one each 1000 ns
		want     []uint32 // PSN of the NAK, or of the ACK that follows; 0: nothing
	}{
		{"once a gap", 0, []uint32{101, 102, 103, 100}, []uint32{100, 0, 0, 100}},
		{"again after the interval", 2000, []uint32{101, 102, 103, 104}, []uint32{100, 0, 100, 0}},
		{"the next gap", 0, []uint32{101, 100, 102}, []uint32{100, 100, 101}},
		{"a duplicate", 0, []uint32{100, 100, 99}, []uint32{100, 100, 100}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, _ := responder(Config{NAKInterval: c.interval})
			for i, psn := range c.psns {
				take(r, int64(i)*1000, psn, Write)
				if _, got := said(r); got != c.want[i] {
					t.Errorf("after PSN %d: says %d, want %d", psn, got, c.want[i])
				}
			}
		})
	}
}

// TestGapsAreReported: with SelectiveRepeat, a NAK for the second gap follows when the first one is closed.
func TestGapsAreReported(t *testing.T) {
	r, _ := responder(Config{SelectiveRepeat: true})
	for _, c := range []struct{ psn, syndrome, said uint32 }{
		{101, SyndromeNAK, 100}, {103, 0, 0}, {100, SyndromeNAK, 102}, {102, SyndromeACK, 103},
	} {
		take(r, 0, c.psn, Write)
		if syndrome, psn := said(r); uint32(syndrome) != c.syndrome || psn != c.said {
			t.Errorf("after PSN %d: %#x of %d, want %#x of %d", c.psn, syndrome, psn, c.syndrome, c.said)
		}
	}
}

// TestReadsAreNotKept: even with SelectiveRepeat, a READ after a gap must be repeated.
func TestReadsAreNotKept(t *testing.T) {
	r, _ := responder(Config{SelectiveRepeat: true})
	take(r, 0, 101, Read)
	take(r, 0, 100, Write)
	if !r.Expects(101) || r.Answers() {
		t.Error("kept")
	}
}

// TestCoalesces: an acknowledgement answers several requests, or those that there are when it is flushed.
func TestCoalesces(t *testing.T) {
	r, _ := responder(Config{Coalesce: 3})
	r.Flush()
	for i, want := range []uint32{0, 0, 102, 0} {
		take(r, 0, 100+uint32(i), Write)
		if _, psn := said(r); psn != want || r.Coalescing() != (want == 0) {
			t.Errorf("after request %d: says %d, want %d; others wait: %v", i, psn, want, r.Coalescing())
		}
	}
	r.Flush()
	if _, psn := said(r); psn != 103 || r.Coalescing() {
		t.Errorf("flushed: says %d", psn)
	}
	r.Request(0, &Request{PSN: 104, Op: Write})
	if r.Flush(); r.Acknowledges() || !r.Expects(105) {
		t.Error("a request that asks for no acknowledgement gets one, or isn't taken")
	}
}

// TestAnswersFirst: an acknowledgement or a NAK waits for the responses before it, whose number is bounded.
func TestAnswersFirst(t *testing.T) {
	r, n := responder(Config{})
	take(r, 0, 100, Atomic)
	take(r, 0, 102, Write)
	for range 2 * maxJobs {
		take(r, 0, 100, Atomic)
	}
	if n.ReadsDropped != maxJobs+1 {
		t.Errorf("%d dropped, want %d", n.ReadsDropped, maxJobs+1)
	}
	for range maxJobs {
		if r.Acknowledges() || r.Answer().PSN != 100 {
			t.Fatal("not in order")
		}
	}
	if syndrome, psn := said(r); syndrome != SyndromeNAK || psn != 101 || r.Answers() {
		t.Errorf("%#x of %d", syndrome, psn)
	}
}

// TestHeldBehindRead: with SelectiveRepeat, packets after a gap and after a READ are accepted once the READ has been. They leave nothing
// behind that could be mistaken for a later PSN.
func TestHeldBehindRead(t *testing.T) {
	r, _ := responder(Config{SelectiveRepeat: true})
	read := func(psn uint32) { r.Request(0, &Request{PSN: psn, Op: Read, Bytes: 3 * 64, Last: true}) }
	answered := func() {
		for r.Answers() {
			r.Answer()
		}
	}
	read(101) // takes the PSNs 101 to 103
	take(r, 0, 104, Write)
	if syndrome, psn := said(r); syndrome != SyndromeNAK || psn != 100 {
		t.Fatalf("%#x of %d, want a NAK of 100", syndrome, psn)
	}
	take(r, 0, 100, Write)
	if syndrome, psn := said(r); syndrome != SyndromeNAK || psn != 101 {
		t.Fatalf("%#x of %d, want a NAK of 101", syndrome, psn)
	}
	read(101)
	answered()
	if syndrome, psn := said(r); syndrome != SyndromeACK || psn != 104 {
		t.Errorf("%#x of %d, want an ACK of 104, which is here already", syndrome, psn)
	}
	take(r, 0, 105, Write)
	if syndrome, psn := said(r); syndrome != SyndromeACK || psn != 105 {
		t.Errorf("%#x of %d, want an ACK of 105", syndrome, psn)
	}
	if r.held.count != 0 {
		t.Errorf("%d packets are left over", r.held.count)
	}
}

// TestHeldInsideRead: a packet that claims a PSN which a READ then takes is forgotten.
func TestHeldInsideRead(t *testing.T) {
	r, _ := responder(Config{SelectiveRepeat: true})
	take(r, 0, 102, Write)
	r.Request(0, &Request{PSN: 100, Op: Read, Bytes: 3 * 64, Last: true})
	if r.held.count != 0 {
		t.Errorf("%d packets are left over", r.held.count)
	}
	for psn := uint32(103); psn < 103+HeldPSNs; psn++ {
		if psn != 102+HeldPSNs {
			take(r, 0, psn&packet.PSNMask, Write)
		}
	}
	if got := (uint32(r.expect)) & packet.PSNMask; got != 102+HeldPSNs {
		t.Errorf("expects PSN %d, but %d never came", got, 102+HeldPSNs)
	}
}
