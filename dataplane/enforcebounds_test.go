package dataplane_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// TestEnforceRefuses: what the gateway doesn't carry out, and why. Each case is a Pause of flow 0 that holds nothing.
func TestEnforceRefuses(t *testing.T) {
	pause := longHaul(cnpgen.LongHaul{Action: cnpgen.Pause, Parameter: 500})
	forged := func(out []byte, t *cnpgen.Target, _ []byte, _ *packet.Parsed) int {
		other := far
		other.IPv4 = address("203.0.113.1")
		l := cnpgen.LongHaul{Action: cnpgen.Pause, Parameter: 500, SourceQP: sourceQP, Level: 200}
		return cnpgen.LongHaulCNP(out, t, &other, &l, nil)
	}
	damaged := func(out []byte, t *cnpgen.Target, frame []byte, p *packet.Parsed) int {
		n := pause(out, t, frame, p)
		out[n-1] ^= 1 // of the ICRC
		return n
	}
	stranger := func(out []byte, t *cnpgen.Target, _ []byte, _ *packet.Parsed) int {
		return cnpgen.StandardCNP(out, t, &far, sourceQP+7)
	}
	unknown := func(out []byte, t *cnpgen.Target, _ []byte, _ *packet.Parsed) int {
		l := cnpgen.LongHaul{Action: cnpgen.Pause, Parameter: 500, SourceQP: sourceQP + 9, Level: 200}
		return cnpgen.LongHaulCNP(out, t, &far, &l, nil)
	}
	aboutTCP := func(out []byte, t *cnpgen.Target, _ []byte, _ *packet.Parsed) int {
		frame := other(sender4, receiver4, packet.ProtoTCP, 200)
		var p packet.Parsed
		packet.Parse(frame, uint32(len(frame)), &p)
		return toProxy(out, t, frame, &p)
	}
	for _, c := range []struct {
		name   string
		build  builder
		change func(*dataplane.Policy)
		hold   uint64
		why    string // "": not counted
		passes bool
	}{
		{"a source that isn't of the domain", forged, nil, 50e6, "", false}, // the domain filter drops it
		{"no domain", pause, func(p *dataplane.Policy) { p.Domain = nil }, 50e6, "untrusted-source", true},
		{"a wrong ICRC", damaged, nil, 50e6, "malformed", true},
		{"a Pause of 0 us", longHaul(cnpgen.LongHaul{Action: cnpgen.Pause}), nil, 50e6, "malformed", true},
		{"a notification to a proxy about TCP", aboutTCP, nil, 50e6, "malformed", true},
		{"a standard CNP to a QP without a connection", stranger, nil, 50e6, "", true},
		{"a flow that sends nothing", unknown, nil, 50e6, "", true},
		{"a Resume of a flow that isn't slowed down", longHaul(cnpgen.LongHaul{Action: cnpgen.Resume}), nil, 50e6, "nothing-to-resume", true},
		{"a sender of another prefix", pause, func(p *dataplane.Policy) { p.Ports[wan].Enforce = senders("198.19.0.0/16") }, 50e6, "", true},
		{"no senders", pause, func(p *dataplane.Policy) { p.Ports[wan].Enforce = nil }, 50e6, "", true},
		{"no pacing", pause, func(p *dataplane.Policy) { p.Ports[wan].Pacing = nil }, 50e6, "", true},
		{"no memory for pacing", pause, nil, 0, "", true},
		{"observe mode", pause, func(p *dataplane.Policy) { p.Observe = true }, 50e6, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			policy := enforcing()
			if c.change != nil {
				c.change(policy)
			}
			s := newEnforceScene(t, false, policy, c.hold)
			s.arriveAt(wan, s.notification(0, c.build))
			s.send(100_000)
			if n := s.Plane.Port(wan).PacedFrames + s.Count(wan, counters.PacedPackets); n != 0 {
				t.Errorf("%d packets were held", n)
			}
			if got := s.enforceCounts(); c.why == "" && len(got) != 0 || c.why != "" && (len(got) != 1 || got[c.why] != 1) {
				t.Errorf("counted %v, expected %q", got, c.why)
			}
			if passed := len(s.Take(fabric)) == 1; passed != c.passes {
				t.Errorf("the notification was forwarded: %v", passed)
			}
			s.Drain()
			s.Close(t)
		})
	}
}

