package endpoint

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/internal/cm"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/mutate"
	"pgregory.net/rapid"
)

const cmPort = 7471

// dialling is a network of two hosts with RDMA-CM. Host 1 listens, host 0 starts a stream on each connection when it is up.
type dialling struct {
	*network
	stream  Stream
	changes [2][]Connection
	done    [2]int // messages
}

func newDialling(t tester, c Config) *dialling {
	t.Helper()
	d := &dialling{stream: Stream{Bytes: 10_000, Messages: 3}}
	c.CM.Enabled, c.CM.Listen = true, cmPort
	n := newNetwork(t, c, 10_000)
	for i := range n.hosts {
		own := n.hosts[i].c
		own.CM.Seed = uint64(100 * (i + 1))
		own.FirstQP = uint32(0x100 * (i + 1))
		own.CM.Changed = func(_ int64, c Connection) { d.changed(i, c) }
		own.Completed = func(Completion) { d.done[i]++ }
		h, err := New(own)
		if err != nil {
			t.Fatal(err)
		}
		n.hosts[i] = h
	}
	d.network = n
	return d
}

func (d *dialling) changed(host int, c Connection) {
	d.changes[host] = append(d.changes[host], c)
	if s := d.stream; c.Up && host == 0 && s.Messages > 0 {
		s.QP, s.ID, s.At = c.QP, c.ID, d.now
		d.start(0, s)
	}
}

// dial has host 0 ask host 1 for a connection.
func (d *dialling) dial(id uint64) (qp uint32) {
	d.t.Helper()
	h := d.hosts[1]
	qp, err := d.hosts[0].Dial(d.now, Peer{Addr: h.c.Addr, MAC: h.c.MAC}, cmPort, id)
	if err != nil {
		d.t.Fatal(err)
	}
	return qp
}

// TestDial: connections set up by RDMA-CM carry messages on the agreed QPs, and leave nothing behind when they are disconnected.
func TestDial(t *testing.T) {
	for _, c := range []Config{{}, {Payload: PayloadReal, MTU: 4096}, {Addr: ipv6, Payload: PayloadReal}} {
		d := newDialling(t, c)
		d.stream.Op = Read
		psns := map[uint32]bool{}
		d.seen = func(_ int64, _ int, frame []byte, length int) {
			p := parsed(frame, length)
			if p.DestQP == packet.GSIQP {
				if length != len(frame) || p.SrcPort != packet.SoftRoCEPort(packet.GSIQP) {
					t.Errorf("%d of %d bytes of a MAD are written, from port %d", len(frame), length, p.SrcPort)
				}
				return
			}
			psns[p.PSN] = true
		}
		for id := range uint64(4) {
			d.dial(id)
		}
		d.run(never)
		for id := range uint64(4) {
			a, b := d.changes[0][id], d.changes[1][id]
			if !a.Up || !b.Up || a.ID != id || a.QP != b.Peer.QP || b.QP != a.Peer.QP || a.QP != 0x100+uint32(id) || b.QP != 0x200+uint32(id) ||
				a.Peer.Addr != d.hosts[1].c.Addr || a.Peer.MAC != d.hosts[1].c.MAC || b.Peer.Addr != d.hosts[0].c.Addr || b.Peer.MAC != d.hosts[0].c.MAC {
				t.Errorf("connection %d is %+v and %+v", id, a, b)
			}
			qa, qb := d.hosts[0].byNumber[a.QP], d.hosts[1].byNumber[b.QP]
			if qa.SendPSN != qb.ReceivePSN || qb.SendPSN != qa.ReceivePSN || qa.SendPSN == qb.SendPSN || !psns[qa.SendPSN] || qa.SrcPort != qb.SrcPort ||
				qa.SrcPort == packet.SourcePort(a.QP, b.QP) {
				t.Errorf("the QPs of connection %d are %+v and %+v", id, qa.QP, qb.QP)
			}
		}
		if d.done[0] != 12 || d.hosts[0].Connections() != 4 || d.hosts[1].CMCounters().Established != 4 {
			t.Errorf("%d messages done, want 12; %d connections", d.done[0], d.hosts[0].Connections())
		}
		d.hosts[0].Disconnect(d.now, 0x100)
		d.hosts[1].Disconnect(d.now, 0x201)
		d.hosts[0].Close(0x102) // without DREQ: the other end continues
		d.run(never)
		for i, h := range d.hosts {
			if h.Connections() != 2-1+i || len(h.byNumber) != 1+i {
				t.Errorf("host %d: %d connections, %d QPs", i, h.Connections(), len(h.byNumber))
			}
			for _, c := range d.changes[i][4:] {
				if c.Up || c.Outcome != cm.Closed {
					t.Errorf("host %d: %+v", i, c)
				}
			}
			checkAccount(t, h.Counters())
		}
	}
}

