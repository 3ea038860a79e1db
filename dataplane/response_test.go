package dataplane_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/cnpdec"
	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

const (
	mb          = 1_000_000
	rtt         = 10_000_000 // ns
	millisecond = 1_000_000
)

// longHaulOf are the fields of a Long-haul CNP over IPv4 without tags: Congestion Level, action, Parameter, Source QP, Metric Type and Value.
func longHaulOf(t testkit.T, n testkit.Sent) (f [6]uint32) {
	t.Helper()
	kind, p := kindOf(n)
	at := int(p.BTH) + packet.BTHLen
	if kind != packet.ExtendedCNP || len(n.Octets) < at+packet.LongHaulLen {
		t.Fatalf("%v of %d octets", kind, len(n.Octets))
	}
	b := n.Octets[at:]
	metric := binary.BigEndian.Uint32(b[8:])
	return [6]uint32{uint32(b[0]), uint32(b[1] >> 6), uint32(binary.BigEndian.Uint16(b[2:])), binary.BigEndian.Uint32(b[4:]), metric >> 24, metric & 0xffffff}
}

// TestSection7: draft-tian's example, number for number: 100 Gbps and 10 ms, so K_max is 125 MB and K_min 62.5 MB. Packets are marked at
// 70 MB. At 130 MB the sender is asked to reduce its rate by 30 % (level 180). When the queue has been below K_min for 10 ms, at 30 MB, it is
// asked to resume by 50 % (level 20).
func TestSection7(t *testing.T) {
	const size = 8000 // so that 30 and 130 MB are whole frames
	p := testkit.DefaultPolicy(2)
	p.Ports[wan] = dataplane.PortPolicy{PerFlow: rtt, Response: congestion.Response{
		Triggers: congestion.Triggers{Thresholds: congestion.Adaptive(64_000, 1, 100e9, rtt, 50), Depth: true}, Marks: true, Ladder: congestion.DefaultLadder,
		Resumes: true, ResumePercent: 50, Disclose: true, Rate: 100e9, RTT: rtt, Interval: 100_000,
	}}
	if k := p.Ports[wan].Thresholds; k.KMax != 125*mb || k.KMin != 62.5*mb {
		t.Fatalf("thresholds %+v", k)
	}
	quiet := *p
	p.Who, p.Build = notifying(grant("198.18.0.0/16", packet.LongHaulCNP)).Who, notifying().Build
	r := testkit.New(t, testkit.Setup{Rate: 100e9, Policy: &quiet, Static: knownQPs(t), Capacity: 250 * mb, Frames: 32_000, Buffers: 40_000, BufferSize: 256})
	frame := data(false, 0)
	frame.Size = size
	head := frame.Frame()[:128]
	depth := func() uint64 { return r.Plane.Port(wan).Depth[0] }
	fill := func(to uint64) {
		for depth() < to {
			r.InjectCut(t, 0, fabric, head, size)
			r.Plane.Worker(0).Step()
		}
	}
	marked := func() uint64 { return r.Count(wan, counters.ECNMarked) }
	if fill(62 * mb); marked() != 0 {
		t.Errorf("%d packets are marked at 62 MB", marked())
	}
	before := marked()
	if fill(70 * mb); marked() == before {
		t.Error("no packet is marked at 70 MB")
	}
	fill(130*mb - size)
	if err := r.Plane.SetPolicy(p); err != nil { // from now on senders are notified
		t.Fatal(err)
	}
	r.Take(fabric)
	fill(130 * mb)
	r.Settle()
	notes := r.Take(fabric)
	if len(notes) != 1 {
		t.Fatalf("at 130 MB: %d notifications, counted %v", len(notes), r.Plane.Port(fabric).Count)
	}
	if got := longHaulOf(t, notes[0]); got != [6]uint32{180, 2, 30, sourceQP, 1, 130_000} {
		t.Errorf("at 130 MB: %v", got)
	}
	for depth() >= 62.5*mb {
		r.Advance(642) // what a frame takes
		r.Settle()
	}
	began := r.Now
	for depth() > 30*mb {
		r.Advance(10_000)
		r.Settle()
	}
	sent := counters.SentFirst + counters.Counter(packet.LongHaulCNP)
	for r.Count(fabric, sent) == 1 {
		r.Advance(642) // what a frame takes
		r.Settle()
		fill(30 * mb)
		if r.Now-began > 2*rtt {
			t.Fatal("no Resume")
		}
	}
	notes = append(notes, r.Take(fabric)...)
	if got := longHaulOf(t, notes[1]); got != [6]uint32{20, 3, 50, sourceQP, 1, 30_000} {
		t.Errorf("Resume: %v", got)
	}
	if waited := r.Now - began; waited < rtt || waited > rtt+millisecond {
		t.Errorf("after %d ns below K_min, want 10 ms", waited)
	}
	r.Drain()
	if more := r.Take(fabric); len(more) != 0 {
		t.Errorf("%d more notifications", len(more))
	}
	r.Close(t)
}

