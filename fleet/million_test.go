//go:build long

package fleet

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/fleet/bus"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/synth"
)

// The pairs of TestMillion: each box sees one direction of all.
const (
	millionHosts = 10_000 // pairs of hosts
	millionQPs   = 100    // connections of each
)

// feed shows a box one packet of each connection: its direction's, with the port of the two QPs.
func (s *site) feed(box int, psn uint32) {
	b := s.boxes[box]
	for h := range uint64(millionHosts) {
		for q := range uint32(millionQPs) {
			a, z := 1000+q*2, 500_000+q*3+uint32(h)
			e := synth.Event{From: synth.End(box)}
			p := &e.Packet
			p.Kind, p.Src, p.Dst = packet.RoCEv2, packet.Addr{Lo: 0xffff0a000000 + h}, packet.Addr{Lo: 0xffff0b000000 + h}
			p.SrcPort, p.Opcode, p.PSN = packet.SourcePort(a, z), packet.RCSendOnly, 1_000_000+psn+q*7919
			if p.DestQP = z; box == 1 {
				p.Src, p.Dst, p.DestQP, p.Opcode = p.Dst, p.Src, a, packet.RCAcknowledge
			}
			b.learner.StartBurst()
			k := flowtable.Key{Src: p.Src, Dst: p.Dst, DestQP: p.DestQP, Port: uint16(box)}
			b.record[0].Set(p)
			b.record[0].Flow = k.Words()
			b.table.Lookup(b.record[:], s.now, b.found[:])
			if b.learner.Routine(b.found[:], b.record[:], 0) == 0 {
				b.learner.Observe(b.found[0].Index, &k, p, b.head[:], s.now)
			}
		}
	}
}

// known counts the flows of a box that are confirmed.
func (s *site) known(box int) (n int) {
	b := s.boxes[box]
	for x := flowtable.Index(1); x <= b.table.High(); x++ {
		if qp, ok := b.learner.SourceQP(x); ok {
			if want := b.table.Key(x); box == 0 && (qp-1000)%2 != 0 || want.DestQP == qp {
				s.t.Fatalf("flow %d is said to come from %d", x, qp)
			}
			n++
		}
	}
	return n
}

// cpu is the time that this thread has had a core.
func cpu(t testing.TB) time.Duration {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &at); err != nil {
		t.Fatal(err)
	}
	return time.Duration(at.Nano())
}

// TestMillion: 10^6 pairs on two boxes, each of which sees one direction. In a steady state the members need at most 5 % of a core and send at
// most 2 MB/s; a box that starts again gets all pairs within 10 s.
func TestMillion(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s := newSite(t, 2, millionHosts*millionQPs+1024, bus.Config{Delay: 100_000})
	var spent [2]time.Duration // of the members
	psn, fed := uint32(0), s.now
	step := func(until int64) {
		for s.now += 5e6; s.now <= until; s.now += 5e6 {
			if s.now-fed > 30e9 { // connections that live send now and then
				psn, fed = psn+1, s.now
				s.feed(0, psn)
				s.feed(1, psn)
			}
			for i, b := range s.boxes {
				start := cpu(s.t)
				b.Tick(s.now)
				spent[i] += cpu(s.t) - start
			}
			start := cpu(s.t)
			s.bus.Deliver(s.now)
			spent[0] += cpu(s.t) - start
		}
	}
	for ; psn < 4; psn++ {
		s.feed(0, psn)
		s.feed(1, psn)
	}
	from := s.now
	for s.known(0) < millionHosts*millionQPs*99/100 {
		if s.now-from > 1200e9 {
			t.Fatalf("%d of %d flows are confirmed after %d s; %+v", s.known(0), millionHosts*millionQPs, (s.now-from)/1e9, s.boxes[0].Stats())
		}
		step(s.now + 5e9)
	}
	t.Logf("%d flows confirmed after %d s; the members have used %v; %d MB sent", s.known(0), (s.now-from)/1e9, spent, s.bus.Bytes>>20)
	step(s.now + 60e9) // the rest of the reports
	spent = [2]time.Duration{}
	bytes, messages, at := s.bus.Bytes, s.bus.Messages, s.now
	step(s.now + 110e9) // each flow is sent again once
	seconds := float64(s.now-at) / 1e9
	core := (spent[0] + spent[1]).Seconds() / seconds / 2
	rate := float64(s.bus.Bytes-bytes) / seconds / 2
	t.Logf("steady state: %.2f %% of a core a box, %.2f MB/s and %.0f messages/s from each; %s", 100*core, rate/1e6, float64(s.bus.Messages-messages)/seconds/2,
		fmt.Sprint(s.boxes[0].Stats().Shown))
	if core > .05 || rate > 2e6 {
		t.Errorf("%.2f %% of a core, %.2f MB/s", 100*core, rate/1e6)
	}
}
