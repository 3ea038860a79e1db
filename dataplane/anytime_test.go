package dataplane_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/internal/testkit/effort"
	"github.com/cnpgate/cnpgate/pairing"
	"github.com/cnpgate/cnpgate/telemetry"
)

// congestedTraffic is the traffic of eight connections of four senders, above the rate of the WAN's line, then below it: data packets whose PSNs wrap, their ACKs, and steps
// of the worker at uneven times.
type congestedTraffic struct {
	draws *rand.Rand
	psn   [8]uint32
}

const congestedTime = 16_000_000 // ns

func newCongestedTraffic(seed uint64) *congestedTraffic {
	c := &congestedTraffic{draws: rand.New(rand.NewPCG(seed, 1))}
	for i := range c.psn {
		c.psn[i] = packet.PSNMask - uint32(c.draws.IntN(300))
	}
	return c
}

// run lets the traffic come to a gateway for congestedTime.
func (c *congestedTraffic) run(t *testing.T, r *testkit.Rig) {
	for end := r.Now + congestedTime; r.Now < end; {
		pause, each := int64(1_000+c.draws.IntN(10_000)), 5000
		switch left := end - r.Now; {
		case left < congestedTime/4:
			each = 20_000
		case left < congestedTime*3/4:
			pause = int64(100_000 + c.draws.IntN(400_000)) // the worker polls seldom
		}
		for range 1 + int(pause)/each {
			i := c.draws.IntN(len(c.psn))
			f := testkit.RoCE{Src: fmt.Sprintf("198.18.0.%d", i%4), Dst: receiver4, ECN: packet.ECT0, SrcPort: uint16(0xc000 + i), DestQP: uint32(100 + i), PSN: c.psn[i], Size: 300}
			r.Inject(t, fabric, f.Frame())
			if c.psn[i] = (c.psn[i] + 1) & packet.PSNMask; c.psn[i]%8 == 0 {
				r.Inject(t, wan, testkit.RoCE{Src: f.Dst, Dst: f.Src, SrcPort: f.SrcPort, Opcode: packet.RCAcknowledge, DestQP: uint32(200 + i), PSN: c.psn[i]}.Frame())
			}
		}
		r.Advance(pause)
		r.Settle()
	}
}

// atAnyTime makes a gateway that begins at a time, for traffic that it asks to reduce.
func atAnyTime(t *testing.T, time int64) *testkit.Rig {
	p := notifying(grant("198.18.0.0/31", packet.StandardCNP), grant("198.18.0.2/31", packet.LongHaulCNP))
	p.Who.Enabled[packet.StandardCNP] = true
	p.Ports[wan].Law = congestion.Law{Line: 0.025, Reference: 20_000}
	var pairs []pairing.QPPair
	for i := range uint32(8) {
		pairs = append(pairs, pairing.QPPair{Source: address(fmt.Sprintf("198.18.0.%d", i%4)), Destination: address(receiver4), SourceQP: 200 + i, DestinationQP: 100 + i})
	}
	m, err := pairing.NewQPMap(pairs, 1)
	if err != nil {
		t.Fatal(err)
	}
	r := testkit.New(t, testkit.Setup{Policy: p, Static: m, Rate: 200e6, Burst: 64})
	r.Advance(time - r.Now)
	return r
}

// anyTimes is how many seeds TestAnyTime has, monthHours how many hours the month of TestMonth.
const (
	anyTimes   = effort.Short + effort.Race + 20*effort.Long
	monthHours = 2*effort.Short + 2*effort.Race + 720*effort.Long
)

// TestAnyTime: a gateway does the same at any time: also while a clock of few bits wraps.
func TestAnyTime(t *testing.T) {
	// In a period, the parts of a second that the gateway counts in, from 16 ns up to 2^20 ns and seconds, begin at the same times.
	const period = 1 << 20 * 1_953_125
	wraps := []int64{1e6 << 31, 1e6 << 32, 1e3 << 31, 1e3 << 32, 1e9 << 16}
	for bits := 32; bits <= 52; bits++ {
		wraps = append(wraps, 1<<bits)
	}
	for seed := range uint64(anyTimes) {
		for _, wrap := range wraps {
			at := wrap - congestedTime/2
			other := at - period
			if other < 0 {
				other = at + period
			}
			var sent [2][]testkit.Sent
			for i, begin := range [2]int64{at, other} {
				r := atAnyTime(t, begin)
				newCongestedTraffic(seed).run(t, r)
				r.Drain()
				if n := r.Plane.Values().Sum(telemetry.NotificationsSent); n < 50 {
					t.Fatalf("%d notifications, expected at least 50; %v", n, r.Plane.Values().NonZero())
				}
				r.Close(t)
				sent[i] = r.Sent[0]
				for k := range sent[i] {
					sent[i][k].Now -= begin
				}
			}
			for k, a := range sent[0] {
				if k >= len(sent[1]) || a.Now != sent[1][k].Now || a.Port != sent[1][k].Port || !bytes.Equal(a.Octets, sent[1][k].Octets) {
					t.Errorf("seed %d: around %d ns, frame %d after %d ns isn't that of another time", seed, wrap, k, a.Now)
					break
				}
			}
		}
	}
}

// TestMonth: a gateway that is congested once an hour for 30 days asks senders as in the first hour, forgets the flows between, and accounts for each frame.
func TestMonth(t *testing.T) {
	const hour, step = 3600_000_000_000, 10_000_000_000
	r := atAnyTime(t, testkit.Epoch)
	c := newCongestedTraffic(1)
	notified, first := uint64(0), uint64(0)
	for n := range monthHours {
		c.run(t, r)
		r.Drain()
		all := r.Plane.Values().Sum(telemetry.NotificationsSent)
		if n == 0 {
			first = all
		}
		if now := all - notified; now < first/2 || now > 2*first {
			t.Errorf("hour %d: %d notifications, %d in the first hour", n, now, first)
		}
		notified, r.Sent[0] = all, nil
		r.Balance(t)
		for end := r.Now + hour; r.Now < end; r.Advance(step) {
			r.Settle()
		}
		for f := range r.Plane.Worker(0).Records() {
			t.Fatalf("hour %d: flow %v is known after an hour without frames", n, f.Key)
		}
	}
	r.Close(t)
}