// TestEveryFormat: PPFC pauses and resumes, standard CNP comes from the receiver, and each is what cnpdec reads it as.
func TestEveryFormat(t *testing.T) {
	for _, c := range []struct {
		format packet.Notification
		v6     bool
		kinds  []packet.Notification
	}{
		{packet.FastCNP, true, []packet.Notification{packet.FastCNP}},
		{packet.LongHaulCNP, false, []packet.Notification{packet.LongHaulCNP, packet.LongHaulCNP}},
		{packet.LongHaulCNPICMPv6, true, []packet.Notification{packet.LongHaulCNPICMPv6, packet.LongHaulCNPICMPv6}},
		{packet.PPFC, false, []packet.Notification{packet.PPFC, packet.PPFC}},
		{packet.PPFC, true, []packet.Notification{packet.PPFC, packet.PPFC}},
		{packet.StandardCNP, false, []packet.Notification{packet.StandardCNP}},
		{packet.StandardCNP, true, []packet.Notification{packet.StandardCNP}},
	} {
		p := notifying(grant("fd00:18::/32", c.format), grant("198.18.0.0/16", c.format))
		p.Who.Enabled[c.format] = true
		p.Ports[wan].PerFlow, p.Ports[wan].Resumes, p.Ports[wan].ResumePercent = 60_000_000, true, 50
		s := newScene(t, p, nil)
		s.fill(6, data(c.v6, 0))
		notes := s.finish()
		if len(notes) != len(c.kinds) {
			t.Errorf("%v, IPv6 %v: %d notifications, want %d", c.format, c.v6, len(notes), len(c.kinds))
			continue
		}
		for i, n := range notes {
			want := c.kinds[i]
			_, q := kindOf(n)
			r := cnpdec.Receiver{Code: packet.DefaultCodePoints, Extension: packet.LongHaulCNP}
			if want == packet.PPFC {
				r.Extension = packet.PPFC
			}
			var d cnpdec.Notification
			if reason := r.Decode(n.Octets, &q, &d); reason != cnpdec.Accepted || d.Kind != want {
				t.Errorf("%v, IPv6 %v: notification %d is read as %v, %v", c.format, c.v6, i, d.Kind, reason)
			}
			if c.format == packet.StandardCNP && (d.Src != address(f4or6to(c.v6)) || d.BTH.DestQP != sourceQP) {
				t.Errorf("standard CNP from %v to QP %d, want it from the receiver to QP %d", d.Src, d.BTH.DestQP, sourceQP)
			}
			if c.format == packet.PPFC && (d.PPFC.PT == packet.PTResume) != (i == 1) {
				t.Errorf("PPFC notification %d: %+v", i, d.PPFC)
			}
		}
	}
}

