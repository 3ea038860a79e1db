package main

import (
	"os"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control/config"
)

const (
	// takeOverLimit is how long a gateway that stood by may take until it forwards: as long as systemd lets a service start (DefaultTimeoutStartSec).
	takeOverLimit = 90 * time.Second
	// keepAlives is how many times within its timeout the service manager's watchdog is fed.
	keepAlives = 4
)

// keepAlive feeds the service manager's watchdog until stop is called, or for limit at most. A gateway that stood by has said READY=1, so the watchdog
// already runs while it opens its devices, which can take a NIC far longer than WatchdogSec. stop may be called more than once.
func keepAlive(limit time.Duration) (stop func()) {
	timeout, err := daemon.SdWatchdogEnabled(false)
	if err != nil || timeout < keepAlives {
		return func() {} // no watchdog; control warns of a timeout that is not a number
	}
	stopped, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		tick, end := time.NewTicker(timeout/keepAlives), time.NewTimer(limit)
		defer tick.Stop()
		defer end.Stop()
		for {
			_, _ = daemon.SdNotify(false, daemon.SdNotifyWatchdog)
			select {
			case <-stopped:
				return
			case <-end.C:
				return
			case <-tick.C:
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(stopped)
		<-over
	})
}

// followed is a configuration whose file may change while a gateway stands by.
type followed struct {
	cfg  *config.Config // that was read last
	load func() (*config.Config, error)
	log  zerolog.Logger
	at   time.Time   // of the last look at the file
	file os.FileInfo // as it was then
}

// changed reads the file again if it is another one, and returns the new configuration, nil if there is none. If the file has a mistake now, the
// configuration stays.
func (f *followed) changed() *config.Config {
	f.at = time.Now()
	info, err := os.Stat(f.cfg.File.Name)
	if err != nil || !info.Mode().IsRegular() ||
		f.file != nil && os.SameFile(f.file, info) && info.ModTime().Equal(f.file.ModTime()) && info.Size() == f.file.Size() {
		return nil
	}
	f.file = info
	next, err := f.load()
	switch {
	case err != nil:
		f.log.Error().Err(err).Msg("The configuration file has changed and can't be used. The gateway uses the one that it read before.")
		return nil
	case next.File.Hash() == f.cfg.File.Hash():
		return nil
	}
	logWarnings(next, f.log)
	return next
}
