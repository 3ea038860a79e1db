package pairing

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// paired is a confirmed connection between QPs 100 and 200, its next PSN, and its UDP port, which is its own or shared.
func paired(t *testing.T, ownPort bool) (w *wire, next uint32, port uint16) {
	w, port = newWire(t), 7
	if ownPort {
		port = 52769
	} else {
		w.connect(100, 200)
	}
	w.talk(100, 200, psnB, 100, port)
	if !w.view(0, 200).Usable() || !w.view(1, 100).Usable() {
		t.Fatal("not paired")
	}
	return w, psnB + 100, port
}

func (w *wire) usable(side int) bool {
	return w.view(side, [2]uint32{200, 100}[side]).Usable()
}

// TestOneOddPacket: the first packet unexpected, and the last one expected. A second one ends the pair only if both go together.
func TestOneOddPacket(t *testing.T) {
	const far = 0x700000
	for _, c := range []struct {
		name       string
		side       int
		op         packet.Opcode
		psn        uint32 // from the next one on
		other      uint16 // added to the port
		unexpected bool
		then       uint32
		thenOther  uint16
		ends       bool
	}{
		{"a gap", 0, packet.RCSendOnly, 63, 0, false, 64, 0, false},
		{"a wide gap", 0, packet.RCSendOnly, 64, 0, true, 65, 0, true},
		{"before the first", 0, packet.RCSendOnly, packet.PSNMask + 1 - 163, 0, false, 0, 0, false},
		{"long before the first", 0, packet.RCSendOnly, packet.PSNMask + 1 - 164, 0, true, packet.PSNMask + 1 - 165, 0, true},
		{"far, near each other", 0, packet.RCSendOnly, far, 0, true, far + 1024, 0, true},
		{"far, near each other, back", 0, packet.RCSendOnly, far, 0, true, far - 1024, 0, true},
		{"far, and from each other", 0, packet.RCSendOnly, far, 0, true, far + 1025, 0, false},
		{"far, with two ports", 0, packet.RCSendOnly, far, 1, true, far + 1, 2, false},
		{"another port", 0, packet.RCSendOnly, 0, 1, true, 1, 1, true},
		{"a third port", 0, packet.RCSendOnly, 0, 1, true, 1, 2, false},
		{"a response beyond", 1, packet.RCAcknowledge, 58, 0, false, 59, 0, false}, // 63 of 100 PSNs are published: 96 more
		{"a response far beyond", 1, packet.RCAcknowledge, 59, 0, true, 60, 0, true},
		{"responses far beyond, near each other", 1, packet.RCAcknowledge, far, 0, true, far + 4096, 0, true},
		{"responses far beyond, and from each other", 1, packet.RCAcknowledge, far, 0, true, far + 4097, 0, false},
		{"a response before the first", 1, packet.RCAcknowledge, packet.PSNMask + 1 - 163, 0, false, 0, 0, false},
		{"a response long before the first", 1, packet.RCAcknowledge, packet.PSNMask + 1 - 164, 0, true, packet.PSNMask + 1 - 165, 0, true},
	} {
		w, next, port := paired(t, true)
		qp := [2]uint32{200, 100}[c.side]
		w.send(c.side, qp, c.op, next+c.psn, port+c.other)
		if w.usable(c.side) == c.unexpected {
			t.Errorf("%s: %v", c.name, w.view(c.side, qp))
		}
		w.send(c.side, qp, c.op, next+c.then, port+c.thenOther)
		counts := &w.workers[c.side].counts
		if (counts.Reuses+counts.Contradictions == 1) != c.ends {
			t.Errorf("%s, twice: %d records ended, %d contradictions", c.name, counts.Reuses, counts.Contradictions)
		}
	}
}

