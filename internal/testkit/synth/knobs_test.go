package synth

import (
	"math"
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/transport"
)

func run(c Config) (events []Event, conns []Conn) {
	t := New(c)
	for e, ok := t.Next(); ok; e, ok = t.Next() {
		events = append(events, e)
	}
	return events, t.Conns()
}

func isData(e *Event) bool { return !e.Forged && e.Packet.Opcode.HasPayload() && e.MAD == nil }

// part is the part of events, among those that count, for which is holds.
func part(events []Event, counts, is func(*Event) bool) float64 {
	n, of := 0.0, 0.0
	for i := range events {
		if e := &events[i]; counts(e) {
			of++
			if is(e) {
				n++
			}
		}
	}
	return n / of
}

func within(t *testing.T, what string, got, want, by float64) {
	t.Helper()
	if !(math.Abs(got-want) <= by) {
		t.Errorf("%s: %.4f, want %.4f within %.4f", what, got, want, by)
	}
}

// TestRepeatable: the same Config gives the same events; another seed doesn't.
func TestRepeatable(t *testing.T) {
	a, _ := run(busy(1))
	b, _ := run(busy(1))
	c, _ := run(busy(2))
	same := func(x, y Event) bool {
		if x.MAD != nil && y.MAD != nil {
			x.MAD, y.MAD = nil, nil
		}
		return x == y
	}
	if !slices.EqualFunc(a, b, same) || slices.EqualFunc(a, c, same) {
		t.Error("a seed doesn't say it all, or nothing")
	}
}

func TestPorts(t *testing.T) {
	for _, c := range []struct {
		ports     Ports
		symmetric float64 // part of connections with the port of Linux's formula
		equal     float64 // part of connections with one port for both ends
		several   bool    // source ports an end of a connection
	}{
		{PortsSymmetric, 1, 1, false}, {PortsFlowLabel, 0, 1, false}, {PortsRandom, 0, 1, false}, {PortsAsymmetric, 0, 0, false},
		{PortsEqual, 0, 1, false}, {PortsSpray, 0, 1, true}, {PortsBorrowed, 0, 1, false},
	} {
		events, conns := run(Config{Ports: c.ports, Messages: 4})
		ports := map[[2]int32]map[uint16]bool{}
		for _, e := range events {
			key := [2]int32{e.Conn, int32(e.From)}
			if ports[key] == nil {
				ports[key] = map[uint16]bool{}
			}
			ports[key][e.Packet.SrcPort] = true
			if e.Packet.SrcPort < packet.LowestSourcePort || c.ports != PortsSpray && e.Packet.SrcPort != conns[e.Conn].Port[e.From] {
				t.Fatalf("rule %d: source port %d of %+v", c.ports, e.Packet.SrcPort, conns[e.Conn])
			}
		}
		var symmetric, equal, several float64
		for i, conn := range conns {
			if conn.Port[0] == endpoint.SourcePort(endpoint.RC, conn.QP[0], conn.QP[1]) {
				symmetric++
			}
			if conn.Port[0] == conn.Port[1] {
				equal++
			}
			if len(ports[[2]int32{int32(i), 0}]) > 1 {
				several++
			}
		}
		n := float64(len(conns))
		within(t, "connections with the symmetric port", symmetric/n, c.symmetric, .02)
		within(t, "connections with equal ports", equal/n, c.equal, .02)
		if c.several != (several > 0) {
			t.Errorf("rule %d: %v connections have several ports an end", c.ports, several)
		}
	}
}

