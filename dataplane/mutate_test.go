package dataplane_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/burst/inmem"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// passage compares what leaves a port with what came in by its peer.
type passage struct {
	t       testing.TB
	waiting [2][][]byte // by the port they leave by
	notes   int
	marked  int
}

// came notes a frame that the worker is about to receive by a port; PAUSE and PFC end there.
func (p *passage) came(port int, octets []byte, length uint32) {
	var parsed packet.Parsed
	packet.Parse(octets, length, &parsed)
	if parsed.Kind != packet.MACControl {
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

// markedAs tells whether b is the ECN-capable packet a with CE.
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

// mutant is a captured frame after some accidents, and its length on the wire.
func mutant(random *rand.Rand, frames [][]byte) ([]byte, uint32) {
	f := bytes.Clone(frames[random.IntN(len(frames))])
	for range 1 + random.IntN(3) {
		at := func() int { return random.IntN(min(len(f), 120)) } // where headers are
		if len(f) < 20 {
			break
		}
		switch random.IntN(6) {
		case 0:
			for range 1 + random.IntN(8) {
				f[at()] ^= 1 << random.IntN(8)
			}
		case 1:
			f = f[:random.IntN(len(f)+1)]
		case 2: // a length that lies: of IPv4, IPv6, UDP or an extension header, or another 16-bit word
			place := []int{16, 18, 38, 40, 58, 55, at()}[random.IntN(7)]
			if place+2 <= len(f) {
				binary.BigEndian.PutUint16(f[place:], []uint16{0, 1, 7, 8, 19, 20, 0xffff, uint16(len(f)), uint16(random.Uint32())}[random.IntN(9)])
			}
		case 3:
			tail := frames[random.IntN(len(frames))]
			cut := random.IntN(min(len(f), len(tail), 120))
			f = append(f[:cut:cut], tail[cut:]...)
		case 4: // octets that don't belong there, such as a tag
			cut := at()
			f = append(f[:cut:cut], append([][]byte{{0x81, 0, 0, 1}, {0x88, 0xa8, 0, 2}, {60, 0, 1, 4, 0, 0, 0, 0}, {44, 0, 0, 0, 0, 0, 0, 0}}[random.IntN(4)], f[cut:]...)...)
		case 5:
			f[at()] = []byte{0, 1, 4, 6, 17, 43, 44, 51, 58, 60, 0x81, 0xff}[random.IntN(12)]
		}
	}
	f = f[:min(len(f), 2048)]
	length := uint32(len(f))
	if random.IntN(16) == 0 {
		length += random.Uint32N(9000) // cut short by whoever captured it
	}
	return f, length
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

// TestMutants: frames of real traffic after any accident harm nothing: each that isn't MAC control leaves as it came, but for CE,
// and every one is accounted for. CNPGATE_SEED repeats a run.
func TestMutants(t *testing.T) {
	seed := rand.Uint64()
	if s, err := strconv.ParseUint(os.Getenv("CNPGATE_SEED"), 10, 64); err == nil {
		seed = s
	}
	t.Logf("CNPGATE_SEED=%d, %d frames", seed, mutants)
	random := rand.New(rand.NewPCG(seed, 0))
	frames := hostile(t)
	way := &passage{t: t}
	p := telling(grant("::/0", 0, 1, 2), grant("0.0.0.0/0", 0, 1, 2))
	above(p)
	p.Ports[fabric].Thresholds = p.Ports[wan].Thresholds
	r := testkit.New(t, testkit.Setup{Policy: p, Static: knownQPs(t), Room: 2048, Sent: way.sent, Rate: 400e9})
	order := [2]int{}
	for done := 0; done < mutants; {
		for range 32 {
			port := random.IntN(2)
			f, length := mutant(random, frames)
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
		if got := s.Count[dataplane.RxPackets]; got != uint64(order[port]) {
			t.Errorf("port %d received %d of %d", port, got, order[port])
		}
		if len(way.waiting[port]) != 0 || s.Count[dataplane.DroppedQueueFrames]+s.Count[dataplane.DroppedQueueOctets] != 0 {
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
		p := telling(grant("::/0", 0, 1, 2), grant("0.0.0.0/0", 0, 1, 2))
		above(p)
		r := testkit.New(t, testkit.Setup{Policy: p, Static: knownQPs(t), Room: 4096, Buffers: 64, Flows: 8, Frames: 32, Sent: way.sent})
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
