// Package replay runs a capture through the gateway's own dataplane in virtual time: the capture's timestamps are the clock, and
// the ports drain at their configured rate, also after the last frame. The same input gives the same output, byte for byte. It
// needs no device, no privilege and no hugepages.
package replay

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/control/assemble"
	"github.com/cnpgate/cnpgate/control/capturefile"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/stepper"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/burst/inmem"
)

// Options are the settings and outputs of a replay.
type Options struct {
	Fabric []netip.Prefix // frames from these arrive at the fabric port, the rest at the WAN port
	// Forwarded takes the frames that left, Emitted the notifications; nil for neither. Classic pcap, nanoseconds.
	Forwarded, Emitted io.Writer
	// Progress is called every capturefile.ProgressStep frames with the number of frames replayed so far; may be nil.
	Progress func(frames int)
	// Flows is how many flows the report lists, the others are in its sums; 0: report.DefaultListed.
	Flows int
	// Recorder records what happens over time; nil: nothing does.
	Recorder *Recorder
}

const (
	// seed is fixed: a replay's hashes need no protection, and its results must be reproducible.
	seed = 0x636e7067
	// epoch is the virtual time of the first frame (ns). It is not 0, which in a flow means never.
	epoch = 1e9
)

// run is an active replay.
type run struct {
	options Options
	fabric  int // port numbers
	wan     int
	burst   int
	memory  assemble.Memory
	backend *inmem.Backend
	plane   *dataplane.Dataplane
	time    *stepper.Stepper
	ended   report.Flows
	out     *outputs
	waiting int // frames injected at the present time
	frames  int
}

// Run replays the capture. It runs through the first fabric port of the configuration and its peer.
func Run(c *config.Config, capture *Capture, o Options) (result *report.Report, err error) {
	r := newRun(c, o)
	defer func() { err = errors.Join(err, r.memory.Release()) }()
	if err := r.start(c, capture.First, capture.Longest); err != nil {
		return nil, err
	}
	if err := r.play(capture); err != nil {
		return nil, err
	}
	return r.end(c)
}

func newRun(c *config.Config, o Options) *run {
	r := &run{options: o, burst: c.DPDK.Burst, ended: report.Flows{Most: o.Flows}}
	for r.fabric = 0; c.Ports[r.fabric].Role != dataplane.Fabric; r.fabric++ { // a configuration has at least one
	}
	r.wan = c.Ports[r.fabric].Peer
	return r
}

// end processes what is still due, and makes the report.
func (r *run) end(c *config.Config) (*report.Report, error) {
	r.step()
	r.time.Drain()
	if r.options.Recorder != nil {
		r.options.Recorder.watch(r.time.Now())
		r.options.Recorder.end()
	}
	result := report.Make(c, r.plane, &r.ended)
	r.plane.Worker(0).Close()
	return result, errors.Join(r.out.err, r.account(result))
}

// account returns an error if a frame or a buffer is unaccounted for.
func (r *run) account(result *report.Report) error {
	if err := result.Counters.Check(); err != nil {
		return fmt.Errorf("%w, with the capture and the configuration", err)
	}
	if n := r.backend.InUse(); n != 0 {
		return fmt.Errorf("%d buffers were not returned, expected all: a bug in cnpgate; please report it, with the capture and the configuration", n)
	}
	return nil
}

// start makes the dataplane. first is the time of the first frame, captured the bytes at hand of the longest one.
func (r *run) start(c *config.Config, first time.Time, captured int) (err error) {
	if r.out, err = newOutputs(r.options, first); err != nil {
		return err
	}
	longest := max(assemble.LargestFrame(c), cnpgen.MaxLen, captured)
	memory, err := r.memory.Allocate(longest * assemble.Frames(c, 1))
	if err != nil {
		return err
	}
	r.backend, err = inmem.New(inmem.Config{Ports: len(c.Ports), Burst: r.burst, BufferSize: longest, Memory: memory, Sent: r.out.sent})
	if err != nil {
		return err
	}
	r.plane, err = assemble.Dataplane(c, assemble.Options{
		Backends: []burst.Backend{r.backend}, Memory: &r.memory, Seed: seed, Ended: r.ended.Ended,
	})
	if err != nil {
		return err
	}
	r.plane.SetWallClock(first.UnixNano() - epoch)
	r.time = stepper.New(r.plane, []*inmem.Backend{r.backend}, epoch)
	r.time.AdaptEvery = stepper.AdaptStep
	if r.options.Recorder != nil {
		r.options.Recorder.start(c, r.plane, r.time, first)
	}
	return nil
}

// play passes the capture through the worker: frames with the same timestamp in bursts, and between two timestamps the events due there.
func (r *run) play(capture *Capture) error {
	for {
		frame, err := capture.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		port := r.wan
		if fromFabric(frame.Octets, frame.Length, r.options.Fabric) {
			port = r.fabric
		}
		if err := r.add(port, frame); err != nil {
			return err
		}
	}
}

// add makes a frame arrive at its time, after the events that are due before.
func (r *run) add(port int, f capturefile.Frame) error {
	if at := f.Time + epoch; at > r.time.Now() || r.waiting == r.burst {
		r.step()
		r.time.RunUntil(at)
	}
	if !r.backend.Inject(port, f.Octets, f.Length) {
		return fmt.Errorf("frame %d: no buffer was free: a bug in cnpgate; please report it with the capture and configuration", r.frames+1)
	}
	r.waiting++
	r.frames++
	if r.options.Progress != nil && r.frames%capturefile.ProgressStep == 0 {
		r.options.Progress(r.frames)
	}
	return nil
}

// step makes the worker receive the frames of this time, and do all other work that is due.
func (r *run) step() {
	r.time.Step()
	r.waiting = 0
}

// Live is a replay of frames that the caller gives one by one, with the port at which each arrived.
type Live struct {
	run    *run
	config *config.Config
}

// NewLive starts a replay. first is the time of the first frame, captured bounds the bytes at hand of each frame. The caller must call End.
func NewLive(c *config.Config, first time.Time, captured int) (*Live, error) {
	l := &Live{newRun(c, Options{}), c}
	if err := l.run.start(c, first, captured); err != nil {
		return nil, errors.Join(err, l.run.memory.Release())
	}
	return l, nil
}

// Add makes a frame arrive at the fabric port, or else at the WAN port. Its time counts from the first frame; an earlier time than that of the frame
// before counts as the same.
func (l *Live) Add(fromFabric bool, f capturefile.Frame) error {
	port := l.run.wan
	if fromFabric {
		port = l.run.fabric
	}
	return l.run.add(port, f)
}

// End makes the report, and frees the memory.
func (l *Live) End() (*report.Report, error) {
	r, err := l.run.end(l.config)
	return r, errors.Join(err, l.run.memory.Release())
}