func TestQPNsAndPSNs(t *testing.T) {
	_, conns := run(Config{QPNs: QPSequential, QPBase: [2]uint32{0x100, 0x200}, Connections: 5, Tenants: 1, StartPSN: PSNZero, Messages: 1})
	for i, c := range conns {
		if want := [2]uint32{0x100 + uint32(i), 0x200 + uint32(i)}; c.QP != want || c.StartPSN != [2]uint32{} || c.VID != firstVID {
			t.Errorf("connection %d: %+v", i, c)
		}
	}
	events, conns := run(Config{StartPSN: PSNWrap, Connections: 4, Messages: 20})
	for i, c := range conns {
		if c.StartPSN[0] < 1<<24-65 || part(events, func(e *Event) bool { return e.Conn == int32(i) },
			func(e *Event) bool { return e.Packet.PSN < 1000 }) == 0 {
			t.Errorf("connection %d doesn't wrap from %v", i, c.StartPSN)
		}
	}
	_, conns = run(Config{StartPSN: PSNEqual, Tenants: 2, Messages: 1})
	seen := map[uint32]int{}
	for _, c := range conns {
		if c.StartPSN[0] != c.StartPSN[1] {
			t.Errorf("start PSNs %v", c.StartPSN)
		}
		seen[c.QP[0]]++
	}
	if len(seen) != len(conns)/2 {
		t.Errorf("%d QPNs of %d connections of two tenants", len(seen), len(conns))
	}
}

// TestLockstep: without jitter all connections do the same, packet by packet in a fixed order; with jitter or drift they don't.
func TestLockstep(t *testing.T) {
	order := func(c Config) bool {
		c.Schedule, c.StartPSN, c.Connections, c.Messages = Lockstep, PSNZero, 16, 10
		c.Mix = Mix{Send: 1, Write: 1, Read: 1}
		events, _ := run(c)
		sent := map[End][]Event{}
		for _, e := range events {
			sent[e.From] = append(sent[e.From], e)
		}
		for _, of := range sent {
			for i := range of {
				first := &of[i/16*16]
				if of[i].Conn != int32(i%16) || of[i].Packet.PSN != first.Packet.PSN || of[i].Packet.Opcode != first.Packet.Opcode {
					return false
				}
			}
		}
		return len(sent) == 2
	}
	if !order(Config{}) {
		t.Error("not in step")
	}
	if order(Config{Jitter: 5000}) || order(Config{Drift: .01}) || order(Config{ConnJitter: 5000}) || order(Config{Spread: 1e6}) {
		t.Error("in step in spite of jitter, drift or spread")
	}
}

func TestSight(t *testing.T) {
	all := func(*Event) bool { return true }
	fromFabric := func(e *Event) bool { return e.From == Fabric }
	for sight, want := range map[Sight]float64{SeeForward: 1, SeeReverse: 0} {
		events, _ := run(Config{Sight: sight, Messages: 4})
		within(t, "part of packets from the requesters' side", part(events, all, fromFabric), want, 0)
		events, _ = run(Config{Sight: sight, Messages: 4, Requesters: FromWAN})
		within(t, "part of packets from the requesters' side", part(events, all, fromFabric), 1-want, 0)
	}
	_, conns := run(Config{Sight: SeeMixed, Messages: 1, Connections: 3000})
	kinds := map[[2]bool]float64{}
	for _, c := range conns {
		kinds[c.Seen]++
	}
	for k, n := range kinds {
		within(t, "connections of one sight", n/3000, 1./3, .04)
		if k == [2]bool{} {
			t.Error("unseen connections")
		}
	}
	whole, _ := run(Config{Messages: 8})
	some, _ := run(Config{Messages: 8, Sampled: .3})
	within(t, "sampled", float64(len(some))/float64(len(whole)), .3, .02)
	late, conns := run(Config{Messages: 100, TapStart: 2e6, Connections: 32})
	if late[0].Time < 2e6 || late[0].Packet.PSN == conns[late[0].Conn].StartPSN[late[0].From] {
		t.Errorf("a tap from 2 ms on begins with %+v", late[0])
	}
	short, _ := run(Config{Duration: 1e6, Connections: 32})
	if last := short[len(short)-1].Time; last > 1e6 || last < 9e5 {
		t.Errorf("a run of 1 ms ends at %d", last)
	}
}