// TestDialLossy: with losses in both directions, connections come up or both ends learn that they don't; what is up carries all messages, and
// disconnecting leaves nothing.
func TestDialLossy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := newDialling(t, Config{Timeout: 200_000, Retries: 1000, CM: CMConfig{Timeout: 6}})
		percent := rapid.IntRange(0, 40).Draw(t, "percent lost")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		d.change = func(int64, int, []byte, int) bool { return random.IntN(100) >= percent }
		for id := range uint64(3) {
			d.dial(id)
		}
		d.run(100_000_000)
		if percent == 0 && len(d.changes[0]) != 3 {
			t.Fatalf("%d connections", len(d.changes[0]))
		}
		up := 0
		for _, c := range d.changes[0] {
			if c.Up {
				up++
				d.hosts[0].Disconnect(d.now, c.QP)
			}
		}
		if d.done[0] != 3*up || len(d.changes[0]) != 3 {
			t.Fatalf("%d messages on %d connections; changes %+v", d.done[0], up, d.changes[0])
		}
		d.run(200_000_000)
		for _, c := range slices.Clone(d.changes[1]) { // the peer gave up
			d.hosts[1].Disconnect(d.now, c.QP)
		}
		d.run(never)
		for i, h := range d.hosts {
			if h.Connections() != 0 || len(h.byNumber) != 0 || len(h.timers.entries) != 0 {
				t.Fatalf("host %d: %d connections, %d QPs", i, h.Connections(), len(h.byNumber))
			}
			checkAccount(t, h.Counters())
		}
	})
}

// TestDialRefused: the result of a connection that the peer refuses, and the calls that Dial and New refuse.
func TestDialRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(d *dialling)
		want   Connection
	}{
		{"nobody listens", func(d *dialling) { d.hosts[1] = relisten(d, func(c *CMConfig) { c.Listen = 0 }) }, Connection{Outcome: cm.Refused, Reason: packet.CMInvalidServiceID}},
		{"not accepted", func(d *dialling) {
			d.hosts[1] = relisten(d, func(c *CMConfig) { c.Accept = func(Peer) uint16 { return packet.CMConsumerReject } })
		}, Connection{Outcome: cm.Refused, Reason: packet.CMConsumerReject}},
		{"no RDMA-CM", func(d *dialling) { d.hosts[1] = relisten(d, func(c *CMConfig) { c.Enabled = false }) }, Connection{Outcome: cm.Unanswered}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDialling(t, Config{})
			d.dial(9)
			c.change(d)
			d.run(never)
			if len(d.changes[0]) != 1 {
				t.Fatalf("changes %+v", d.changes[0])
			}
			got := d.changes[0][0]
			if got.Up || got.ID != 9 || got.QP != 0x100 || got.Outcome != c.want.Outcome || got.Reason != c.want.Reason {
				t.Errorf("the connection is %+v, want %+v", got, c.want)
			}
			if n := len(d.hosts[1].byNumber) + len(d.hosts[0].conns); n != 0 {
				t.Errorf("%d QPs are left", n)
			}
		})
	}
	d := newDialling(t, Config{CM: CMConfig{Connections: 1}})
	d.dial(1)
	_, full := d.hosts[0].Dial(0, Peer{Addr: address(1)}, cmPort, 2)
	_, version := d.hosts[0].Dial(0, Peer{Addr: ipv6}, cmPort, 2)
	_, disabled := newNetwork(t, Config{}, 1).hosts[0].Dial(0, Peer{Addr: address(1)}, cmPort, 2)
	c := d.hosts[0].c
	c.MTU = 1000
	_, mtu := New(c)
	c.MTU, c.CM.Retries = 1024, 16
	_, retries := New(c)
	c.CM.Retries, c.FirstQP = 15, 1
	_, low := New(c)
	c.FirstQP = 1<<24 - 1
	_, high := New(c)
	for want, err := range map[string]error{"all 1 connections are in use": full, "a different IP version": version, "RDMA-CM isn't enabled": disabled,
		"RDMA-CM knows 256, 512": mtu, "RDMA-CM: a message is repeated 16 times": retries,
		"the first QP is 1, expected 2 to 16777213": low, "the first QP is 16777215, expected 2 to": high, "is the connection manager's": d.hosts[0].Open(QP{Number: 1})} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%v, expected %q", err, want)
		}
	}
}

// relisten is host 1 with another configuration of RDMA-CM.
func relisten(d *dialling, change func(*CMConfig)) *Host {
	c := d.hosts[1].c
	change(&c.CM)
	h, err := New(c)
	if err != nil {
		d.t.Fatal(err)
	}
	return h
}

// madsOf takes the MADs that a host sends.
func (d *dialling) madsOf(host int) (all [][]byte) {
	for _, f := range d.frames(host) {
		if parsed(f, len(f)).DestQP == packet.GSIQP {
			all = append(all, f)
		}
	}
	return all
}

