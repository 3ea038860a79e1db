//go:build !nodpdk

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cnpgate/cnpgate/control/assemble"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/dpdk"
	"github.com/cnpgate/cnpgate/telemetry"
)

// rig is a gateway like that of `cnpgate run`, on the devices of a layout: the same configuration, assembly, devices and workers. Its
// workers pause between runs.
type rig struct {
	setup   gatewaySetup
	config  *config.Config
	devices *dpdk.Devices
	plane   *dataplane.Dataplane
	memory  assemble.Memory
	stop    atomic.Bool
	workers []*measured
}

// measured is a worker, and the result of its last run.
type measured struct {
	*dataplane.Worker
	core int
	runs chan time.Duration
	done chan error
	cpu  int64 // ns
}

// gateway is the program: it reads its setup as JSON from its argument, and then serves runs.
func gateway(args []string) (err error) {
	var g rig
	if len(args) != 1 {
		return errors.New("gateway: expected a setup in JSON")
	}
	if err := json.Unmarshal([]byte(args[0]), &g.setup); err != nil {
		return err
	}
	qpMap := ""
	if g.setup.QPMap != "" {
		text, err := os.ReadFile(g.setup.QPMap)
		if err != nil {
			return err
		}
		qpMap = string(text)
	}
	if g.config, err = config.Parse("bench.yaml", []byte(g.setup.yaml(qpMap))); err != nil {
		return err
	}
	if g.devices, err = dpdk.Open(g.deviceConfig()); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.devices.Close()) }()
	return g.serve()
}

// deviceConfig is the device configuration of `cnpgate run`, with buffers for the captures that net_pcap keeps.
func (g *rig) deviceConfig() dpdk.Config {
	c := g.config
	d := dpdk.Config{
		Hugepages: c.DPDK.Hugepages, InMemory: c.DPDK.InMemory, MainCore: g.setup.MainCore, Cores: c.DPDK.Workers, Burst: c.DPDK.Burst,
		Frames: assemble.Frames(c, len(c.DPDK.Workers)) + g.setup.Kept, DataRoom: g.setup.Room, LeastRoom: smallRoom,
	}
	for i := range c.Ports {
		d.Ports = append(d.Ports, dpdk.PortConfig{Name: c.Ports[i].Name, Device: c.Ports[i].Device}) // these devices ask for no MTU
	}
	return d
}

