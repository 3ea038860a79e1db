package main

import (
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
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