// TestObserve: everything is decided and counted as what would have been, and nothing is sent or marked, nor counted as such.
func TestObserve(t *testing.T) {
	counts, marks := map[bool]uint64{}, map[bool]uint64{}
	for _, observe := range []bool{false, true} {
		p := notifying(byAnything...)
		p.Ports[wan].PerFlow, p.Observe = 1_000, observe
		s := newScene(t, p, nil)
		for i := range uint32(20) {
			s.fill(1, data(true, i%4))
			s.Advance(500)
		}
		first, marked := counters.SentFirst, s.Count(wan, counters.ECNMarked)
		marks[observe] = marked
		if observe {
			first, marks[observe] = counters.ObservedFirst, s.Count(wan, counters.ECNObserved)
		}
		if n := s.Plane.Port(wan).Marked[0]; n != marked {
			t.Errorf("observe %v: %d packets marked in the class, %d at the port", observe, n, marked)
		}
		s.Drain()
		for f := range packet.SentNotifications {
			counts[observe] += s.Count(fabric, first+counters.Counter(f))
		}
		notes := s.finish()
		if observe && (len(notes) != 0 || marked != 0) || !observe && (len(notes) == 0 || marked == 0) {
			t.Errorf("observe %v: %d notifications, %d marks", observe, len(notes), marked)
		}
	}
	if counts[true] != counts[false] || counts[true] == 0 {
		t.Errorf("%d notifications would have been sent, %d are", counts[true], counts[false])
	}
	if marks[true] != marks[false] || marks[true] == 0 {
		t.Errorf("%d packets would have been marked, %d are", marks[true], marks[false])
	}
}

// TestSlowingDownNeedsNotification: a flow that becomes slower has slowed down because of a notification only if its sender got one.
func TestSlowingDownNeedsNotification(t *testing.T) {
	for _, c := range []struct {
		name           string
		observe, first bool // the sender is notified before its flow slows down, or would be
		want           counters.Suppression
	}{
		{"notified", false, true, counters.SlowingDown},
		{"observed", true, true, counters.AlreadySlower},
		{"never", false, false, counters.AlreadySlower},
	} {
		p := notifying(grant("198.18.0.0/16", packet.LongHaulCNP))
		p.Observe = c.observe
		r := &p.Ports[wan].Response
		r.RTT, r.Interval = 10*ms, 1000
		if !c.first {
			r.KMax = 200_000
		}
		s := newScene(t, p, func(s *testkit.Setup) { s.Rate = 5_730_000 })
		send := func(every, time int64) {
			for end := s.Now + time; s.Now < end; {
				s.fill(1, data(false, 0))
				s.Advance(every)
				s.Settle()
			}
		}
		send(ms, 60*ms) // the line takes 0.7 packets a ms
		send(3*ms, 15*ms)
		lower := *s.Plane.Policy()
		lower.Ports = slices.Clone(lower.Ports)
		lower.Ports[wan].KMax = kMax
		if err := s.Plane.SetPolicy(&lower); err != nil {
			t.Fatal(err)
		}
		send(3*ms, 9*ms)
		other := counters.SlowingDown + counters.AlreadySlower - c.want
		if got := s.suppressed(fabric); got[c.want.String()] == 0 || got[other.String()] != 0 {
			t.Errorf("%s: %v, expected %v", c.name, got, c.want)
		}
		s.Drain()
		s.Close(t)
	}
}

