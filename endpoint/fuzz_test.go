package endpoint

import (
	"encoding/binary"
	"testing"

	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/effort"
	"github.com/cnpgate/cnpgate/internal/testkit/mutate"
)

// repair corrects a frame's checksums and ICRC, so that a receiver checks the other fields.
func repair(frame []byte) {
	p := parsed(frame, len(frame))
	switch {
	case p.Kind == packet.RoCEv2:
		frame[p.L4+6], frame[p.L4+7] = 0, 0
		if p.Family == 4 {
			packet.PutIPv4(frame[p.L3:], binary.BigEndian.Uint16(frame[p.L3+2:]), p.DSCP<<2, 64, packet.ProtoUDP, uint32(p.Src.Lo), uint32(p.Dst.Lo))
		}
		packet.PutICRC(frame, int(p.L3), int(p.BTH), int(p.ICRC), true)
	case p.Family == 6 && p.Proto == packet.ProtoICMPv6 && int(p.L4)+packet.ICMPv6Len <= int(p.IPEnd):
		m := frame[p.L4:p.IPEnd]
		binary.BigEndian.PutUint16(m[2:], packet.ICMPv6Checksum(p.Src, p.Dst, m))
	}
}

// points is the number of kinds of reaction point in the fuzz targets.
const points = 2 * 3 * 3

// newPoint makes a reaction point of a kind: IP version, meaning of ExtensionBit, algorithm.
func newPoint(t testing.TB, kind int) *scene {
	extension := []packet.Notification{packet.StandardCNP, packet.LongHaulCNP, packet.PPFC}[kind/2%3]
	algorithm := []Algorithm{NoControl, DCQCN, HPCC}[kind/6%3]
	return newScene(t, kind%2 == 1, func(c *ReactionConfig) {
		c.Extension, c.Algorithm = extension, algorithm
		c.FastCNP = algorithm != NoControl
	})
}

// notificationSeeds are notifications of every kind to the scenes' host.
func notificationSeeds(t testing.TB) (frames [][]byte) {
	for _, s := range []*scene{newPoint(t, 0), newPoint(t, 1)} {
		stamp := &cnpgen.Extension{Timestamp: s.timestamp(1000), Device: []byte("n1"), Path: []byte{1, 2, 3}}
		for action := cnpgen.Notify; action <= cnpgen.Resume; action++ {
			l := cnpgen.LongHaul{Action: action, Parameter: 30, Level: 100, MetricType: packet.MetricQueueDepth, MetricValue: 9}
			frames = append(frames, s.longHaul(l), s.extended(l, stamp))
			if s.target.Family == 6 {
				frames = append(frames, s.icmpv6(l, stamp))
			}
		}
		frames = append(frames, s.standard(sourceQP), s.ppfc(cnpgen.PPFC{}), s.ppfc(cnpgen.PPFC{Duration: 50_000}), s.ppfc(cnpgen.PPFC{Resume: true}), s.proxy())
		if s.target.Family == 6 {
			hop := Hop{Node: 1, Time: second, Queue: 100_000, Sent: 1000, Rate: 100 * gigabit}
			next := hop
			next.Node = 2
			frames = append(frames, s.fast(packet.IOAMTrace{}), s.fast(trace()), s.fast(trace(hop)), s.fast(trace(hop, next)))
		}
	}
	return frames
}

// judge passes a frame to the reaction point and checks what must be true of any frame.
func (s *scene) judge(t testing.TB, frame []byte, missing uint32) Decision {
	before, pausedTo := s.flow.Rate(s.now), s.flow.PausedUntil()
	counted := *s.r.Counters()
	f, d := s.r.Receive(s.now, frame, parsed(frame, len(frame)+int(missing)))
	rate, pause := s.flow.Rate(s.now), s.flow.PausedUntil()-s.now
	if rate < float64(s.r.c.DCQCN.MinRate) || rate > sceneRate || rate != rate || pause > 65_535_000 {
		t.Fatalf("%x: rate %v, paused for %d ns", frame, rate, pause)
	}
	if refused := d <= lastRefusal; refused != (f == nil) || refused && (rate != before || s.flow.PausedUntil() != pausedTo) {
		t.Fatalf("%x: %v, rate %v, was %v", frame, d, rate, before)
	}
	counters := s.r.Counters()
	counted.Decisions[d]++
	var reasons uint64
	for _, n := range counters.Refused {
		reasons += n
	}
	if counters.Decisions != counted.Decisions || reasons != counters.Decisions[Refused] {
		t.Fatalf("%x: %v, counted %+v", frame, d, counters)
	}
	return d
}