// TestEnforceFull: a sender whose held packets take half of the space has its oldest ones sent; another sender's flow still finds space.
// Requests that find no slot are counted.
func TestEnforceFull(t *testing.T) {
	s := newEnforceScene(t, false, enforcing(), 128*1250)
	s.arriveAt(wan, s.notification(0, longHaul(cnpgen.LongHaul{Action: cnpgen.Pause, Parameter: 60_000})))
	s.send(600_000) // 150 packets
	if n := s.Plane.Port(wan).PacedFrames; n != 64 {
		t.Errorf("%d packets are held, expected half of 128", n)
	}
	if n := s.Count(wan, counters.PacedTooMany); n != 150-64 {
		t.Errorf("%d packets left early, expected %d", n, 150-64)
	}
	another := data(false, 0)
	another.Src, another.DestQP, another.Size = "198.18.7.7", 300, 1250
	var p packet.Parsed
	frame := another.Frame()
	packet.Parse(frame, uint32(len(frame)), &p)
	target, _ := cnpgen.TargetOf(frame, &p)
	note := make([]byte, cnpgen.MaxLen)
	note = note[:cnpgen.ProxyNotification(note, &target, &far, frame, &p, address("198.18.250.250"), 1)]
	s.arriveAt(wan, note)
	for range 40 { // to measure the rate
		s.arrive(frame)
		s.Advance(2_000)
		s.Settle()
	}
	if n := s.Plane.Port(wan).PacedFrames; n <= 64 {
		t.Errorf("%d packets are held, none of the other sender", n)
	}
	for qp := range uint32(300) { // of flows that send nothing
		l := cnpgen.LongHaul{Action: cnpgen.Pause, Parameter: 500, SourceQP: 5000 + qp, Level: 1}
		s.arriveAt(wan, s.notification(0, func(out []byte, t *cnpgen.Target, _ []byte, _ *packet.Parsed) int {
			return cnpgen.LongHaulCNP(out, t, &far, &l, nil)
		}))
	}
	if n := s.enforceCounts()["no-space"]; n == 0 || n > 300-200 {
		t.Errorf("%d requests found no slot, expected those beyond some 256", n)
	}
	s.Drain()
	s.Close(t)
}

// TestEnforceFlood: forged CNPs take half of the slots, and leave the others to gateways.
func TestEnforceFlood(t *testing.T) {
	s := newEnforceScene(t, false, enforcing(), 50e6)
	for qp := range uint32(300) {
		s.arriveAt(wan, s.notification(0, func(out []byte, t *cnpgen.Target, _ []byte, _ *packet.Parsed) int {
			return cnpgen.StandardCNP(out, t, &far, 5000+qp)
		}))
	}
	if n := s.enforceCounts()["no-space"]; n != 300-128 {
		t.Errorf("%d CNPs found no slot, expected all but 128", n)
	}
	s.arriveAt(wan, s.notification(0, longHaul(cnpgen.LongHaul{Action: cnpgen.Pause, Parameter: 500})))
	s.send(20_000)
	if n := s.Plane.Port(wan).PacedFrames; n != 5 {
		t.Errorf("%d packets held, expected 5", n)
	}
	s.Drain()
	s.Close(t)
}

