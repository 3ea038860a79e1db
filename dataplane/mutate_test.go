package dataplane_test

import (
	"bytes"
	"testing"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/internal/burst/inmem"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/internal/testkit/effort"
	"github.com/cnpgate/cnpgate/internal/testkit/mutate"
)

// passage compares what leaves a port with what came in by its peer.
type passage struct {
	t       testing.TB
	waiting [2][][]byte // by the port they leave by
	notes   int
	marked  int
}

// came notes a frame that the worker is about to receive by a port; MAC control of the link ends there.
func (p *passage) came(port int, octets []byte, length uint32) {
	var parsed packet.Parsed
	packet.Parse(octets, length, &parsed)
	if parsed.Kind != packet.MACControl || [6]byte(octets) != packet.MACControlAddr {
		p.waiting[port^1] = append(p.waiting[port^1], octets)
	}
}

// sent takes what left. A frame may differ from what came in by CE and the IPv4 checksum that goes with it.
func (p *passage) sent(_ int, s inmem.Sent) {
	if s.Built {
		p.notes++
		return
	}
	if len(p.waiting[s.Port]) == 0 {
		p.t.Fatalf("port %d sent a frame that never came", s.Port)
	}
	came := p.waiting[s.Port][0]
	p.waiting[s.Port] = p.waiting[s.Port][1:]
	if bytes.Equal(came, s.Octets) {
		return
	}
	p.marked++
	if !markedAs(came, s.Octets) {
		p.t.Fatalf("came as\n% x, left as\n% x", came, s.Octets)
	}
}

// markedAs reports whether b is the ECN-capable packet a with CE.
func markedAs(a, b []byte) bool {
	l3 := 12
	for l3+2 < len(a) && (a[l3] == 0x81 && a[l3+1] == 0 || a[l3] == 0x88 && a[l3+1] == 0xa8 || a[l3] == 0x91 && a[l3+1] == 0) {
		l3 += 4
	}
	l3 += 2
	if len(a) != len(b) || len(a) < l3+20 {
		return false
	}
	want := bytes.Clone(a)
	if want[l3]>>4 == 4 {
		want[l3+1] |= 3
		copy(want[l3+10:l3+12], b[l3+10:])
		return a[l3+1]&3%3 != 0 && bytes.Equal(want, b)
	}
	want[l3+1] |= 0x30
	return a[l3+1]>>4&3%3 != 0 && bytes.Equal(want, b)
}

// proxiedHalf is a policy that notifies every sender, and one of the two hosts of the captures through a proxy of the other IP version.
func proxiedHalf(t testing.TB) *dataplane.Policy {
	p := notifying(grant("::/0", 0, 1, 2), grant("0.0.0.0/0", 0, 1, 2))
	p.Who.Enabled[packet.ProxyNotification], p.Proxies = true, behind(t, "198.18.0.2/32", proxy6, "fd00:18::2/128", proxy4)
	return p
}

// hostile are the frames that mutants come from.
func hostile(t *testing.T) [][]byte {
	frames := testkit.Captures(t)
	for range len(frames) / 200 { // so that each rare kind comes about as often as one of the captures' many alike
		for _, c := range anyFrames {
			frames = append(frames, c.frame)
		}
		for _, f := range notCauses(t) {
			frames = append(frames, f)
		}
	}
	return frames
}

// mutants is how many frames TestMutants sends.
const mutants = 50_000*effort.Short + 50_000*effort.Race + 10_000_000*effort.Long

// TestMutants: frames of real traffic after any accident harm nothing: each that isn't MAC control of the link leaves as it came, but for CE,
// and every one is accounted for. CNPGATE_SEED repeats a run.
func TestMutants(t *testing.T) {
	seed := mutate.Seed()
	t.Logf("CNPGATE_SEED=%d, %d frames", seed, mutants)
	m := mutate.New(seed, hostile(t))
	way := &passage{t: t}
	p := proxiedHalf(t)
	above(p)
	p.Ports[fabric].Thresholds = p.Ports[wan].Thresholds
	r := testkit.New(t, testkit.Setup{Policy: p, Static: knownQPs(t), BufferSize: 2048, Sent: way.sent, Rate: 400e9})
	order := [2]int{}
	for done := 0; done < mutants; {
		for range 32 {
			port := m.IntN(2)
			_, octets, missing := m.Next()
			f, length := bytes.Clone(octets), uint32(len(octets))+missing
			way.came(port, f, length)
			r.InjectCut(t, 0, port, f, length)
			order[port]++
		}
		done += 32
		r.Drain()
	}
	if way.marked == 0 || way.notes == 0 {
		t.Errorf("%d marked, %d notifications: not what was to be tested", way.marked, way.notes)
	}
	for port := range 2 {
		s := r.Plane.Port(port)
		if got := s.Count[counters.RxPackets]; got != uint64(order[port]) {
			t.Errorf("port %d received %d of %d", port, got, order[port])
		}
		if len(way.waiting[port]) != 0 || s.Count[counters.DroppedQueueFrames]+s.Count[counters.DroppedQueueOctets] != 0 {
			t.Errorf("port %d: %d frames never left", port, len(way.waiting[port]))
		}
	}
	t.Logf("%d marked, %d notifications", way.marked, way.notes)
	r.Close(t)
}

// FuzzWorker: any frame, twice, either way.
func FuzzWorker(f *testing.F) {
	for _, c := range anyFrames {
		f.Add(c.frame, uint16(0))
	}
	for _, frame := range testkit.Captures(f)[:200] {
		f.Add(frame, uint16(0))
	}
	f.Add(data(true, 0).Frame(), uint16(8000))
	f.Fuzz(func(t *testing.T, frame []byte, more uint16) {
		frame = frame[:min(len(frame), 4096)]
		way := &passage{t: t}
		p := proxiedHalf(t)
		above(p)
		r := testkit.New(t, testkit.Setup{Policy: p, Static: knownQPs(t), BufferSize: 4096, Buffers: 64, Flows: 8, Frames: 32, Sent: way.sent, Change: onPages(t)})
		for range 2 {
			for port := range 2 {
				length := uint32(len(frame)) + uint32(more)
				way.came(port, frame, length)
				r.InjectCut(t, 0, port, frame, length)
			}
			r.Drain()
		}
		if n := len(way.waiting[0]) + len(way.waiting[1]); n != 0 {
			t.Errorf("%d frames never left", n)
		}
		r.Close(t)
	})
}