// TestMADRefused: a message with a wrong ICRC, Q_Key, source QP or address opens nothing, and is counted.
func TestMADRefused(t *testing.T) {
	deth := func(p *packet.Parsed) int { return p.Ext() }
	for _, c := range []struct {
		name   string
		change func(f []byte, p *packet.Parsed)
		repair bool
		count  func(Counters, cm.Counters) uint64
	}{
		{"ICRC", func(f []byte, p *packet.Parsed) { f[p.ICRC]++ }, false, func(c Counters, _ cm.Counters) uint64 { return c.WrongICRC }},
		{"Q_Key", func(f []byte, p *packet.Parsed) { f[deth(p)]++ }, true, func(_ Counters, c cm.Counters) uint64 { return c.Received[cm.Malformed] }},
		{"source QP", func(f []byte, p *packet.Parsed) { f[deth(p)+7]++ }, true, func(_ Counters, c cm.Counters) uint64 { return c.Received[cm.Malformed] }},
		{"class", func(f []byte, p *packet.Parsed) { f[p.Payload+1]++ }, true, func(_ Counters, c cm.Counters) uint64 { return c.Received[cm.Malformed] }},
		{"source address", func(f []byte, p *packet.Parsed) { f[p.L3+15]++ }, true, func(_ Counters, c cm.Counters) uint64 { return c.Received[cm.Rejected] }},
	} {
		d := newDialling(t, Config{})
		d.dial(1)
		f := d.madsOf(0)[0]
		c.change(f, parsed(f, len(f)))
		if c.repair {
			repair(f)
		}
		h := d.hosts[1]
		h.Receive(d.now, f, len(f))
		if n := c.count(h.Counters(), h.CMCounters()); n != 1 || len(h.byNumber) != 0 {
			t.Errorf("wrong %s: counted %d times, %d QPs; %+v, %+v", c.name, n, len(h.byNumber), h.Counters(), h.CMCounters())
		}
		checkAccount(t, h.Counters())
	}
}

// managed is a host with connections that are up, asked for and accepted.
func managed(t testing.TB) (d *dialling, frames [][]byte) {
	d = newDialling(t, Config{Payload: PayloadReal})
	d.stream.Messages = 0
	d.seen = func(_ int64, _ int, frame []byte, _ int) { frames = append(frames, slices.Clone(frame)) }
	d.dial(1)
	d.dial(2)
	d.run(never)
	d.hosts[0].Disconnect(d.now, 0x100)
	d.run(never)
	d.dial(3)
	for _, f := range d.madsOf(0) {
		frames = append(frames, f)
		d.hosts[1].Receive(d.now, f, len(f))
	}
	frames = append(frames, d.madsOf(1)...)
	if _, err := d.hosts[1].Dial(d.now, Peer{Addr: d.hosts[0].c.Addr}, cmPort, 4); err != nil {
		t.Fatal(err)
	}
	return d, frames
}

// judge gives a frame to host 1, and checks that each connection has its QP, and the other way round.
func (d *dialling) judge(t testing.TB, frame []byte, missing uint32) {
	h := d.hosts[1]
	h.Receive(d.now, frame, len(frame)+int(missing))
	for range 3 {
		h.Next(d.now, d.buf[:])
	}
	checkAccount(t, h.Counters())
	for number, q := range h.byNumber {
		if h.conns[number] == nil || q != nil && (q.Number != number || q.Peer.QP == 0) {
			t.Fatalf("%x: QP %#x is %+v without a connection", frame, number, q)
		}
	}
	if len(h.byNumber) != len(h.conns) || len(h.conns) > h.c.CM.Connections {
		t.Fatalf("%x: %d QPs, %d connections", frame, len(h.byNumber), len(h.conns))
	}
}

func FuzzManaged(f *testing.F) {
	_, frames := managed(f)
	for _, frame := range frames {
		f.Add(frame, true)
	}
	f.Fuzz(func(t *testing.T, frame []byte, repairs bool) {
		d, _ := managed(t)
		frame = slices.Clone(frame)
		if repairs {
			repair(frame)
		}
		d.judge(t, frame, 0)
	})
}

// TestMutatedManaged is FuzzManaged over mutants.
func TestMutatedManaged(t *testing.T) {
	const life = 100
	d, frames := managed(t)
	m := mutate.Run(t, mutants/10, frames)
	var taken, refused uint64
	for i := range mutants / 10 {
		_, frame, missing := m.Next()
		if m.IntN(8) > 0 {
			repair(frame)
		}
		d.judge(t, frame, missing)
		if i%life == life-1 {
			c := d.hosts[1].CMCounters()
			taken += c.Received[cm.Taken]
			for v := cm.Rejected; v < cm.Verdict(cm.Verdicts); v++ {
				refused += c.Received[v]
			}
			d, _ = managed(t)
		}
	}
	t.Logf("%d taken, %d refused", taken, refused)
	if taken < mutants/life/10 || refused < mutants/life {
		t.Errorf("%d messages are taken, %d refused", taken, refused)
	}
}