// TestResponseProperties, over random traffic: no window of a flow holds two notifications, no Resume goes to a sender that wasn't
// asked to slow down, one goes to each that was once the queue stays empty, nothing goes to a host that isn't configured, and no packet has
// CE that a Fast CNP is about.
func TestResponseProperties(t *testing.T) {
	static := knownQPs(t)
	rapid.Check(t, func(t *rapid.T) {
		const flows = 6
		interval := rapid.SampledFrom([]int64{1_000, 20_000, 500_000}).Draw(t, "interval")
		p := notifying(grant("198.18.0.0/16", packet.LongHaulCNP))
		r := &p.Ports[wan].Response
		p.Ports[wan].PerFlow = 5_000_000
		*r = congestion.Response{Triggers: r.Triggers, Marks: true, Ladder: congestion.DefaultLadder, Resumes: true, ResumePercent: 50, Disclose: true, Rate: 1e9,
			RTT: rapid.SampledFrom([]int64{0, 100_000, 2_000_000}).Draw(t, "RTT"), Interval: interval}
		r.Marking, r.Growth = rapid.SampledFrom([]uint32{0, 200_000}).Draw(t, "V_ecn"), rapid.SampledFrom([]int64{0, 1_000_000}).Draw(t, "V_growth")
		rig := testkit.New(t, testkit.Setup{Rate: 1e9, Policy: p, Static: static, Capacity: 64_000, Frames: 256, Buffers: 2048})
		var notes []testkit.Sent
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			f := data(false, uint32(rapid.IntRange(0, flows-1).Draw(t, "flow")))
			if rapid.IntRange(0, 9).Draw(t, "stranger") == 0 {
				f.Src = "203.0.113.9"
			}
			for range rapid.IntRange(1, 12).Draw(t, "frames") {
				rig.Inject(t, fabric, f.Frame())
			}
			rig.Settle()
			rig.Advance(rapid.Int64Range(0, 300_000).Draw(t, "ns"))
			notes = append(notes, rig.Take(fabric)...)
		}
		rig.Drain()
		notes = append(notes, rig.Take(fabric)...)
		slowed, last := map[uint32]bool{}, map[uint32]int64{}
		for _, n := range notes {
			if _, q := kindOf(n); q.Dst != address(sender4) {
				t.Fatalf("a notification to %v", q.Dst)
			}
			f := longHaulOf(t, n)
			action, qp := congestion.Action(f[1]), f[3]
			if at, ok := last[qp]; ok && n.Now-at < 5_000_000-310_000 { // a notification leaves up to a step of time, 0.3 ms, after it was decided
				t.Fatalf("two notifications of QP %d within %d ns", qp, n.Now-at)
			}
			last[qp] = n.Now
			if action == congestion.Resume {
				if !slowed[qp] {
					t.Fatalf("a Resume to QP %d, which wasn't asked to slow down", qp)
				}
				slowed[qp] = false
				continue
			}
			slowed[qp] = slowed[qp] || action != congestion.Notify
		}
		for qp, waits := range slowed {
			if waits {
				t.Fatalf("no Resume to QP %d", qp)
			}
		}
		rig.Close(t)
	})
}

// TestNoCEWithFastCNP: of the packets above K_min those are not marked whose Fast CNP was sent.
func TestNoCEWithFastCNP(t *testing.T) {
	p := notifying(byAnything...)
	s := newScene(t, p, nil)
	s.fill(10, data(true, 0))
	marked, sent := s.Count(wan, counters.ECNMarked), uint64(0)
	s.Drain()
	for _, f := range s.Take(wan) {
		var q packet.Parsed
		if packet.Parse(f.Octets, f.Length, &q); q.Kind == packet.RoCEv2 && q.ECN == packet.CE {
			sent++
		}
	}
	fast := s.Count(fabric, counters.SentFirst+counters.Counter(packet.FastCNP))
	if sent != marked || fast == 0 || marked+fast != 8 { // two packets find the queue at K_min or below
		t.Errorf("%d packets marked, %d with CE left, %d Fast CNPs: want 8 marked or answered", marked, sent, fast)
	}
	s.finish()
}

