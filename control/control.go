// Package control runs a gateway: it starts the workers on their cores, watches links, logs events, and stops in order, after the
// queues have drained. It makes no decision about frames. Its own goroutines only read what workers publish; a worker's goroutine
// never logs, and never waits for the others.
//
// docs/api.md lists the keys of the log, which are those of the report and the API.
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
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/assemble"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/fleetlink"
	"github.com/cnpgate/cnpgate/control/metrics"
	"github.com/cnpgate/cnpgate/control/rdma"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/proxy"
	"github.com/cnpgate/cnpgate/telemetry"
)

// Options are the settings of a run that are not in the configuration.
type Options struct {
	Log zerolog.Logger
	// Timeline records the depth of each queue over time for the report.
	Timeline bool
	// Flows is how many flows the report lists, the others are in its sums; 0: report.DefaultListed.
	Flows int
	// Addresses are the ports' MAC addresses, zero where there is none.
	Addresses [][6]byte
	// Abort, once closed, ends the draining of the queues early.
	Abort <-chan struct{}
	// Build identifies the program.
	Build metrics.Build
	// Load reads the configuration again, for a reload; nil: no reload is possible.
	Load func() (*config.Config, error)
	// Hangups asks for a reload with each value received: SIGHUP.
	Hangups <-chan struct{}
	// Concerns are what harms a gateway with a configuration on this host, although it forwards; nil: not known.
	Concerns func(*config.Config) []string
	// Output opens the files that the end of the run writes; nil: there are none. It is called again later if it fails.
	Output func(context.Context) error
	// LogLines is the number of lines of the log that wait to be written, how many can, and how many were lost because more came; nil: not known.
	LogLines func() (waiting, size int, lost uint64)
	// Started is called once every worker forwards, before the service manager is notified; may be nil.
	Started func()
}

// gateway is an active run.
type gateway struct {
	reloader
	advertiser

	started   *config.Config                // its ports, workers and sizes apply until the end
	running   atomic.Pointer[config.Config] // the one in force
	servers   servers
	announcer announcer
	adapting  sync.Mutex // guards the policy, which reloads, measurements and learned proxies change
	proxies   proxies
	devices   Devices
	options   Options
	seed      uint64 // of hashes
	plane     *dataplane.Dataplane
	stop      atomic.Bool
	begin     time.Time
	health    health
	episodes  *episodes
	rdma      *rdma.Collector
	heart     heart
	threads   []atomic.Int64 // IDs of the workers' threads
	services  services
	concerns  concerns
	exporter  atomic.Pointer[exporter]              // nil: no flow records are exported
	fleet     atomic.Pointer[fleetlink.Participant] // nil: the gateway is alone
}

func newGateway(c *config.Config, devices Devices, o Options) *gateway {
	g := &gateway{started: c, devices: devices, options: o}
	g.reloader = reloader{g: g}
	g.concerns = concerns{g: g, again: make(chan struct{}, 1)}
	g.advertiser = advertiser{log: &g.options.Log, proxies: &g.proxies, services: &g.services}
	g.services.log = &g.options.Log
	g.proxies.use = func(all *proxy.Senders) {
		g.adapting.Lock()
		defer g.adapting.Unlock()
		g.plane.SetProxies(all)
	}
	return g
}

// Run forwards until the context ends, then drains the queues and reports. It returns an error if it could not forward, or if
// frames are unaccounted for.
func Run(ctx context.Context, c *config.Config, devices Devices, o Options) (*report.Report, error) {
	tuneRuntime(len(c.DPDK.Workers))
	return newGateway(c, devices, o).run(ctx)
}

func (g *gateway) run(ctx context.Context) (*report.Report, error) {
	c, o := g.started, &g.options
	g.begin = time.Now()
	backends := make([]burst.Backend, len(c.DPDK.Workers))
	g.threads = make([]atomic.Int64, len(c.DPDK.Workers))
	for i := range backends {
		backends[i] = g.devices.Backend(i)
	}
	var err error
	if g.seed, err = randomSeed(); err != nil {
		return nil, err
	}
	if g.plane, err = assemble.Dataplane(c, assemble.Options{Backends: backends, Seed: g.seed, Addresses: o.Addresses}); err != nil {
		return nil, err
	}
	if err := g.apply(c); err != nil {
		return nil, err
	}
	setLogLevel(c.Management.LogLevel)
	g.identify(o.Log.Info()).Msg("The gateway starts.")
	g.note(g.running.Load(), "started", nil, nil)
	g.episodes = newEpisodes(g)
	g.rdma = rdma.New(g.plane, portNames(c))
	setWallClock(g.plane)
	for i := range c.Ports {
		g.health.note(c.Ports[i].Name, linkCause, "the gateway does not forward yet")
	}
	stopServers, err := g.servers.start(ctx, g)
	if err != nil {
		return nil, err
	}
	timeline, err := g.forward(ctx)
	g.reloading.Lock()
	g.endTrial()
	g.reloading.Unlock()
	g.services.end()
	stopServers()
	r := report.Make(g.running.Load(), g.plane, &report.Flows{Most: g.options.Flows})
	r.Identity = g.Identity()
	r.SetTimeline(g.begin, timeline)
	r.Histograms = report.MakeHistograms(c, g.plane)
	g.heart.addTo(r.Counters)
	g.addDeviceCounters(r.Ports)
	return r, errors.Join(err, g.account(r))
}

