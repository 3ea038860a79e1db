package cm

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
	"pgregory.net/rapid"
)

const (
	testPort    = 7471
	testTimeout = 8 // 1.05 ms
	testWait    = timeUnit << testTimeout
	testRetries = 5
)

// host is a manager that records the calls of its Handler. It opens QPs from 0x100 on.
type host struct {
	Manager
	t      tester
	addr   Peer
	nextQP uint32
	open   map[*Conn]bool // Open was called, Ended not yet
	up     map[*Conn]bool // Established was called, Ended not yet
	all    []*Conn        // that Open accepted
	ended  map[*Conn]Outcome
	refuse uint16 // what Open returns
}

type tester interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

func newHost(t tester, number byte, change func(*Config)) *host {
	t.Helper()
	h := &host{t: t, nextQP: 0x100 * uint32(number), open: map[*Conn]bool{}, up: map[*Conn]bool{}, ended: map[*Conn]Outcome{}}
	h.addr = Peer{Addr: packet.AddrFrom4([]byte{10, 0, 0, number}), MAC: [6]byte{2, 0, 0, 0, 0, number}}
	c := Config{Addr: h.addr.Addr, GUID: uint64(number), MTU: 3, Port: testPort, Timeout: testTimeout, Retries: testRetries, Connections: 8, ReadDepth: 16,
		Seed: uint64(number), Handler: h}
	if change != nil {
		change(&c)
	}
	m, err := New(c)
	if err != nil {
		t.Fatalf("%v", err)
	}
	h.Manager = *m
	return h
}

// newQP is a QP that the host hasn't had.
func (h *host) newQP() QP {
	h.nextQP++
	return QP{h.nextQP, h.RandomPSN()}
}

func (h *host) Open(_ int64, c *Conn) uint16 {
	if h.open[c] || h.up[c] || c.Remote.Number == 0 {
		h.t.Errorf("opened again, or without a peer's QP: %+v", c)
	}
	if h.refuse != 0 {
		return h.refuse
	}
	if !c.Active {
		c.Local = h.newQP()
	}
	h.open[c] = true
	h.all = append(h.all, c)
	return 0
}

func (h *host) Established(_ int64, c *Conn) {
	if !h.open[c] || h.up[c] || !c.Established() {
		h.t.Errorf("established again, or before it was opened: %+v", c)
	}
	h.up[c] = true
}

func (h *host) Ended(_ int64, c *Conn, o Outcome) {
	if _, again := h.ended[c]; again || !h.open[c] && !c.Active {
		h.t.Errorf("ended again, or without being opened: %+v", c)
	}
	delete(h.open, c)
	delete(h.up, c)
	h.ended[c] = o
}

// disconnect ends all connections that are up.
func (h *host) disconnect(now int64) {
	for _, c := range h.all {
		if h.up[c] {
			h.Disconnect(now, c)
		}
	}
}

// pair is two hosts and the messages between them.
type pair struct {
	now    int64
	hosts  [2]*host
	flying []flying
	// lose, delay and twice decide the fate of a message; nil: no effect.
	lose  func() bool
	delay func() int64
	twice func() bool
	sent  []packet.CM
}

type flying struct {
	at int64
	to int
	b  [packet.MADLen]byte
}

func newPair(t tester) *pair {
	return &pair{hosts: [2]*host{newHost(t, 1, nil), newHost(t, 2, nil)}}
}

// connect has host 0 ask host 1 for a connection.
func (p *pair) connect() *Conn {
	h := p.hosts[0]
	c, err := h.Connect(p.now, p.hosts[1].addr, testPort, h.newQP(), 77)
	if err != nil {
		h.t.Fatalf("%v", err)
	}
	return c
}

// collect puts what the hosts send on its way.
func (p *pair) collect() {
	for i, h := range p.hosts {
		for h.Pending() {
			m := h.Next()
			p.sent = append(p.sent, m.CM)
			if m.To != p.hosts[1-i].addr {
				h.t.Errorf("a message to %+v", m.To)
			}
			copies := 1
			if p.twice != nil && p.twice() {
				copies = 2
			}
			for range copies {
				f := flying{at: p.now + 1000, to: 1 - i}
				if p.delay != nil {
					f.at += p.delay()
				}
				m.Put(f.b[:])
				if p.lose == nil || !p.lose() {
					p.flying = append(p.flying, f)
				}
			}
		}
	}
}

