// Package replay runs a capture through the gateway's own dataplane in virtual time: the capture's timestamps are the clock, and
// the ports drain at their configured rate, also after the last frame. The same input gives the same output, octet for octet. It
// needs no device, no privilege and no hugepages.
package replay

import (
	"errors"
	"fmt"
	"io"
	"net/netip"

	"github.com/cnpgate/cnpgate/control/assemble"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/burst/inmem"
)

// Options say how to replay, and where results go.
type Options struct {
	Fabric []netip.Prefix // sources inside come in by the fabric port, the rest by the WAN port
	// Forwarded takes the frames that left, Emitted the notifications; nil for neither. Classic pcap, nanoseconds.
	Forwarded, Emitted io.Writer
	// Progress is called now and then with the number of frames replayed so far; nil for silence.
	Progress func(frames int)
}

const (
	// seed is fixed: a replay has no one to defend its hashes against, and must come out the same every time.
	seed = 0x636e7067
	// epoch is the virtual time of the first frame (ns). It is not 0, which in a flow means never.
	epoch = 1e9
	// progressStep is how many frames go by between two calls of Progress.
	progressStep = 100_000
)

// run is a replay under way.
type run struct {
	options Options
	fabric  int // port numbers
	wan     int
	burst   int
	memory  assemble.Memory
	backend *inmem.Backend
	plane   *dataplane.Dataplane
	worker  *dataplane.Worker
	ended   report.Flows
	out     *outputs
	now     int64 // virtual, ns
	waiting int   // frames injected at now
	frames  int
}

// Run replays the capture. It runs through the first fabric port of the configuration and its peer.
func Run(c *config.Config, capture *Capture, o Options) (result *report.Report, err error) {
	r := &run{options: o, burst: c.DPDK.Burst, now: epoch}
	for r.fabric = 0; c.Ports[r.fabric].Role != config.Fabric; r.fabric++ { // a configuration has at least one
	}
	r.wan = c.Ports[r.fabric].Peer
	defer func() { err = errors.Join(err, r.memory.Release()) }()
	if err := r.start(c, capture); err != nil {
		return nil, err
	}
	if err := r.play(capture); err != nil {
		return nil, err
	}
	r.runUntil(-1)
	result = report.Make(c, r.plane, &r.ended)
	r.worker.Close()
	return result, errors.Join(r.out.err, r.account(result))
}

// account is an error if a frame or a buffer has gone nowhere.
func (r *run) account(result *report.Report) error {
	const please = "a bug in cnpgate; please report it with the capture and configuration"
	if n := result.Unaccounted(); n != 0 {
		return fmt.Errorf("%d frames are not accounted for (received less forwarded, dropped, consumed and queued): %s", n, please)
	}
	if n := r.backend.InUse(); n != 0 {
		return fmt.Errorf("%d buffers were not given back: %s", n, please)
	}
	return nil
}

func (r *run) start(c *config.Config, capture *Capture) (err error) {
	if r.out, err = newOutputs(r.options, capture.First); err != nil {
		return err
	}
	room := max(assemble.Room(c), capture.Longest)
	memory, err := r.memory.Allocate(room * assemble.Frames(c, 1))
	if err != nil {
		return err
	}
	r.backend, err = inmem.New(inmem.Config{Ports: len(c.Ports), Burst: r.burst, Room: room, Memory: memory, Sent: r.out.sent})
	if err != nil {
		return err
	}
	r.backend.SetTime(r.now)
	r.plane, err = assemble.Dataplane(c, assemble.Options{
		Backends: []burst.Backend{r.backend}, Memory: &r.memory, Seed: seed, Ended: r.ended.Ended,
	})
	if err != nil {
		return err
	}
	r.worker = r.plane.Worker(0)
	return nil
}

// play takes the capture through the worker: frames of one timestamp in bursts, and between two timestamps what falls due there.
func (r *run) play(capture *Capture) error {
	for {
		frame, err := capture.Next()
		if errors.Is(err, io.EOF) {
			r.step()
			return nil
		}
		if err != nil {
			return fmt.Errorf("frame %d: %w", r.frames+1, err)
		}
		if at := frame.Time + epoch; at > r.now || r.waiting == r.burst {
			r.step()
			r.runUntil(at)
		}
		if err := r.inject(frame); err != nil {
			return err
		}
	}
}

func (r *run) inject(f Frame) error {
	port := r.wan
	if fromFabric(f.Octets, f.Length, r.options.Fabric) {
		port = r.fabric
	}
	if !r.backend.Inject(port, f.Octets, f.Length) {
		return fmt.Errorf("frame %d: no buffer was free: a bug in cnpgate; please report it with the capture and configuration", r.frames+1)
	}
	r.waiting++
	r.frames++
	if r.options.Progress != nil && r.frames%progressStep == 0 {
		r.options.Progress(r.frames)
	}
	return nil
}

// step lets the worker do all there is to do at this moment.
func (r *run) step() {
	for r.worker.Step() > 0 {
	}
	r.waiting = 0
}

// runUntil moves the time on to at, departure by departure; to the last departure where at is negative.
func (r *run) runUntil(at int64) {
	for {
		due, any := r.worker.NextDue()
		if !any || (at >= 0 && due >= at) {
			break
		}
		r.setTime(due)
		r.step()
	}
	if at >= 0 {
		r.setTime(at)
	}
}

func (r *run) setTime(now int64) {
	r.now = max(r.now, now)
	r.backend.SetTime(r.now)
}