// TestEnforceReload: a new policy's senders count from the next notification on; when pacing is switched off, the packets that are held
// leave in order.
func TestEnforceReload(t *testing.T) {
	s := newEnforceScene(t, false, enforcing(), 50e6)
	pause := s.notification(0, longHaul(cnpgen.LongHaul{Action: cnpgen.Pause, Parameter: 500}))
	s.setPolicy(func(p *dataplane.Policy) { p.Ports[wan].Enforce = senders("198.19.0.0/16") })
	s.arriveAt(wan, pause)
	s.send(50_000)
	if n := s.Count(wan, counters.PacedPackets); n != 0 {
		t.Errorf("%d packets of another prefix held", n)
	}
	s.setPolicy(func(p *dataplane.Policy) { p.Ports[wan].Enforce = senders("198.18.0.0/16") })
	s.arriveAt(wan, pause)
	s.send(50_000)
	if n := s.Plane.Port(wan).PacedFrames; n == 0 {
		t.Error("no packet held")
	}
	s.setPolicy(func(p *dataplane.Policy) { p.Ports[wan].Pacing, p.Ports[wan].Enforce = nil, nil })
	s.send(600_000)
	s.arriveAt(wan, pause)
	held := s.Count(wan, counters.PacedPackets)
	s.send(100_000)
	if n := s.Count(wan, counters.PacedPackets); n != held || s.Plane.Port(wan).PacedFrames != 0 {
		t.Errorf("%d packets held since pacing is off", n-held)
	}
	s.setPolicy(func(*dataplane.Policy) {})
	other := cnpgen.LongHaul{Action: cnpgen.RateReduce, Parameter: 50, SourceQP: sourceQP + 1, Level: 9}
	s.arriveAt(wan, s.notification(1, func(out []byte, t *cnpgen.Target, _ []byte, _ *packet.Parsed) int {
		return cnpgen.LongHaulCNP(out, t, &far, &other, nil)
	}))
	s.setPolicy(func(p *dataplane.Policy) { p.Ports[wan].Pacing = nil })
	s.send(20_000)
	if n := s.Plane.Port(wan).PacedFrames; n != 0 {
		t.Errorf("%d packets held because of a notification from before pacing was switched off", n)
	}
	s.Drain()
	s.inOrder()
	s.Close(t)
}

// TestEnforceDamaged: notifications of every kind with any bytes changed do no harm: no packet is lost or out of order.
func TestEnforceDamaged(t *testing.T) {
	builders := []builder{standardCNP, toProxy, longHaul(cnpgen.LongHaul{Action: cnpgen.Pause, Parameter: 50}), ppfc(cnpgen.PPFC{Duration: 40})}
	rapid.Check(t, func(rt *rapid.T) {
		s := newEnforceScene(t, false, enforcing(), 20e6)
		for range rapid.IntRange(1, 20).Draw(rt, "notifications") {
			n := s.notification(0, rapid.SampledFrom(builders).Draw(rt, "kind"))
			for range rapid.IntRange(0, 3).Draw(rt, "changes") {
				n[rapid.IntRange(34, len(n)-1).Draw(rt, "place")] = rapid.Byte().Draw(rt, "byte")
			}
			var p packet.Parsed
			packet.Parse(n, uint32(len(n)), &p)
			if p.BTH != 0 && rapid.Bool().Draw(rt, "a right ICRC") {
				packet.PutICRC(n, int(p.L3), int(p.BTH), int(p.ICRC), true)
			}
			s.arriveAt(wan, n)
			s.send(rapid.Int64Range(0, 50_000).Draw(rt, "ns"))
		}
		s.Drain()
		if n := s.inOrder(); n != [2]int{int(s.psn[0]) - 5, int(s.psn[1]) - 5} {
			rt.Fatalf("%d packets left of %d that came after five", n, s.psn)
		}
		s.Close(t)
	})
}

// TestEnforceFlowEnds: a flow that ages while its packets are held, and begins again, keeps its order.
func TestEnforceFlowEnds(t *testing.T) {
	p := enforcing()
	s := &enforceScene{scene: &scene{testkit.New(t, testkit.Setup{Rate: 10e9, Static: knownQPs(t), Policy: p, Change: func(c *dataplane.Config) {
		c.Ports[wan].Paced, c.Aging = 1e6, 20*ms
	}}), t}}
	s.send(20_000)
	s.arriveAt(wan, s.notification(0, longHaul(cnpgen.LongHaul{Action: cnpgen.Pause, Parameter: 60_000})))
	s.send(40_000)
	for range 400 {
		s.Advance(ms / 10)
		s.Settle()
	}
	if n := s.Plane.Worker(0).FlowStats().Aged; n == 0 {
		t.Error("no flow has ended: not what was to be tested")
	}
	s.send(40_000)
	if n := s.Plane.Port(wan).PacedFrames; n != 20 {
		t.Errorf("%d packets held, expected those from before and after", n)
	}
	s.Drain()
	if n := s.inOrder(); n != [2]int{25, 25} {
		t.Errorf("%d packets left, expected 25 of each flow", n)
	}
	s.Close(t)
}