// run goes on until nothing is left to do, or until a time.
func (p *pair) run(until int64) {
	for {
		p.collect()
		at, next := min(p.hosts[0].Due(), p.hosts[1].Due()), -1
		for i, f := range p.flying {
			if f.at <= at {
				at, next = f.at, i
			}
		}
		if at > until || at == never {
			if until < never-1 {
				p.now = until
			}
			return
		}
		p.now = max(p.now, at)
		if next >= 0 {
			f := p.flying[next]
			p.flying = append(p.flying[:next:next], p.flying[next+1:]...)
			x, ok := packet.DecodeCM(f.b[:])
			if !ok {
				p.hosts[0].t.Fatalf("not decoded: %x", f.b)
			}
			p.hosts[f.to].Receive(p.now, p.hosts[1-f.to].addr, &x)
		}
		for _, h := range p.hosts {
			h.Expire(p.now)
		}
	}
}

// attributes are those of all messages so far.
func (p *pair) attributes() (all []packet.CMAttribute) {
	for i := range p.sent {
		all = append(all, p.sent[i].Attribute)
	}
	return all
}

// checkForgotten checks that a host that has ended all its connections keeps nothing of them.
func (h *host) checkForgotten() {
	h.t.Helper()
	if len(h.conns) != 0 || len(h.byComm) != 0 || len(h.open) != 0 || len(h.up) != 0 || h.Due() != never {
		h.t.Errorf("%d connections are left, %d open, %d up; due at %d", len(h.conns), len(h.open), len(h.up), h.Due())
	}
	c := h.Counters()
	var ended uint64
	for _, n := range c.Ended {
		ended += n
	}
	if ended != uint64(len(h.ended)) {
		h.t.Errorf("%d connections ended, counted %v", len(h.ended), c.Ended)
	}
}

// TestLossyPair: whatever is lost, delayed or duplicated, an end that uses a connection has the QPs and PSNs that the other end chose. Each
// end is notified once when it ends, and nothing is left of it. A connection is established unless a message needs more repetitions than
// allowed.
func TestLossyPair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPair(t)
		lost := rapid.IntRange(0, 60).Draw(t, "percent lost")
		copies := rapid.IntRange(0, 50).Draw(t, "percent twice")
		late := rapid.Int64Range(0, 4*testWait).Draw(t, "late by up to")
		hundred, time := rapid.IntRange(0, 99), rapid.Int64Range(0, late)
		p.lose = func() bool { return hundred.Draw(t, "loss") < lost }
		p.twice = func() bool { return hundred.Draw(t, "copy") < copies }
		p.delay = func() int64 { return time.Draw(t, "delay") }
		conns := rapid.IntRange(1, 4).Draw(t, "connections")
		for range conns {
			p.connect()
		}
		p.run(200 * testWait)
		active, passive := p.hosts[0], p.hosts[1]
		for a := range active.up {
			found := 0
			for _, b := range passive.all {
				if b.comm[1] == a.comm[0] && b.comm[0] == a.comm[1] {
					found++
					if a.Remote != b.Local || b.Remote != a.Local || a.FlowLabel != b.FlowLabel {
						t.Fatalf("the ends differ: %+v, %+v", a, b)
					}
				}
			}
			if found != 1 {
				t.Fatalf("%d passive ends of %+v", found, a)
			}
		}
		if lost == 0 && late < testWait/4 && (len(active.up) != conns || len(passive.up) != conns) {
			t.Fatalf("%d and %d of %d connections are up", len(active.up), len(passive.up), conns)
		}
		active.disconnect(p.now)
		if rapid.Bool().Draw(t, "both ends") {
			passive.disconnect(p.now)
		}
		p.run(400 * testWait)
		passive.disconnect(p.now) // the other end gave up, or its DREQs were lost
		p.run(never - 1)
		active.checkForgotten()
		passive.checkForgotten()
	})
}
