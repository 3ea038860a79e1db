//go:build !nodpdk

package main

import (
	"context"
	"errors"
	"os"
	"reflect"
	"slices"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/internal/dpdk"
)

// followEvery is how often a standby looks whether the configuration file has changed.
const followEvery = time.Second

// errOtherDevices means that the configuration file wants other devices, workers or memory than those that are prepared.
var errOtherDevices = errors.New("the configuration file has changed")

// standBy waits until no gateway uses the devices of a configuration; nil if the context ended first. The configuration file may change meanwhile: if other
// devices are to be prepared, the program begins again in the same process, as an EAL can start only once.
func standBy(ctx context.Context, c *config.Config, load func() (*config.Config, error), log zerolog.Logger, flush func()) (*standby, error) {
	s := &standby{flush: flush, followed: followed{cfg: c, load: load, log: log, at: time.Now()}, next: dpdk.NewStandby(withLog(deviceConfig(c), log)), alive: func() {}}
	defer func() { s.alive() }()
	err := s.next.Await(ctx, s.waiting)
	if err == nil && s.waited {
		err = s.follow()
	}
	switch {
	case err == nil:
	case errors.Is(err, errOtherDevices):
		return nil, s.again()
	case errors.Is(err, context.Canceled):
		log.Info().Msg("The gateway was stopped while standing by.")
		return nil, s.next.Close()
	default:
		return nil, errors.Join(located(s.cfg, err), s.next.Close())
	}
	if s.waited {
		log.Warn().Msg("The gateway takes over: the devices are free.")
		_, _ = daemon.SdNotify(false, "STATUS=taking over")
	}
	return s, nil
}

// standby is a gateway that waits for its devices.
type standby struct {
	followed
	next   *dpdk.Standby
	flush  func() // writes the lines of the log that wait
	waited bool
	last   string    // reason
	alive  func()    // ends keepAlive
	fed    time.Time // when that began
}

// waiting is called at each look that finds a device in use.
func (s *standby) waiting(reason string) error {
	s.waited = true
	if reason != s.last {
		s.last = reason
		s.log.Info().Str("reason", reason).Msg("The gateway is standing by.")
		_, _ = daemon.SdNotify(false, daemon.SdNotifyReady+"\nSTATUS=standing by: "+reason) // without systemd there is nobody to notify
	}
	if time.Since(s.fed) > takeOverLimit/4 { // also between the looks: to allocate much memory takes longer than WatchdogSec
		s.alive()
		s.alive, s.fed = keepAlive(takeOverLimit), time.Now()
	}
	if time.Since(s.at) < followEvery {
		return nil
	}
	return s.follow()
}

// follow uses the configuration that is in the file now.
func (s *standby) follow() error {
	next := s.changed()
	switch {
	case next == nil:
		return nil
	case reflect.DeepEqual(deviceConfig(next), deviceConfig(s.cfg)):
		s.cfg = next
		return nil
	}
	faults, _ := dpdk.Check(deviceConfig(next))
	faults = slices.DeleteFunc(faults, func(f dpdk.Fault) bool { return f.Part == dpdk.MemorySize }) // this process has some that it would give back
	if len(faults) > 0 {
		s.log.Error().Err(located(next, faults)).Msg("The configuration file has changed and can't be used on this host. The standby uses the one that it read before.")
		return nil
	}
	return errOtherDevices
}

// again executes the program again.
func (s *standby) again() error {
	s.log.Info().Msg("The configuration file wants other devices or memory. The standby starts again.")
	if err := s.next.Close(); err != nil {
		return err
	}
	s.flush()
	return &os.PathError{Op: "exec", Path: "/proc/self/exe", Err: unix.Exec("/proc/self/exe", os.Args, os.Environ())}
}

// open opens the devices.
func (s *standby) open() (*devices, error) {
	d, err := s.next.Open()
	if err != nil {
		return nil, located(s.cfg, err)
	}
	return logged(d, deviceConfig(s.cfg), s.log), nil
}