// TestEnforceByTwoWorkers: a notification that comes to one worker slows down the packets that come to the other one.
func TestEnforceByTwoWorkers(t *testing.T) {
	r := testkit.New(t, testkit.Setup{Workers: 2, Rate: 10e9, Static: knownQPs(t), Policy: enforcing(),
		Change: func(c *dataplane.Config) { c.Ports[wan].Paced = 2e6 }})
	s := &enforceScene{scene: &scene{r, t}}
	r.InjectAt(t, 1, fabric, s.packet(0))
	r.Settle()
	r.InjectAt(t, 0, wan, s.notification(0, longHaul(cnpgen.LongHaul{Action: cnpgen.Pause, Parameter: 500})))
	r.Settle()
	for range 5 {
		r.InjectAt(t, 1, fabric, s.packet(0))
		r.Settle()
	}
	if n := r.Plane.Port(wan).PacedFrames; n != 5 {
		t.Errorf("%d packets held, expected 5", n)
	}
	r.Advance(500_000)
	r.Settle()
	r.Drain()
	if n := r.Plane.Port(wan).PacedFrames; n != 0 {
		t.Errorf("%d packets still held", n)
	}
	r.Close(t)
}

// TestEnforceCountsOnce: a Resume of a flow that isn't slowed down counts once, however many workers have looked for the flow, and not at all if one of
// them has slowed it down. What finds no place in a mailbox counts, too.
func TestEnforceCountsOnce(t *testing.T) {
	const workers = 4
	r := testkit.New(t, testkit.Setup{Workers: workers, Rate: 10e9, Static: knownQPs(t), Policy: enforcing(),
		Change: func(c *dataplane.Config) { c.Ports[wan].Paced = 2e6 }})
	s := &enforceScene{scene: &scene{r, t}}
	resume := s.notification(0, longHaul(cnpgen.LongHaul{Action: cnpgen.Resume}))
	pause := s.notification(0, longHaul(cnpgen.LongHaul{Action: cnpgen.Pause, Parameter: 50_000}))
	expect := func(when string, nothing, resumes, noSpace uint64) {
		t.Helper()
		got := s.enforceCounts()
		if got["nothing-to-resume"] != nothing || got["resume"] != resumes || got["no-space"] != noSpace {
			t.Errorf("%s: counted %v, expected %d nothing-to-resume, %d resume, %d no-space", when, got, nothing, resumes, noSpace)
		}
	}
	r.InjectAt(t, 0, wan, resume)
	r.Settle()
	expect("no flow is slowed down", 1, 0, 0)
	r.InjectAt(t, 0, wan, pause)
	r.Settle()
	r.InjectAt(t, 3, fabric, s.packet(0))
	r.Settle()
	r.Advance(20 * ms) // the requests that wait at the other workers end
	for range 300 {
		r.Settle()
		r.Advance(1000)
	}
	r.InjectAt(t, 0, wan, resume)
	r.Settle()
	expect("worker 3 has slowed it down", 1, 1, 0)
	for range 64 + 36 { // the others don't step
		r.InjectAt(t, 0, wan, resume)
		r.Plane.Worker(0).Step()
	}
	expect("mailboxes are full", 1, 1, 36)
	r.Settle()
	expect("the others step again", 1+64, 1, 36)
	for range 300 { // the late ones don't use up what the worker has for requests
		r.InjectAt(t, 0, wan, resume)
		r.Settle()
	}
	expect("afterwards", 1+64+300, 1, 36)
	r.Drain()
	r.Close(t)
}

// TestEnforceWithLateWorker: as long as a worker is late, what others can't take is counted, once each.
func TestEnforceWithLateWorker(t *testing.T) {
	r := testkit.New(t, testkit.Setup{Workers: 3, Rate: 10e9, Static: knownQPs(t), Policy: enforcing(),
		Change: func(c *dataplane.Config) { c.Ports[wan].Paced = 2e6 }})
	s := &enforceScene{scene: &scene{r, t}}
	resume := s.notification(0, longHaul(cnpgen.LongHaul{Action: cnpgen.Resume}))
	const all = 1000
	for range all {
		r.InjectAt(t, 0, wan, resume)
		r.Plane.Worker(0).Step()
		r.Plane.Worker(1).Step()
	}
	r.Settle()
	if got := s.enforceCounts(); got["nothing-to-resume"] != 64 || got["no-space"] != all-64 {
		t.Errorf("counted %v, expected 64 nothing-to-resume and the others no-space", got)
	}
	r.Drain()
	r.Close(t)
}

