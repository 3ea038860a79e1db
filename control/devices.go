package control

import (
	"context"

	"github.com/cnpgate/cnpgate/internal/burst"
)

// Devices are what a gateway runs on. internal/dpdk has them; cmd hands them over.
type Devices interface {
	// Backend is a worker's, by its number. One that is a burst.Waiter is waited at where the configuration says idle: backoff.
	Backend(worker int) burst.Backend
	// Enter makes the calling goroutine's thread a worker's, on a core; leave undoes it.
	Enter(core int) (leave func(), err error)
	// LinkUp tells whether a port has a link.
	LinkUp(port int) (bool, error)
	// SetLink takes a port's link down or up; errors.ErrUnsupported where the device can't.
	SetLink(port int, up bool) error
	// Counters are what a port's device counted by itself.
	Counters(port int) (DeviceCounters, error)
	// Watch reports what happens to the devices, one call at a time, until the context ends.
	Watch(ctx context.Context, report func(Notice)) error
}

// DeviceCounters are frames that a device counted and no worker has seen.
type DeviceCounters struct {
	Missed         uint64 // no place in the device: the worker was too slow
	NoBuffer       uint64 // no free buffer
	ReceiveErrors  uint64 // damaged, or of a length that the device doesn't take
	Oversized      uint64 // longer than the device takes; some devices count them as receive errors too
	TransmitErrors uint64 // not sent, though the device took them
}

// each calls f with the name and value of each counter, in a fixed order.
func (c *DeviceCounters) each(f func(name string, value uint64)) {
	f("device_missed_packets_total", c.Missed)
	f("device_no_buffer_packets_total", c.NoBuffer)
	f("device_receive_errors_total", c.ReceiveErrors)
	f("device_oversized_packets_total", c.Oversized)
	f("device_transmit_errors_total", c.TransmitErrors)
}

// Notice is something that happened to a port's device.
type Notice struct {
	Port    int
	Healthy bool // the port forwards
	Text    string
}
