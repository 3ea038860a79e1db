package control

import (
	"context"

	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/telemetry"
)

// Devices are the devices of a gateway. internal/dpdk implements them; cmd passes them to Run.
type Devices interface {
	// Backend is that of a worker, by its number. With idle: backoff in the configuration, the worker waits at a backend that is a burst.Waiter.
	Backend(worker int) burst.Backend
	// Enter makes the calling goroutine's thread a worker thread on a core; leave undoes it.
	Enter(core int) (leave func(), err error)
	// LinkUp reports whether a port has a link.
	LinkUp(port int) (bool, error)
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
