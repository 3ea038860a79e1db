package endpoint

import "testing"

// TestNoAllocations: a packet, its acknowledgement, its retransmission and its CNP need no allocation once the queues have their size.
func TestNoAllocations(t *testing.T) {
	p := newPingPong(t)
	p.marks = true
	for range 100_000 {
		p.exchange()
	}
	if n := testing.AllocsPerRun(10_000, p.exchange); n != 0 {
		t.Errorf("%v allocations a packet", n)
	}
	if a, b := p.a.Counters(), p.b.Counters(); p.data < 100_000 || a.Retransmitted == 0 || b.CNPsSent == 0 {
		t.Errorf("%d packets with data, %d sent again, %d CNPs", p.data, a.Retransmitted, b.CNPsSent)
	}
}

// pingPong passes frames between two hosts without a network.
type pingPong struct {
	a, b *Host
	now  int64
	data int
	// marks has some packets marked CE, and some lost.
	marks bool
	buf   [MaxFrame]byte
}

func newPingPong(t testing.TB) *pingPong {
	c := Config{AckEvery: 1, Window: 100_000, VariableWindow: true, Reaction: ReactionConfig{Algorithm: DCQCN}}
	n := newNetwork(t, c, 0)
	for range 256 {
		qp, _ := n.connect()
		n.start(0, Stream{QP: qp, Bytes: 64_000, Messages: 1 << 30})
	}
	return &pingPong{a: n.hosts[0], b: n.hosts[1]}
}

// exchange sends a frame of each host to the other.
func (p *pingPong) exchange() {
	p.now += 100
	if n, length := p.a.Next(p.now, p.buf[:]); length > 0 {
		if p.data++; p.marks && p.data%100 == 0 {
			markCE(p.buf[:n], length)
		}
		if !p.marks || p.data%1000 > 0 {
			p.b.Receive(p.now, p.buf[:n], length)
		}
	}
	if n, length := p.b.Next(p.now, p.buf[:]); length > 0 {
		p.a.Receive(p.now, p.buf[:n], length)
	}
}