func (g *rig) serve() error {
	// The same tuning as in control.
	runtime.GOMAXPROCS(max(runtime.NumCPU(), len(g.config.DPDK.Workers)+2))
	debug.SetGCPercent(800)
	if err := g.assemble(); err != nil {
		return err
	}
	for _, m := range g.workers {
		go m.work(&g.stop)
	}
	if err := g.settle(); err != nil {
		return err
	}
	if g.setup.Profile != "" {
		f, err := os.Create(g.setup.Profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	if err := serve(func(_ string, d time.Duration) (*sample, error) { return g.run(d) }); err != nil {
		return err
	}
	for _, m := range g.workers {
		close(m.runs)
		<-m.done
	}
	return nil
}

// assemble makes the dataplane and its workers, which pause.
func (g *rig) assemble() error {
	var backends []burst.Backend
	for i := range g.config.DPDK.Workers {
		backends = append(backends, g.devices.Backend(i))
	}
	var err error
	if g.plane, err = assemble.Dataplane(g.config, assemble.Options{Backends: backends, Memory: &g.memory, Seed: 1}); err != nil {
		return err
	}
	p, err := assemble.Policy(g.config, 1)
	if err != nil {
		return err
	}
	for i := range p.Ports {
		p.Ports[i].Thresholds = g.setup.thresholds(p.Ports[i].Thresholds)
		if g.setup.Respond == "notify" {
			p.Ports[i].Interval = 0 // each packet causes a notification, without limits of a round
		}
	}
	if err := g.plane.SetPolicy(p); err != nil {
		return err
	}
	for i, core := range g.config.DPDK.Workers {
		g.workers = append(g.workers, &measured{g.plane.Worker(i), core, make(chan time.Duration), make(chan error), 0})
	}
	return nil
}

// work is a worker's goroutine: control's loop, run after run.
func (m *measured) work(stop *atomic.Bool) {
	err := dpdk.RegisterThread(m.core)
	if err == nil {
		defer dpdk.UnregisterThread()
	}
	for range m.runs {
		before := threadCPU()
		for !stop.Load() && err == nil {
			m.Step()
		}
		m.cpu = threadCPU() - before
		m.done <- err
	}
	if err == nil {
		m.Close()
	}
	m.done <- nil
}

// counts returns the counts of all ports so far.
type counts struct {
	received, forwarded, dropped, marked, notified uint64
}

func (g *rig) count() counts {
	v := g.plane.Values()
	return counts{
		received: v.Sum(telemetry.ReceivedPackets), forwarded: v.Sum(telemetry.ForwardedPackets), dropped: v.Sum(telemetry.DroppedPackets),
		marked: v.Sum(telemetry.ECNMarkedPackets), notified: v.Sum(telemetry.NotificationsSent),
	}
}

// run lets the workers forward until each has used d of CPU time; if d is 0, until all flows were seen.
func (g *rig) run(d time.Duration) (*sample, error) {
	before := g.count()
	began := time.Now()
	g.stop.Store(false)
	cpu := make([]int64, len(g.workers))
	for left := d; ; {
		if d > 0 {
			time.AfterFunc(left, func() { g.stop.Store(true) })
		} else {
			go g.stopWhenLearned()
		}
		for _, m := range g.workers {
			m.runs <- d
		}
		for i, m := range g.workers {
			if err := <-m.done; err != nil {
				return nil, err
			}
			cpu[i] += m.cpu
		}
		g.stop.Store(false)
		if left = d - time.Duration(slices.Min(cpu)); left <= d/10 || time.Since(began) > 20*d+patience {
			break
		}
	}
	after := g.count()
	s := &sample{Wall: time.Since(began).Nanoseconds(), Ops: after.forwarded - before.forwarded, Extra: map[string]float64{}}
	for _, ns := range cpu {
		s.CPU += ns
	}
	marked, notified := after.marked-before.marked, after.notified-before.notified
	s.Extra["flows"], s.Extra["forwarded"] = float64(g.flows()), float64(s.Ops)
	switch {
	case after.dropped != 0:
		s.Wrong = fmt.Sprintf("%d frames were dropped", after.dropped)
	case d > 0 && g.flows() != g.setup.Flows*len(g.workers):
		s.Wrong = fmt.Sprintf("%d flows are known, expected %d", g.flows(), g.setup.Flows*len(g.workers))
	case g.setup.Respond == "mark" && marked < s.Ops*99/100:
		s.Wrong = fmt.Sprintf("%d of %d frames were marked", marked, s.Ops)
	case g.setup.Respond == "notify" && notified < s.Ops*99/100:
		s.Wrong = fmt.Sprintf("%d notifications for %d frames; suppressed: %v", notified, s.Ops, g.suppressed())
	}
	if g.setup.Respond == "notify" {
		s.Ops = notified
	}
	if len(g.workers) > 1 { // what all cores do together
		s.Rate = float64(s.Ops) / float64(s.CPU) * 1e9 * float64(len(g.workers))
	}
	return s, nil
}

// settle forwards until every flow is learned, and then until pairing judges flows nearly as rarely as in the long run, and a worker has inspected
// the first million packets for health, which begins after a second. Measurements begin after that.
func (g *rig) settle() error {
	const times, least, most = 64, 2 << 20, 128 << 20 // packets of a flow, and of all: with fewer, most packets would still be judged
	for began := time.Now(); ; {
		if _, err := g.run(0); err != nil || g.setup.Short {
			return err
		}
		if time.Since(began) > 1100*time.Millisecond {
			break
		}
	}
	for end := g.count().received + uint64(min(max(times*g.setup.Flows, least)*len(g.workers), most)); g.count().received < end; {
		if _, err := g.run(50 * time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// stopWhenLearned stops the workers when each knows every flow, or when all frames have come so often that it never will.
func (g *rig) stopWhenLearned() {
	for g.count().received < 4*uint64(g.setup.Frames)*uint64(len(g.workers)) && !g.learned() {
		time.Sleep(time.Millisecond)
	}
	g.stop.Store(true)
}

func (g *rig) learned() bool {
	for _, m := range g.workers {
		if m.FlowStats().Flows < uint64(g.setup.Flows) {
			return false
		}
	}
	return true
}

func (g *rig) flows() int {
	n := 0
	for _, m := range g.workers {
		n += int(m.FlowStats().Flows)
	}
	return n
}

// suppressed are the reasons for which no sender was notified, and how often.
func (g *rig) suppressed() map[string]uint64 {
	return g.plane.Values()[telemetry.NotificationsSuppressed.Name].By
}
