package dataplane_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/link"
	"github.com/cnpgate/cnpgate/internal/burst/inmem"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/internal/testkit/effort"
	"github.com/cnpgate/cnpgate/lossless"
)

// The classes of the tests of flow control: a lossless one of DSCP 26 and priority 3, behind one of all other DSCPs and priority 1.
const (
	otherClass, losslessClass       = 0, 1
	otherPriority, losslessPriority = 1, 3
	losslessDSCP                    = 26
)

// flowControl has the classes of the tests, at a speed.
func flowControl(speed uint64) *link.FlowControl {
	f := &link.FlowControl{
		Address: [6]byte{2, 0, 0, 0, 0, 0xa}, Speed: speed,
		Watchdog: lossless.Watchdog{Detection: 200 * ms},
	}
	for class := range f.Priority {
		f.Priority[class] = -1
	}
	f.Priority[otherClass], f.Priority[losslessClass] = otherPriority, losslessPriority
	return f
}

// classes gives all ports the classes of the tests.
func classes(c *dataplane.Config) {
	for i := range c.Ports {
		c.Ports[i].Classes = 2
		c.Ports[i].ClassOf[losslessDSCP] = losslessClass
	}
}

// pfcLink is a sender that obeys PFC, behind a cable and in front of a gateway whose WAN port is slow.
type pfcLink struct {
	lossless.Link
	workers int
	step    int64  // ns between two steps of a worker
	phase   int64  // ns after the first step at which the sender begins
	wan     uint64 // bit/s
	xoff    uint64 // bytes
	gap     uint64 // bytes from XOn to XOff
	frames  int    // to send
	less    uint64 // bytes by which the capacity is too small
	turns   int    // steps after which the run ends; 0: when all frames have left
}

// thresholds are those of the lossless class, as a configuration without xoff would calculate them.
func (l *pfcLink) thresholds() lossless.Thresholds {
	return lossless.Thresholds{
		XOff: l.xoff, XOn: l.xoff - l.gap, XOffFrames: 4096, XOnFrames: 2048,
		Refresh: lossless.PauseTime(lossless.MaxQuanta, l.Speed) / 2, Limit: 3600e9,
	}
}

// reaction is how long the gateway takes at most: the frame waits for a step of its worker, of several workers the first reads what the others
// published in its next step, and the device gets the PFC frame in the step that follows.
func (l *pfcLink) reaction() int64 { return l.step * int64(1+l.workers) }

// sender is the other end of the link.
type sender struct {
	l         *pfcLink
	next      int64  // when the next frame begins if nothing stops it, ns
	fraction  uint64 // and parts of a ns, as many as the speed
	sent      int
	stoppedAt int64 // no frame begins from here on, until goesOn
	goesOn    int64
}

const endless = 1 << 62

// arrived gives how many frames have wholly arrived at the gateway by the time now.
func (s *sender) arrived(now int64) (n int) {
	bits := 8e9 * uint64(s.l.Frame+24)
	time := int64((bits + s.l.Speed - 1) / s.l.Speed)
	for s.sent < s.l.frames {
		if s.next >= s.stoppedAt && s.next < s.goesOn {
			s.next = s.goesOn
		}
		if s.next+time+5*s.l.Cable > now {
			return n
		}
		s.fraction += bits % s.l.Speed
		s.next += int64(bits/s.l.Speed + s.fraction/s.l.Speed)
		s.fraction %= s.l.Speed
		s.sent++
		n++
	}
	return n
}

// hears takes a PFC frame that the gateway's worker handed its device at the time now, when that had just begun a data frame of full length.
func (s *sender) hears(now int64, pfc *packet.PFC) {
	if pfc.Enabled>>losslessPriority&1 == 0 {
		return
	}
	at := now + int64(8e9*uint64(s.l.Frame+24+84)/s.l.Speed) + 5*s.l.Cable
	quanta := pfc.Time[losslessPriority]
	if quanta == 0 {
		s.goesOn = at
		return
	}
	if s.goesOn <= at { // else it is stopped already
		s.stoppedAt = at + s.l.Response
	}
	s.goesOn = at + lossless.PauseTime(quanta, s.l.Speed)
}

// outcome is what became of a run.
type outcome struct {
	dropped, forwarded uint64
	watermark          uint64
	stops              uint64 // PFC frames
}