// TestEnforceProperties: whatever notifications come, no packet is lost, those of a flow leave in order, and none of a paused flow leaves
// before the end of its pause.
func TestEnforceProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := enforcing()
		p.Ports[wan].Pacing.HostRate = 4e9 // both flows together less than the line: nothing waits behind the pacer
		p.Ports[wan].Pacing.Hold, p.Ports[wan].Pacing.Recovery = rapid.Int64Range(0, 1e6).Draw(rt, "hold"), rapid.Int64Range(1, 1e7).Draw(rt, "recovery")
		s := newEnforceScene(t, false, p, 20e6)
		pausedTo := [2]int64{}
		steps := rapid.IntRange(5, 40).Draw(rt, "steps")
		for range steps {
			flow := rapid.Uint32Range(0, 1).Draw(rt, "flow")
			l := cnpgen.LongHaul{Action: cnpgen.Action(rapid.IntRange(0, 3).Draw(rt, "action")), SourceQP: sourceQP + flow, Level: 9}
			if l.Action != cnpgen.Notify {
				l.Parameter = rapid.Uint16Range(0, 100).Draw(rt, "parameter")
			}
			before, queued := len(s.Sent[0]), s.Now+3_000 // until when packets leave that the pacer has released
			s.arriveAt(wan, s.notification(flow, func(out []byte, t *cnpgen.Target, _ []byte, _ *packet.Parsed) int {
				return cnpgen.LongHaulCNP(out, t, &far, &l, nil)
			}))
			switch l.Action {
			case cnpgen.Pause:
				pausedTo[flow] = max(pausedTo[flow], s.Now+1000*int64(l.Parameter))
			case cnpgen.Resume:
				pausedTo[flow] = 0
			}
			s.send(rapid.Int64Range(0, 100_000).Draw(rt, "ns"))
			for _, f := range s.Sent[0][before:] {
				if _, q := kindOf(f); f.Port == wan && q.DestQP-100 < 2 && f.Now > queued && f.Now < pausedTo[q.DestQP-100] {
					rt.Fatalf("a packet of flow %d left at %d, in a pause until %d", q.DestQP-100, f.Now, pausedTo[q.DestQP-100])
				}
			}
		}
		s.Drain()
		if n := s.inOrder(); n != [2]int{int(s.psn[0]) - 5, int(s.psn[1]) - 5} {
			rt.Fatalf("%d packets left of %d that came after five", n, s.psn)
		}
		s.Close(t)
	})
}

// TestEnforceAllocatesNothing: notifications are carried out without allocation.
func TestEnforceAllocatesNothing(t *testing.T) {
	r := testkit.New(t, testkit.Setup{Rate: 10e9, Static: knownQPs(t), Policy: enforcing(), Forget: true, Capacity: 50e6, Frames: 4096, Buffers: 16384,
		Change: func(c *dataplane.Config) { c.Ports[wan].Paced = 5e6 }})
	s := &enforceScene{scene: &scene{r, t}}
	var notes [][]byte
	for _, a := range []cnpgen.LongHaul{{Action: cnpgen.Notify}, {Action: cnpgen.Pause, Parameter: 20}, {Action: cnpgen.RateReduce, Parameter: 10}, {Action: cnpgen.Resume}} {
		notes = append(notes, s.notification(0, longHaul(a)))
	}
	notes = append(notes, s.notification(0, toProxy), s.notification(1, toProxy))
	frames := [][]byte{s.packet(0), s.packet(1)}
	place := 0
	round := func() {
		r.Inject(t, fabric, frames[place%2])
		r.Inject(t, wan, notes[place%len(notes)])
		place++
		r.Advance(5_000)
		r.Plane.Worker(0).Step()
	}
	for range 200 {
		round()
	}
	if n := testing.AllocsPerRun(1000, round); n != 0 {
		t.Errorf("%v allocations a step", n)
	}
	for _, action := range []string{"slow-down", "pause", "rate-reduce", "resume"} {
		if s.enforceCounts()[action] == 0 {
			t.Errorf("no %s was carried out: not what was to be tested", action)
		}
	}
	r.Drain()
	r.Close(t)
}
