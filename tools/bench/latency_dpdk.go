//go:build !nodpdk

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/internal/dpdk"
	"github.com/cnpgate/cnpgate/internal/dpdk/dpdktest"

	"golang.org/x/sys/unix"
)

// wire is a gateway between two net_ring ports whose far ends are this program's, on another core: it puts one frame in, waits for the
// resulting frame, and measures the time from before the one to after the other. With thresholds of 0 every frame crosses them, and the
// resulting frame is the notification.
type wire struct {
	rig
	fabric, wan *dpdktest.Ring
	frames      [][]byte
	next        int
	times       []int64 // ns
}

const (
	ringSize = 1024
	// lost is the time after which a frame counts as lost, and mostSamples the maximum of samples kept in a run.
	lost        = 10 * time.Second
	mostSamples = 1 << 21
)

// latency is the program: its argument is a setup in JSON, of which it ignores the devices.
func latency(args []string) (err error) {
	if len(args) != 1 {
		return errors.New("latency: expected a setup in JSON")
	}
	w := wire{times: make([]int64, 0, mostSamples)}
	if err := json.Unmarshal([]byte(args[0]), &w.setup); err != nil {
		return err
	}
	t := traffic{flows: w.setup.Flows, payload: w.setup.Payload}
	for i := range t.flows {
		frame := t.frame()
		t.put(frame, i)
		w.frames = append(w.frames, frame)
	}
	e, err := dpdk.Start(dpdk.EALConfig{
		Hugepages: w.setup.Hugepages, InMemory: w.setup.Hugepages, Memory: 256 << 20, MainCore: w.setup.MainCore, Cores: w.setup.Workers,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if w.fabric, err = dpdktest.NewRing(e.Do, "fabric", 1, ringSize, w.setup.Room); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.fabric.Close()) }()
	if w.wan, err = dpdktest.NewRing(e.Do, "wan", 1, ringSize, w.setup.Room); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.wan.Close()) }()
	w.setup.Devices = []string{w.fabric.Device(), w.wan.Device()}
	if w.config, err = config.Parse("bench.yaml", []byte(w.setup.yaml(t.pairs()))); err != nil {
		return err
	}
	if w.devices, err = e.Open(w.deviceConfig()); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.devices.Close()) }()
	return w.serve()
}

func (w *wire) serve() error {
	runtime.GOMAXPROCS(max(runtime.NumCPU(), 3))
	debug.SetGCPercent(-1) // the far end allocates, which a gateway doesn't
	if err := w.assemble(); err != nil {
		return err
	}
	m := w.workers[0]
	go m.work(&w.stop)
	m.runs <- 0
	if err := dpdk.RegisterThread(w.setup.MainCore); err != nil {
		return err
	}
	err := serve(func(_ string, d time.Duration) (*sample, error) {
		defer runtime.GC() // between runs, never in one
		return w.pingPong(d)
	})
	if err != nil {
		return err
	}
	dpdk.UnregisterThread()
	w.stop.Store(true)
	if err := <-m.done; err != nil {
		return err
	}
	close(m.runs)
	return <-m.done
}

// pingPong sends one frame after the other.
func (w *wire) pingPong(d time.Duration) (*sample, error) {
	w.times = w.times[:0]
	began, cpu := time.Now(), processCPU()
	for time.Since(began) < d && len(w.times) < mostSamples {
		frame := w.frames[w.next%len(w.frames)]
		w.next++
		sent := time.Now()
		if err := w.fabric.Inject(0, frame); err != nil {
			return nil, err
		}
		ends := []*dpdktest.Ring{w.wan}
		if w.setup.Respond == "notify" {
			ends = []*dpdktest.Ring{w.fabric, w.wan} // the notification, then the frame itself
		}
		for i, end := range ends {
			for end.Collect(0) == nil {
				if time.Since(sent) > lost {
					return nil, fmt.Errorf("a frame went in, and nothing came out in %v; suppressed: %v", lost, w.suppressed())
				}
			}
			if i == 0 {
				w.times = append(w.times, time.Since(sent).Nanoseconds())
			}
		}
	}
	// Both ends poll without pause: what their threads didn't get, others had.
	wall := time.Since(began)
	away := max(1-float64(processCPU()-cpu)/float64(2*wall), 0)
	slices.Sort(w.times)
	at := func(q float64) float64 { return float64(w.times[int(q*float64(len(w.times)-1))]) / 1000 }
	return &sample{
		Ops: uint64(len(w.times)), Wall: wall.Nanoseconds(), Rate: float64(len(w.times)) / wall.Seconds(),
		Extra: map[string]float64{"p50": at(0.5), "p99": at(0.99), "p99.9": at(0.999), "away": away},
	}, nil
}

// processCPU is that of all threads of this process, ns.
func processCPU() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		panic(err) // Linux always has it
	}
	return t.Nano()
}
