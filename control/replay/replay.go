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

// Live is a replay of frames that the caller gives one by one, with the port at which each arrived.
type Live struct {
	config  *config.Config
	options Options
	fabric  int // port numbers
	wan     int
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
func Run(c *config.Config, capture *Capture, o Options) (*report.Report, error) {
	r, err := start(c, o, capture.First, capture.Longest)
	if err != nil {
		return nil, err
	}
	if err := r.play(capture); err != nil {
		return nil, errors.Join(err, r.memory.Release())
	}
	return r.End()
}

// NewLive starts a replay. first is the time of the first frame, captured bounds the bytes at hand of each frame. The caller must call End.
func NewLive(c *config.Config, first time.Time, captured int) (*Live, error) {
	return start(c, Options{}, first, captured)
}

func start(c *config.Config, o Options, first time.Time, captured int) (*Live, error) {
	r := &Live{config: c, options: o, ended: report.Flows{Most: o.Flows}}
	for ; c.Ports[r.fabric].Role != dataplane.Fabric; r.fabric++ { // a configuration has at least one
	}
	r.wan = c.Ports[r.fabric].Peer
	if err := r.open(first, captured); err != nil {
		return nil, errors.Join(err, r.memory.Release())
	}
	return r, nil
}

// End processes what is still due, makes the report, and frees the memory.
func (r *Live) End() (*report.Report, error) {
	r.step()
	r.time.Drain()
	if r.options.Recorder != nil {
		r.options.Recorder.watch(r.time.Now())
		r.options.Recorder.end()
	}
	result := report.Make(r.config, r.plane, &r.ended)
	r.plane.Worker(0).Close()
	return result, errors.Join(r.out.err, r.account(result), r.memory.Release())
}

// account returns an error if a frame or a buffer is unaccounted for.
func (r *Live) account(result *report.Report) error {
	if err := result.Counters.Check(); err != nil {
		return fmt.Errorf("%w, with the capture and the configuration", err)
	}
	if n := r.backend.InUse(); n != 0 {
		return fmt.Errorf("%d buffers were not returned, expected all: a bug in cnpgate; please report it, with the capture and the configuration", n)
	}
	return nil
}

// open makes the dataplane.
func (r *Live) open(first time.Time, captured int) (err error) {
	c := r.config
	if r.out, err = newOutputs(r.options, first); err != nil {
		return err
	}
	longest := max(assemble.LargestFrame(c), cnpgen.MaxLen, captured)
	memory, err := r.memory.Allocate(longest * assemble.Frames(c, 1))
	if err != nil {
		return err
	}
	r.backend, err = inmem.New(inmem.Config{Ports: len(c.Ports), Burst: c.DPDK.Burst, BufferSize: longest, Memory: memory, Sent: r.out.sent})
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
func (r *Live) play(capture *Capture) error {
	for {
		frame, err := capture.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = r.Add(fromFabric(frame.Octets, frame.Length, r.options.Fabric), frame)
		}
		if err != nil {
			return err
		}
	}
}

// Add makes a frame arrive at the fabric port, or else at the WAN port, after the events that are due before. Its time counts from the first frame; an earlier time
// than that of the frame before counts as the same.
func (r *Live) Add(fromFabric bool, f capturefile.Frame) error {
	port := r.wan
	if fromFabric {
		port = r.fabric
	}
	if at := f.Time + epoch; at > r.time.Now() || r.waiting == r.config.DPDK.Burst {
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
func (r *Live) step() {
	r.time.Step()
	r.waiting = 0
}