func TestLossAndMarks(t *testing.T) {
	c := Config{Messages: 30, LossAfter: [2]float64{.02, .05}, CE: .04, CNPInterval: 1}
	events, _ := run(c)
	from := func(end End) func(*Event) bool { return func(e *Event) bool { return e.From == end } }
	lost := func(e *Event) bool { return e.Lost }
	within(t, "lost from the fabric", part(events, from(Fabric), lost), .02, .003)
	within(t, "lost from the WAN", part(events, from(WAN), lost), .05, .006)
	within(t, "marked before the tap", part(events, isData, func(e *Event) bool { return e.Packet.ECN == packet.CE }), .02, .003)
	cnps := part(events, func(e *Event) bool { return isData(e) && !e.Lost || e.Packet.Opcode == packet.CNP },
		func(e *Event) bool { return e.Packet.Opcode == packet.CNP })
	within(t, "CNPs", cnps, .04/1.04, .005)
	for i := range events {
		if e := &events[i]; e.Packet.Opcode == packet.CNP && (e.Packet.SrcPort != 0 || e.Packet.BTHFlags != packet.BECN || e.From != WAN) {
			t.Fatalf("CNP %+v", e)
		}
	}
	c.CNPInterval = 1e9
	events, conns := run(c)
	once := part(events, func(*Event) bool { return true }, func(e *Event) bool { return e.Packet.Opcode == packet.CNP }) * float64(len(events))
	within(t, "CNPs, one a connection", once, float64(len(conns)), 20)
	events, _ = run(Config{Messages: 40, LossBefore: [2]float64{.02, 0}})
	for i := range events {
		if e := &events[i]; e.Lost || e.From == WAN && e.Syndrome>>5 != 0 && e.Syndrome != transport.SyndromeNAK {
			t.Fatalf("%+v", e)
		}
	}
	resent := part(events, isData, func(e *Event) bool { return e.Resent })
	if resent < .05 {
		t.Errorf("a part of %.3f is sent again: go-back-N would be more", resent)
	}
}

// TestAckFull: Soft-RoCE's requesters ask for ACKs at AckEvery only, others whenever their window is full, too.
func TestAckFull(t *testing.T) {
	c := Config{Sizes: [2]int{16384, 16384}, Window: 6, AckEvery: 4, Connections: 32}
	asks := func(e *Event) bool { return e.AckReq }
	events, _ := run(c)
	if got := part(events, isData, asks); got < .4 {
		t.Errorf("%.3f of the packets have AckReq, with windows that are full", got)
	}
	c.AckFull = NoAckIfFull
	events, _ = run(c)
	within(t, "packets with AckReq", part(events, isData, asks), .25, 0)
}

// TestMissingResponses: a READ response that gets lost is asked for as soon as a later one comes, long before a timeout.
func TestMissingResponses(t *testing.T) {
	c := Config{Mix: Mix{Read: 1}, Sizes: [2]int{8192, 8192}, Messages: 30, Connections: 50, LossAfter: [2]float64{WAN: .01}}
	events, _ := run(c)
	lost, again := map[int32]int64{}, 0.0 // when a response that is missing passed
	prompt := 0.0
	for _, e := range events {
		switch since, waits := lost[e.Conn]; {
		case e.Lost && !waits:
			lost[e.Conn] = e.Time
		case e.Resent && waits:
			again++
			if e.Time-since < 1e6 { // the tap is near the requester
				prompt++
			}
			delete(lost, e.Conn)
		}
	}
	if again < 50 || prompt/again < .8 {
		t.Errorf("%v responses asked for again, %v of them promptly", again, prompt)
	}
}

func TestCoalescing(t *testing.T) {
	acks := func(c Config) float64 {
		c.Messages = 32
		events, _ := run(c)
		isACK := func(e *Event) bool { return e.Packet.Opcode == packet.RCAcknowledge }
		return part(events, func(*Event) bool { return true }, isACK) * float64(len(events)) / 256 / 32
	}
	small := [2]int{100, 1000}
	within(t, "ACKs a message", acks(Config{Sizes: small}), 1, .15)
	within(t, "ACKs a message, 4 in one", acks(Config{Sizes: small, Coalesce: 4}), .25, .05)
	within(t, "ACKs a message of 8, every 2", acks(Config{Sizes: [2]int{8192, 8192}, AckEvery: 2}), 4, .2)
}