// TestNoCEWithOtherFastCNP: nor is a packet marked that causes a Fast CNP for another reason than this gateway's queue: it arrived with CE, or a
// congested node has asked for the notification.
func TestNoCEWithOtherFastCNP(t *testing.T) {
	f := data(true, 0)
	for _, c := range []struct {
		name   string
		arrive func(s *scene)
	}{
		{"CE on arrival", func(s *scene) {
			marked := f
			marked.ECN = packet.CE
			s.arrive(marked.Frame())
		}},
		{"for a proxy", func(s *scene) {
			ask := f
			ask.ECN = packet.NotECT
			s.arrive(ask.Frame())
			s.arriveAt(wan, asking(t, ask.Frame(), own6, 5))
			s.arrive(f.Frame())
		}},
	} {
		p := proxyFor(packet.FastCNP)
		p.Ports[wan].KMin, p.Ports[wan].OnArrival, p.Ports[wan].ClearCE = 1, true, true
		s := newScene(t, p, nil)
		c.arrive(s)
		s.fill(1, f)
		s.Drain()
		out := s.Take(wan)
		for i, o := range out {
			_, q := kindOf(o)
			if ce := q.ECN == packet.CE; q.Kind == packet.RoCEv2 && ce != (i == len(out)-1) {
				t.Errorf("%s: packet %d of %d leaves with CE: %v", c.name, i+1, len(out), ce)
			}
		}
		if n := s.Count(fabric, counters.SentFirst+counters.Counter(packet.FastCNP)); n != 1 {
			t.Errorf("%s: %d Fast CNPs", c.name, n)
		}
		s.finish()
	}
}

// TestNotifiedElsewhere: a notification of another gateway that passes to a sender counts as one of this gateway's own; a Resume doesn't, nor
// does one about another flow.
func TestNotifiedElsewhere(t *testing.T) {
	for _, c := range []struct {
		name     string
		v6       bool
		format   packet.Notification
		action   cnpgen.Action
		flow     uint32
		sourceQP uint32
		counts   bool
	}{
		{"Long-haul CNP", false, packet.LongHaulCNP, cnpgen.RateReduce, 0, sourceQP, true},
		{"Long-haul CNP in ICMPv6", true, packet.LongHaulCNPICMPv6, cnpgen.Pause, 0, sourceQP, true},
		{"Fast CNP", true, packet.FastCNP, 0, 0, 0, true},
		{"a Resume", false, packet.LongHaulCNP, cnpgen.Resume, 0, sourceQP, false},
		{"about another QP", false, packet.LongHaulCNP, cnpgen.RateReduce, 0, sourceQP + 1, false},
		{"about another flow", true, packet.FastCNP, 0, 1, 0, false},
	} {
		p := notifying(byAnything...)
		p.Ports[wan].PerFlow, p.Domain = 1e12, vouched
		s := newScene(t, p, nil)
		s.fill(3, data(c.v6, 0)) // above K_min: the sender is watched
		frame := data(c.v6, c.flow).Frame()
		var parsed packet.Parsed
		packet.Parse(frame, uint32(len(frame)), &parsed)
		target, _ := cnpgen.TargetOf(frame, &parsed)
		other, out, n := p.Build, make([]byte, 256), 0
		other.IPv4, other.IPv6 = address("192.0.2.9"), address("2001:db8::9")
		l := cnpgen.LongHaul{Action: c.action, Parameter: 30, SourceQP: c.sourceQP}
		switch c.format {
		case packet.FastCNP:
			n, _ = cnpgen.FastCNP(out, &target, &other, packet.IOAMTrace{})
		case packet.LongHaulCNP:
			n = cnpgen.LongHaulCNP(out, &target, &other, &l, nil)
		case packet.LongHaulCNPICMPv6:
			n = cnpgen.LongHaulCNPICMPv6(out, &target, &other, &l, nil)
		}
		s.arriveAt(wan, out[:n])
		s.fill(3, data(c.v6, 0))
		limited := s.suppressed(fabric)["flow-limit"]
		if notified := s.notified() > 0; notified == c.counts || c.counts && limited == 0 {
			t.Errorf("%s: notified here: %v, %d times too soon", c.name, notified, limited)
		}
		s.Drain()
		s.Close(t)
	}
}

// vouched is the domain of the gateways whose notifications count.
var vouched = stage.NewDomain(nil, prefixes("192.0.2.9/32", "2001:db8::9/128"), false)

