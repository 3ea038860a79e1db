package cm

import (
	"encoding/binary"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/mutate"
)

// target is a host with a connection in each state, and what its peer knows of each.
type target struct {
	*host
	peer  Peer
	conns []*Conn
}

func newTarget(t tester) *target {
	p := newPair(t)
	h := p.hosts[1]
	h.c.Connections = 64
	connect := func() { p.connect(); p.run(p.now + testWait/4) }
	connect() // established
	connect() // timeWait
	p.hosts[0].Disconnect(p.now, h.all[1].peers(p.hosts[0]))
	p.run(p.now + testWait/4)
	connect() // dreqSent
	p.lose = func() bool { return true }
	h.Disconnect(p.now, h.all[2])
	p.lose = func() bool { return p.sent[len(p.sent)-1].Attribute == packet.CMREP }
	connect() // repSent
	g := &target{host: h, peer: p.hosts[0].addr}
	for range 2 {
		c, err := h.Connect(p.now, g.peer, testPort, h.newQP(), 1)
		if err != nil {
			t.Fatalf("%v", err)
		}
		g.conns = append(g.conns, c)
	}
	g.conns = append(g.conns, h.all...)
	for h.Pending() {
		h.Next()
	}
	return g
}

// peers is the end of the connection at another host.
func (c *Conn) peers(h *host) *Conn {
	for _, o := range h.all {
		if o.comm[0] == c.comm[1] {
			return o
		}
	}
	return nil
}

// messages are right messages for each connection of the target.
func (g *target) messages() (all [][]byte) {
	for _, c := range g.conns {
		for a := packet.CMREQ; a <= packet.CMAPR; a++ {
			x := packet.CM{Attribute: a, LocalComm: c.comm[1], RemoteComm: c.comm[0], QPN: c.Local.Number, PSN: 5, ServiceID: packet.ServiceID(packet.ProtoTCP, testPort),
				MTU: 3, LocalGID: g.peer.Addr, RemoteGID: g.addr.Addr, Timeout: 3}
			if a == packet.CMREQ || a == packet.CMREP {
				x.QPN = max(c.Remote.Number, 0x777)
			}
			b := make([]byte, packet.MADLen)
			x.Put(b)
			all = append(all, b)
		}
	}
	return all
}

// judge gives a datagram to the target, and checks what has to be true of any.
func (g *target) judge(t testing.TB, b []byte, fromPeer bool) Verdict {
	from := g.peer
	if !fromPeer {
		from.Addr.Lo++
	}
	x, ok := packet.DecodeCM(b)
	before := make([]Conn, len(g.conns))
	for i, c := range g.conns {
		before[i] = *c
	}
	counted := g.Counters()
	m := &x
	if !ok {
		m = nil
	}
	v := g.Receive(0, from, m)
	counted.Received[v]++
	if got := g.Counters(); got.Received != counted.Received {
		t.Fatalf("%x: %v, counted %v", b, v, got.Received)
	}
	if g.out.Len() > 2 {
		t.Fatalf("%x: %d answers", b, g.out.Len())
	}
	for g.Pending() {
		g.Next()
	}
	if len(g.InUse()) > g.c.Connections || len(g.byComm) > g.c.Connections {
		t.Fatalf("%x: %d connections", b, len(g.byComm))
	}
	for i, c := range g.conns {
		stale := x.Attribute == packet.CMREQ && x.QPN == before[i].Remote.Number
		named := fromPeer && x.RemoteComm == before[i].comm[0]
		if *c != before[i] && (!ok || v > Rejected || !named && !(stale && fromPeer)) {
			t.Fatalf("%x: %v, and a connection it doesn't name changes from %+v to %+v", b, v, before[i], *c)
		}
		if before[i].state == established && c.state != established && named && x.LocalComm != before[i].comm[1] {
			t.Fatalf("%x: %v ends a connection without the peer's communication ID", b, v)
		}
	}
	return v
}

func FuzzReceive(f *testing.F) {
	for i, b := range newTarget(f).messages() {
		f.Add(b, i%8 > 0)
	}
	f.Fuzz(func(t *testing.T, b []byte, fromPeer bool) {
		g := newTarget(t)
		for range 2 {
			g.judge(t, b, fromPeer)
		}
	})
}

// TestMutatedReceive is FuzzReceive over mutants. Each verdict has to come up: else the code behind it wasn't reached.
func TestMutatedReceive(t *testing.T) {
	const mutants, life = 50_000, 50
	g := newTarget(t)
	seeds := g.messages()
	m := mutate.Run(t, mutants, seeds)
	var seen [Verdicts]int
	for i := range mutants {
		_, b, _ := m.Next()
		if m.IntN(2) == 0 && len(b) >= packet.MADLen { // what a connection is known by, so that a receiver has to look further
			c := g.conns[m.IntN(len(g.conns))]
			b = append([]byte(nil), b...)
			binary.BigEndian.PutUint32(b[packet.MADHeaderLen:], c.comm[1])
			binary.BigEndian.PutUint32(b[packet.MADHeaderLen+4:], c.comm[0])
		}
		seen[g.judge(t, b, m.IntN(8) > 0)]++
		if i%life == 0 {
			g = newTarget(t)
		}
	}
	for v := range Verdict(Verdicts) {
		t.Logf("%v: %d", v, seen[v])
		if seen[v] == 0 {
			t.Errorf("no mutant is %v", v)
		}
	}
}
