// Package control runs a gateway: it starts the workers on their cores, watches links, says in the log what happens, and stops
// in order, with the queues drained. It decides nothing about a frame. Its own goroutines only read what workers publish; a
// worker's goroutine never logs and never waits for one of them.
//
// Log keys: port, peer, worker, core, socket, and the counters' names of the report.
package control

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control/assemble"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/burst"
)

// Options are what a configuration doesn't say of a run.
type Options struct {
	Log zerolog.Logger
	// Timeline keeps the depth of each queue over time for the report.
	Timeline bool
	// Abort, once closed, ends the draining of the queues early.
	Abort <-chan struct{}
}

// gateway is a run under way.
type gateway struct {
	config  *config.Config
	devices Devices
	options Options
	plane   *dataplane.Dataplane
	stop    atomic.Bool
	begin   time.Time
	health  health
}

// Run forwards until the context ends, then drains the queues and reports. An error means that it did not forward, or lost
// count of a frame.
func Run(ctx context.Context, c *config.Config, devices Devices, o Options) (*report.Report, error) {
	tuneRuntime(len(c.DPDK.Workers))
	g := &gateway{config: c, devices: devices, options: o, begin: time.Now()}
	backends := make([]burst.Backend, len(c.DPDK.Workers))
	for i := range backends {
		backends[i] = devices.Backend(i)
	}
	seed, err := randomSeed()
	if err != nil {
		return nil, err
	}
	if g.plane, err = assemble.Dataplane(c, assemble.Options{Backends: backends, Seed: seed}); err != nil {
		return nil, err
	}
	stopAPI, err := g.startAPI(ctx)
	if err != nil {
		return nil, err
	}
	timeline, err := g.forward(ctx)
	stopAPI()
	r := report.Make(c, g.plane, nil)
	r.Timeline = timeline
	g.addDeviceCounters(r)
	return r, errors.Join(err, g.account(r))
}

// forward runs the workers and watches them until the context ends or a worker can't go on, then until the last one has stopped.
func (g *gateway) forward(ctx context.Context) ([]report.Depth, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error)
	ready := make(chan struct{}, len(g.config.DPDK.Workers))
	for i, core := range g.config.DPDK.Workers {
		go func() { ended <- g.work(i, core, ready) }()
	}
	watch := g.newWatch()
	watched, deviceWatch := make(chan []report.Depth), make(chan struct{})
	go func() { watched <- watch.run(ctx, ready) }()
	go func() {
		defer close(deviceWatch)
		g.watchDevices(ctx)
	}()
	go func() {
		<-ctx.Done()
		g.stop.Store(true)
	}()
	var errs []error
	for range g.config.DPDK.Workers {
		if err := <-ended; err != nil {
			errs = append(errs, err)
			cancel()
		}
	}
	cancel()
	<-deviceWatch
	return <-watched, errors.Join(errs...)
}

// tuneRuntime leaves Go two threads besides the pollers, without which a timer or a collection waits for them, and lets the small
// heap grow before it is collected; unless the operator has said otherwise.
func tuneRuntime(workers int) {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(max(runtime.NumCPU(), workers+2))
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(800)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(1 << 30)
	}
}

func randomSeed() (uint64, error) {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return 0, fmt.Errorf("a random seed for the flow table: %w", err)
	}
	return binary.LittleEndian.Uint64(b[:]), nil
}