// run sends all frames of a link and drains the gateway.
func (l *pfcLink) run(t testkit.T) outcome {
	l.Reaction = l.reaction()
	if l.workers > 1 {
		l.Shared = l.wan
	}
	f := flowControl(l.Speed)
	f.Lossless[losslessClass] = link.Lossless{On: true, Priority: losslessPriority, Thresholds: l.thresholds()}
	s := &sender{l: l, stoppedAt: endless}
	r := testkit.New(t, testkit.Setup{
		Workers: l.workers, Burst: 64, BufferSize: l.Frame, Buffers: l.frames + 64, Rate: l.wan, Capacity: l.xoff + l.Headroom() - l.less,
		Frames: 4096 + 1, Change: func(c *dataplane.Config) {
			classes(c)
			c.Ports[fabric].FlowControl = f
		},
		Sent: func(_ int, out inmem.Sent) {
			if out.Port == fabric {
				pfc := packet.DecodePFC(out.Octets[packet.EthernetLen:])
				s.hears(out.Now, &pfc)
			}
		},
	})
	s.next = r.Now + l.phase
	frame := testkit.RoCE{Src: sender4, Dst: receiver4, DestQP: 7, Size: l.Frame, DSCP: losslessDSCP}.Frame()
	for turn, injected := 0, 0; s.sent < l.frames && (l.turns == 0 || turn < l.turns); turn++ {
		if turn > 50_000_000 {
			t.Fatalf("after %d steps %d of %d frames were sent: a deadlock", turn, s.sent, l.frames)
		}
		r.Advance(l.step / int64(l.workers))
		for range s.arrived(r.Now) {
			r.InjectAt(t, injected%l.workers, fabric, frame)
			injected++
		}
		r.Plane.Worker(turn % l.workers).Step()
	}
	if l.turns == 0 {
		r.Drain()
	}
	r.Balance(t)
	p := r.Plane.Port(wan)
	o := outcome{
		dropped: p.Count[counters.DroppedQueueOctets] + p.Count[counters.DroppedQueueFrames], forwarded: p.Count[counters.TxPackets],
		watermark: p.Watermark[losslessClass], stops: r.Plane.Port(fabric).FlowControl.PFCSent[losslessPriority],
	}
	r.Close(t)
	return o
}

// losslessFrames is how many frames TestLossless sends at most.
const losslessFrames = 1500*effort.Short + 300*effort.Race + 1500*effort.Long

// TestLossless: a sender that obeys PFC loses no frame, whatever the link, and sends all of them.
func TestLossless(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := pfcLink{
			workers: rapid.IntRange(1, 2).Draw(t, "workers"), frames: rapid.IntRange(100, losslessFrames).Draw(t, "frames"),
			Link: lossless.Link{
				Speed: rapid.SampledFrom([]uint64{1e9, 10e9, 25e9, 100e9, 400e9}).Draw(t, "speed"),
				Frame: rapid.SampledFrom([]int{100, 1500, 9014}).Draw(t, "frame"), Cable: rapid.Int64Range(1, 2000).Draw(t, "cable"),
			},
		}
		l.Response = rapid.Int64Range(0, 2*lossless.Response(l.Speed)).Draw(t, "response")
		time := int64(8e9*uint64(l.Frame+24)/l.Speed) + 1
		l.step = int64(l.workers) * rapid.Int64Range(max(time, 100), max(60*time, 101)).Draw(t, "step") // so that no burst is full
		l.step = min(l.step, lossless.PauseTime(lossless.MaxQuanta, l.Speed)/8)
		l.phase = rapid.Int64Range(0, l.step).Draw(t, "phase")
		l.wan = l.Speed / rapid.Uint64Range(2, 100).Draw(t, "slower")
		l.gap = rapid.Uint64Range(uint64(l.Frame), 20*uint64(l.Frame)).Draw(t, "gap")
		l.xoff = l.gap + rapid.Uint64Range(0, 50*uint64(l.Frame)).Draw(t, "xon")
		if o := l.run(t); o.dropped != 0 || o.forwarded != uint64(l.frames) {
			t.Fatalf("%+v, expected no frame dropped and all %d forwarded", o, l.frames)
		}
	})
}

// TestHeadroomIsTight: of the phases between a sender and a gateway there is none in which the headroom doesn't suffice, and one in which a frame less
// wouldn't.
func TestHeadroomIsTight(t *testing.T) {
	for _, c := range []struct {
		name string
		link pfcLink
	}{
		{"100 Gbps, 300 m", pfcLink{Link: lossless.Link{Speed: 100e9, Frame: 9014, Cable: 300, Response: lossless.Response(100e9)}, step: 5000}},
		{"10 Gbps, 2 m", pfcLink{Link: lossless.Link{Speed: 10e9, Frame: 1514, Cable: 2, Response: lossless.Response(10e9)}, step: 4000}},
		{"400 Gbps, 500 m", pfcLink{Link: lossless.Link{Speed: 400e9, Frame: 9014, Cable: 500, Response: lossless.Response(400e9)}, step: 2000}},
	} {
		t.Run(c.name, func(t *testing.T) {
			worst := func(less uint64) (dropped uint64) {
				const phases = 64
				for phase := range int64(phases) {
					l := c.link
					l.workers, l.wan, l.gap, l.frames, l.turns = 1, 100_000, 2*uint64(l.Frame), 900, 40
					l.xoff, l.less, l.phase = 20*uint64(l.Frame), less, phase*l.step/phases
					dropped = max(dropped, l.run(t).dropped)
				}
				return dropped
			}
			if n := worst(0); n != 0 {
				t.Errorf("%d frames dropped with the headroom", n)
			}
			if n := worst(uint64(c.link.Frame)); n == 0 {
				t.Error("no frame dropped with a frame less than the headroom")
			}
		})
	}
}