// elsewhere is a notification by another gateway to the sender of a data packet; qp is the source QP that a Long-haul CNP names.
func elsewhere(p *dataplane.Policy, frame []byte, format packet.Notification, qp uint32) []byte {
	var parsed packet.Parsed
	packet.Parse(frame, uint32(len(frame)), &parsed)
	target, _ := cnpgen.TargetOf(frame, &parsed)
	other, out, n := p.Build, make([]byte, 256), 0
	other.IPv4, other.IPv6 = address("192.0.2.9"), address("2001:db8::9")
	switch format {
	case packet.FastCNP:
		n, _ = cnpgen.FastCNP(out, &target, &other, packet.IOAMTrace{})
	case packet.PPFC:
		n = cnpgen.PPFCNotification(out, &target, &other, &cnpgen.PPFC{Duration: 30})
	case packet.LongHaulCNP:
		n = cnpgen.LongHaulCNP(out, &target, &other, &cnpgen.LongHaul{Level: 180, Action: cnpgen.RateReduce, Parameter: 30, SourceQP: qp}, nil)
	}
	return out[:n]
}

// TestNotifiedElsewhereFlow: another gateway's notification counts for the flow that it names, and for no other flow of its sender: not for that to
// the same QP number of another receiver, in another VLAN, or behind another port.
func TestNotifiedElsewhereFlow(t *testing.T) {
	to := func(v6 bool, dst string) testkit.RoCE {
		f := data(v6, 0)
		f.Dst = dst
		return f
	}
	tagged := func(v6 bool) testkit.RoCE {
		f := data(v6, 0)
		f.Tags = []uint32{0x81000005}
		return f
	}
	for _, c := range []struct {
		name    string
		watched testkit.RoCE
		about   testkit.RoCE
		format  packet.Notification
		port    int
		damaged bool
		counts  bool
	}{
		{"Fast CNP", data(true, 0), data(true, 0), packet.FastCNP, wan, false, true},
		{"Fast CNP with a VLAN tag", tagged(true), tagged(true), packet.FastCNP, wan, false, true},
		{"Fast CNP, damaged", data(true, 0), data(true, 0), packet.FastCNP, wan, true, false},
		{"Fast CNP about another receiver", data(true, 0), to(true, "fd00:18::77"), packet.FastCNP, wan, false, false},
		{"Fast CNP in another VLAN", data(true, 0), tagged(true), packet.FastCNP, wan, false, false},
		{"Fast CNP by another port", data(true, 0), data(true, 0), packet.FastCNP, wan + 2, false, false},
		{"Long-haul CNP", data(false, 0), data(false, 0), packet.LongHaulCNP, wan, false, true},
		{"Long-haul CNP in another VLAN", data(false, 0), tagged(false), packet.LongHaulCNP, wan, false, false},
		{"PPFC", data(false, 0), data(false, 0), packet.PPFC, wan, false, true},
		{"PPFC about a receiver's QP with the sender's number", data(false, 0), toQP(data(false, 0), sourceQP), packet.PPFC, wan, false, false},
	} {
		for worker := range 2 { // at which it arrives; the flow is at worker 0
			p := notifying(byAnything...)
			if c.format == packet.PPFC {
				p = notifying(grant("198.18.0.0/16", packet.PPFC))
				p.Who.Enabled[packet.PPFC] = true
			}
			p.Ports = append(p.Ports, p.Ports...)
			p.Ports[wan].PerFlow, p.Domain = 1e12, vouched
			s := newScene(t, p, func(s *testkit.Setup) { s.Pairs, s.Workers = 2, 2 })
			s.fill(3, c.watched)
			passes := elsewhere(p, c.about.Frame(), c.format, sourceQP)
			if c.damaged {
				passes[len(passes)-1] ^= 1
			}
			s.InjectAt(t, worker, c.port, passes)
			s.Settle()
			s.fill(3, c.watched)
			if notified := s.notified() > 0; notified == c.counts {
				t.Errorf("%s, at worker %d: notified here: %v, suppressed %v", c.name, worker, notified, s.suppressed(fabric))
			}
			s.Drain()
			s.Close(t)
		}
	}
}
