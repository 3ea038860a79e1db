package control

import "github.com/cnpgate/cnpgate/internal/burst"

// Devices are what a gateway runs on. internal/dpdk has them; cmd hands them over.
type Devices interface {
	// Backend is a worker's, by its number.
	Backend(worker int) burst.Backend
	// Enter makes the calling goroutine's thread a worker's, on a core; leave undoes it.
	Enter(core int) (leave func(), err error)
	// LinkUp tells whether a port has a link.
	LinkUp(port int) (bool, error)
	// SetLink takes a port's link down or up; errors.ErrUnsupported where the device can't.
	SetLink(port int, up bool) error
	// Missed is how many frames a port's device could not hand over: no free descriptor, no free buffer.
	Missed(port int) (uint64, error)
}