// forward runs the workers and watches them until the context ends or a worker fails, then until the last worker has stopped.
func (g *gateway) forward(ctx context.Context) ([]report.Depth, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error)
	ready := make(chan struct{}, len(g.started.DPDK.Workers))
	for i, core := range g.started.DPDK.Workers {
		go func() { ended <- (&workerRun{gateway: g, number: i, core: core}).run(ready) }()
	}
	watch := newWatch(g)
	watched := make(chan []report.Depth)
	var others sync.WaitGroup
	go func() { watched <- watch.run(ctx, ready) }()
	others.Go(func() { watch.watchDevices(ctx) })
	go func() {
		<-ctx.Done()
		g.stop.Store(true)
	}()
	go g.obeyHangups(ctx)
	var errs []error
	for range g.started.DPDK.Workers {
		if err := <-ended; err != nil {
			errs = append(errs, err)
			cancel()
		}
	}
	cancel()
	others.Wait()
	return <-watched, errors.Join(errs...)
}

// obeyHangups reloads the configuration at each SIGHUP, until the context ends.
func (g *gateway) obeyHangups(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.options.Hangups:
			_, _ = g.Reload(api.ReloadRequest{}) // Reload has logged the error
		}
	}
}

// tuneRuntime gives Go at least two threads besides the polling workers, so that timers and garbage collection don't wait for them: with
// fewer, the watch of the links once stood still for half a minute. It lets the small heap grow before a collection, unless the environment
// says otherwise.
func tuneRuntime(workers int) {
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), workers+2))
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

// Devices are the devices of a gateway. internal/dpdk implements them; cmd passes them to Run.
type Devices interface {
	// Backend is that of a worker, by its number. With idle: backoff in the configuration, the worker waits at a backend that is a burst.Waiter.
	Backend(worker int) burst.Backend
	// Enter makes the calling goroutine's thread a worker thread on a core; leave undoes it.
	Enter(core int) (leave func(), err error)
	// LinkUp reports whether a port has a link.
	LinkUp(port int) (bool, error)
	// Describe gives the facts of a port's device. It is not called often.
	Describe(port int) report.Device
	// SetLink takes a port's link down or up; errors.ErrUnsupported if the device can't.
	SetLink(port int, up bool) error
	// Counters are the device's own counters of a port: the metrics of scope telemetry.Device.
	Counters(port int) (telemetry.Values, error)
	// Watch reports events of the devices, one call at a time, until the context ends.
	Watch(ctx context.Context, report func(Notice)) error
}

// Notice is an event of a port's device.
type Notice struct {
	Port    int
	Text    string // what happened
	Problem string // why the port doesn't forward, or not every frame, and what to do; "" if it forwards all
}

// account logs where the received frames went, by the counters of each port and its device, with the names and in the form of the report, without zeros, and returns an error if some are unaccounted for.
func (g *gateway) account(r *report.Report) error {
	for i := range g.started.Ports {
		s := g.plane.Port(i)
		e := g.options.Log.Info().Str("port", g.started.Ports[i].Name).Any("counters", s.Values().NonZero())
		if device, err := g.devices.Counters(i); err == nil {
			e = e.Any("device", device.NonZero())
		}
		e.Msg("The gateway has stopped. These are the port's counters.")
	}
	return r.Counters.Check()
}

// addDeviceCounters adds the devices' own counters to the ports' part of a report. They count frames that no worker has seen.
func (g *gateway) addDeviceCounters(ports []report.Port) {
	for i := range ports {
		if c, err := g.devices.Counters(i); err == nil {
			ports[i].Device = c
		}
	}
}

// Counters are for the API.
func (g *gateway) Counters() *report.Counters {
	c := report.MakeCounters(g.running.Load(), g.plane)
	c.Identity = g.Identity()
	g.addDeviceCounters(c.Ports)
	for i := range c.Ports {
		d := g.devices.Describe(i)
		c.Ports[i].Facts = &d
	}
	g.heart.addTo(c.Counters)
	g.services.addTo(c.Counters)
	g.concerns.addTo(c.Counters)
	c.Histograms = report.MakeHistograms(g.started, g.plane)
	return c
}