func FuzzReaction(f *testing.F) {
	for i, frame := range notificationSeeds(f) {
		f.Add(frame, uint8(i), true, uint32(1000))
	}
	f.Fuzz(func(t *testing.T, frame []byte, kind uint8, repairs bool, elapsed uint32) {
		frame = append([]byte(nil), frame...)
		if repairs {
			repair(frame)
		}
		s := newPoint(t, int(kind))
		for range 2 { // the second one is a copy
			s.judge(t, frame, 0)
			s.now += int64(elapsed)
		}
	})
}

// mutants is how many inputs each fuzz target gets from the mutator.
const mutants = 50_000*effort.Short + 20_000*effort.Race + 10_000_000*effort.Long

// TestMutatedReaction is FuzzReaction over mutants. Each decision must occur: otherwise its code wasn't reached.
func TestMutatedReaction(t *testing.T) {
	var kinds [points]*scene
	for i := range kinds {
		kinds[i] = newPoint(t, i)
	}
	seeds := notificationSeeds(t)
	m := mutate.Run(t, mutants, seeds)
	var seen [Decisions]int
	for range mutants {
		_, frame, missing := m.Next()
		switch m.IntN(8) {
		case 0:
			frame, missing = seeds[m.IntN(len(seeds))], 0
		case 1:
		default:
			repair(frame)
		}
		kind := m.IntN(points)
		if m.IntN(8) > 0 { // of the frame's IP version
			kind &^= 1
			if len(frame) > 12 && frame[12] == packet.EtherTypeIPv6>>8 {
				kind++
			}
		}
		s := kinds[kind]
		s.now += m.Int64N(100_000)
		seen[s.judge(t, frame, missing)]++
	}
	for d := range Decision(Decisions) {
		t.Logf("%v: %d", d, seen[d])
		if seen[d] == 0 {
			t.Errorf("no mutant is %v", d)
		}
	}
}

// target is a host with messages outstanding in both directions.
type target struct {
	n      *network
	a      uint32
	frames [][]byte
}

func newTarget(t testing.TB) *target {
	c := Config{Addr: ipv6, SelectiveRepeat: true, Timeout: second, Reaction: ReactionConfig{Trusted: trustGateway, FastCNP: true, Algorithm: DCQCN}}
	n := newNetwork(t, c, 1000)
	a, b := n.connect(5, 1<<24-3)
	g := &target{n: n, a: a}
	n.seen = func(_ int64, _ int, frame []byte, length int) {
		g.frames = append(g.frames, append(frame[:len(frame):len(frame)], make([]byte, length-len(frame))...))
	}
	n.start(0, Stream{QP: a, Op: Read, Bytes: 3000, Messages: 2})
	n.start(0, Stream{QP: a, Op: Write, Bytes: 3000, Messages: 3})
	n.start(1, Stream{QP: b, Op: Send, Bytes: 3000, Messages: 5})
	n.start(1, Stream{QP: b, Op: Read, Bytes: 3000, Messages: 2})
	n.change = func(now int64, _ int, frame []byte, length int) bool {
		return now < 5000 || parsed(frame, length).PSN%5 > 0
	}
	n.run(100_000)
	pfc := make([]byte, 60)
	copy(pfc, packet.MACControlAddr[:])
	pfc[12], pfc[13] = 0x88, 0x08
	(&packet.PFC{Enabled: 0xff}).Put(pfc[packet.EthernetLen:])
	g.frames = append(g.frames, pfc)
	return g
}

// receive passes a frame to the host and checks what must be true of any frame. It returns false when the QP has failed.
func (g *target) receive(t testing.TB, frame []byte, missing uint32) bool {
	h := g.n.hosts[0]
	g.n.now += 100
	h.Receive(g.n.now, frame, len(frame)+int(missing))
	for range 3 {
		if n, length := h.Next(g.n.now, g.n.buf[:]); n > length || length > MaxFrame {
			t.Fatalf("%x: a frame of %d bytes, %d written", frame, length, n)
		}
		g.n.now += 100
	}
	q := h.byNumber[g.a]
	if _, n := q.requester.InFlight(); n > maxInFlight {
		t.Fatalf("%x: %d PSNs in flight", frame, n)
	}
	checkAccount(t, h.Counters())
	return !q.dead
}

func FuzzReceive(f *testing.F) {
	for _, frame := range newTarget(f).frames {
		f.Add(frame)
	}
	f.Fuzz(func(t *testing.T, frame []byte) { newTarget(t).receive(t, frame, 0) })
}

// TestMutatedReceive is FuzzReceive over mutants.
func TestMutatedReceive(t *testing.T) {
	g := newTarget(t)
	m := mutate.Run(t, mutants, g.frames)
	for i := range mutants {
		_, frame, missing := m.Next()
		if !g.receive(t, frame, missing) || i%500 == 0 { // before little is left to do
			g = newTarget(t)
		}
	}
}