// TestSuspend: with a shared UDP port, what suspends a flow, and what ends the suspension.
func TestSuspend(t *testing.T) {
	back := func(n uint32) func(w *wire, next uint32) {
		return func(w *wire, next uint32) { w.send(0, 200, packet.RCSendOnly, next-n, 7) }
	}
	acks := func(n ...uint32) func(w *wire, next uint32) {
		return func(w *wire, next uint32) {
			for _, k := range n {
				w.send(1, 100, packet.RCAcknowledge, next-k, 7)
			}
		}
	}
	nak := func(w *wire, next uint32) {
		b := make([]byte, 64)
		b[12] = nakSequence << 5
		for range 9 {
			w.frame(1, &packet.Parsed{Kind: packet.RoCEv2, Opcode: packet.RCAcknowledge, DestQP: 100, PSN: (next - 30) & packet.PSNMask, SrcPort: 7}, b)
		}
	}
	type steps []func(w *wire, next uint32)
	for _, c := range []struct {
		name string
		do   steps
		side int
		want bool // usable
	}{
		{"goes back to what the eighth last response waits for", steps{back(7)}, 0, true},
		{"three beyond what it waits for", steps{back(7), back(4)}, 0, true},
		{"before what it waits for", steps{back(8)}, 0, false},
		{"goes back in pieces, 4 beyond what a response waits for", steps{acks(), back(40)}, 0, false},
		{"goes back to what a NAK names", steps{nak, back(30)}, 0, true},
		{"four beyond what a NAK names, nothing else near", steps{nak, back(26)}, 0, false},
		{"before what a NAK names", steps{nak, back(31)}, 0, false},
		{"answered again", steps{back(50), acks(1)}, 0, false},
		{"answered again, and goes on", steps{back(50), acks(1), back(0)}, 0, false},
		{"answered beyond", steps{back(50), back(0), acks(0), func(w *wire, next uint32) { w.send(0, 200, packet.RCSendOnly, next+1, 7) }}, 0, true},
		{"an ACK 49 back", steps{acks(50)}, 1, true},
		{"an ACK 50 back", steps{acks(51)}, 1, false},
		{"a READ response back", steps{func(w *wire, next uint32) { w.send(1, 100, packet.RCReadRespMiddle, next-60, 7) }}, 1, true},
		{"an ACK back, then the last one", steps{acks(60, 1)}, 1, false},
		{"an ACK back, then beyond what was sent", steps{acks(60), func(w *wire, next uint32) { w.send(1, 100, packet.RCAcknowledge, next+20, 7) }}, 1, false},
		{"an ACK back, then of what was sent since", steps{acks(60), func(w *wire, next uint32) { w.talk(100, 200, next, 32, 7) }}, 1, true},
		{"the answerer begins to ask", steps{func(w *wire, _ uint32) { w.send(1, 100, packet.RCSendOnly, psnA, 7) }}, 1, false},
		{"the answerer begins to ask, and is answered", steps{func(w *wire, _ uint32) {
			w.send(1, 100, packet.RCSendOnly, psnA, 7)
			w.send(0, 200, packet.RCAcknowledge, psnA, 7)
			w.send(1, 100, packet.RCSendOnly, psnA+1, 7)
		}}, 1, true},
	} {
		w, next, _ := paired(t, false)
		for _, do := range c.do {
			do(w, next)
		}
		if w.usable(c.side) != c.want {
			t.Errorf("%s: %v", c.name, w.view(c.side, [2]uint32{200, 100}[c.side]))
		}
	}
}

// TestSilence: a flow whose requests get no responses is suspended after 2^16 PSNs, or four times the most that were ever without a
// response.
func TestSilence(t *testing.T) {
	for _, c := range []struct{ onTheWay, least, most uint32 }{
		{0, 1<<16 - coarse, 1<<16 + 5*coarse}, {1 << 14, 1<<16 - coarse, 1<<16 + 5*coarse}, {20_000, 79_000, 81_000},
	} {
		w, psn, port := paired(t, true)
		send := func(psns uint32) {
			for end := psn + psns; psn < end; {
				psn += min(32, end-psn)
				w.send(0, 200, packet.RCSendOnly, psn, port)
			}
		}
		send(c.onTheWay)
		w.send(1, 100, packet.RCAcknowledge, psn, port)
		begins := psn
		for send(32); w.usable(0) && psn-begins < 1<<18; {
			send(32)
		}
		if n := psn - begins; n < c.least || n > c.most {
			t.Errorf("with %d PSNs on the way: suspended after %d, want %d to %d", c.onTheWay, n, c.least, c.most)
		}
		send(32)
		w.send(1, 100, packet.RCAcknowledge, psn, port)
		if send(32); !w.usable(0) {
			t.Errorf("answered: %v", w.view(0, 200))
		}
	}
}

