//go:build !nodpdk

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control"
	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/dpdk"
	"github.com/cnpgate/cnpgate/telemetry"
)

// running is the program of a whole gateway, with the API and its part in a fleet. Its one worker pauses between runs, at an exchange; everything else
// always runs.
func running(args []string) (err error) {
	var g rig
	if len(args) != 1 {
		return errors.New("running: expected a setup in JSON")
	}
	if err := json.Unmarshal([]byte(args[0]), &g.setup); err != nil {
		return err
	}
	if g.config, err = config.Parse("bench.yaml", []byte(g.setup.yaml(""))); err != nil {
		return err
	}
	if g.devices, err = dpdk.Open(g.deviceConfig()); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.devices.Close()) }()
	worker := &pausing{Backend: g.devices.Backend(0), runs: make(chan time.Duration), done: make(chan int64)}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	began, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := control.Run(ctx, g.config, pausedDevices{g.devices, worker}, control.Options{Log: zerolog.Nop(), Started: func() { close(began) }})
		ended <- err
	}()
	select {
	case err := <-ended:
		return err
	case <-began:
	}
	if g.setup.Asked {
		go askAll(ctx, g.setup.API)
	}
	if !g.setup.Short {
		err = worker.settle()
	}
	if err == nil {
		err = serve(func(_ string, d time.Duration) (*sample, error) { return worker.run(d), nil })
	}
	cancel()
	close(worker.runs)
	return errors.Join(err, <-ended)
}

// pausing is the worker's backend: it waits at an exchange while the worker isn't measured.
type pausing struct {
	burst.Backend
	runs   chan time.Duration // CPU time of a run; closed: the worker goes on without end
	done   chan int64         // CPU time that a run took, ns
	left   int64              // CPU time of the present run, ns; 0: none yet
	from   int64              // the thread's CPU time at its begin
	polls  int                // exchanges until the next look at the clock
	frames uint64             // received so far
}

// Exchange implements burst.Backend.
func (p *pausing) Exchange() int64 {
	if p.polls--; p.polls <= 0 {
		p.pause()
	}
	now := p.Backend.Exchange()
	for i := range p.Batch().Ports {
		p.frames += uint64(len(p.Batch().Ports[i].Rx))
	}
	return now
}

// pause ends the present run if its time is over, and then waits for the next one.
func (p *pausing) pause() {
	const exchanges = 64 // between two looks at the clock, which costs as much as several packets
	p.polls = exchanges
	now := threadCPU()
	if now-p.from < p.left {
		return
	}
	if p.left > 0 {
		p.done <- now - p.from
	}
	d, ok := <-p.runs
	if p.left, p.from = d.Nanoseconds(), threadCPU(); !ok {
		p.left = math.MaxInt64 // the gateway stops: this is no run
	}
}

// run lets the worker run for so much CPU time.
func (p *pausing) run(d time.Duration) *sample {
	began, before := time.Now(), p.frames
	p.runs <- d
	cpu := <-p.done
	return &sample{Ops: p.frames - before, CPU: cpu, Wall: time.Since(began).Nanoseconds()}
}

// settle is that of a rig.
func (p *pausing) settle() error {
	for began := time.Now(); time.Since(began) < 1100*time.Millisecond || p.frames < settled; {
		if time.Since(began) > startup {
			return fmt.Errorf("%d frames were received in %v", p.frames, startup)
		}
		p.run(50 * time.Millisecond)
	}
	return nil
}

// settled is the number of frames after which pairing judges the flows of a mix rarely.
const settled = 4 << 20

// askAll asks the API twice a second for all that the page of a running gateway shows, as pages do while they are open.
func askAll(ctx context.Context, socket string) {
	client := api.NewClient(socket)
	for tick := time.NewTicker(500 * time.Millisecond); ctx.Err() == nil; <-tick.C {
		for _, path := range []string{api.VersionPath, api.CountersPath, api.HealthPath, api.NotificationsPath, api.EpisodesPath, api.SendersPath, api.FlowsPath, api.PairsPath, api.RDMAPath} {
			if body, err := client.JSON(ctx, path); err == nil {
				_, _ = io.Copy(io.Discard, body)
				_ = body.Close()
			}
		}
	}
}

// pausedDevices are the devices of a running gateway, and its worker.
type pausedDevices struct {
	*dpdk.Devices
	worker *pausing
}

// Backend implements control.Devices.
func (d pausedDevices) Backend(int) burst.Backend { return d.worker }

// Enter implements control.Devices.
func (d pausedDevices) Enter(core int) (leave func(), err error) {
	return dpdk.UnregisterThread, dpdk.RegisterThread(core)
}

// LinkUp implements control.Devices.
func (d pausedDevices) LinkUp(port int) (bool, error) { return d.Port(port).LinkUp() }

// Describe implements control.Devices.
func (pausedDevices) Describe(int) report.Device { return report.Device{} }

// SetLink implements control.Devices.
func (d pausedDevices) SetLink(port int, up bool) error { return d.Port(port).SetLink(up) }

// Counters implements control.Devices.
func (d pausedDevices) Counters(int) (telemetry.Values, error) { return telemetry.Values{}, nil }

// Watch implements control.Devices.
func (d pausedDevices) Watch(ctx context.Context, report func(control.Notice)) error {
	return d.Devices.Watch(ctx, func(n dpdk.Notice) { report(control.Notice(n)) })
}