// TestPortMoves: until the UDP source port is steady, a change does not end a pair, but the flow waits for a response; from the fourth time
// on it is no evidence.
func TestPortMoves(t *testing.T) {
	for side := range 2 {
		w := newWire(t)
		w.connect(100, 200)
		w.talk(100, 200, psnB, 10, 7)
		psn := psnB + uint32(10)
		for n := range uint16(6) {
			ports := [2]uint16{7, 7}
			ports[side] = 60000 + n
			w.send(0, 200, packet.RCSendOnly, psn, ports[0])
			w.send(1, 100, packet.RCAcknowledge, psn-uint32(side), ports[1])
			if side == 0 {
				w.send(0, 200, packet.RCSendOnly, psn, ports[0])
			}
			psn++
		}
		if counts := &w.workers[side].counts; counts.Reuses+counts.Contradictions != 0 {
			t.Errorf("side %d: %d records ended, %d contradictions", side, counts.Reuses, counts.Contradictions)
		}
	}
}

// TestOwnPortStays: a port that results from a connection's QPs never changes, so a packet with another port is never the connection's. The
// flow is suspended until its next packet; two such packets in a row end the record.
func TestOwnPortStays(t *testing.T) {
	for side, qp := range []uint32{200, 100} {
		w := newWire(t)
		w.talk(100, 200, 5, 3, 52769)
		stray := func(port uint16) {
			if side == 0 {
				w.send(0, 200, packet.RCSendOnly, 8, port)
			} else {
				w.send(1, 100, packet.RCSendOnly, 0x700000, port)
			}
		}
		for n := range uint16(6) {
			stray(60000 + n)
			w.is(side, qp, 0, 0)
			w.talk(100, 200, 8, 1, 52769)
			w.is(side, qp, [2]uint32{100, 200}[side], EvidencePort)
			if pl := w.at(side, qp); !pl.Link().OwnPort() {
				t.Errorf("side %d: its port isn't its own any more", side)
			}
		}
		stray(60000)
		stray(60000)
		if n := w.workers[side].counts.Reuses; n != 1 {
			t.Errorf("side %d: %d records ended, want 1", side, n)
		}
	}
}

// TestPortMovesSuspend: the suspension of TestPortMoves.
func TestPortMovesSuspend(t *testing.T) {
	w := newWire(t)
	w.connect(100, 200)
	w.talk(100, 200, psnB, 10, 7)
	psn := psnB + uint32(10)
	for n := range uint16(6) {
		for i := range uint32(2 * coarse) {
			w.send(0, 200, packet.RCSendOnly, psn, 60000+n)
			if i == 0 && w.usable(0) != (n >= 3) {
				t.Errorf("change %d: %v", n+1, w.view(0, 200))
			}
			w.send(1, 100, packet.RCAcknowledge, psn, 7)
			psn++
		}
		if !w.usable(0) {
			t.Errorf("change %d, answered: %v", n+1, w.view(0, 200))
		}
	}
	w = newWire(t)
	w.connect(100, 200)
	w.talk(100, 200, psnB, 10, 7)
	w.send(1, 100, packet.RCAcknowledge, psnB+9, 60000)
	w.is(1, 100, 0, 0)
}

// TestUCGoesBack: UC never retransmits.
func TestUCGoesBack(t *testing.T) {
	for _, c := range []struct {
		back       uint32
		unexpected bool
	}{{1 << 10, false}, {1<<10 + 1, true}} {
		w := newWire(t)
		for i := range uint32(2000) {
			w.send(0, 200, packet.UC|packet.RCSendOnly, i, 52769)
			w.send(1, 100, packet.UC|packet.RCSendOnly, 7000+i, 52769)
		}
		w.send(0, 200, packet.UC|packet.RCSendOnly, 1999-c.back, 52769)
		if w.usable(0) == c.unexpected {
			t.Errorf("back by %d: %v", c.back, w.view(0, 200))
		}
	}
}
