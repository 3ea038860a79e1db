package counters

import (
	"sync/atomic"

	"github.com/cnpgate/cnpgate/internal/fastpath"
)

// Ports are one worker's, by port, in plain memory that only its goroutine touches; publish copies them for other goroutines.
type Ports []portCounters

type portCounters struct {
	changed   [changedWords]uint64 // a bit for each counter that was not published since it changed
	count     [Counters]uint64
	published *[Counters]atomic.Uint64
}

// New makes the counters of so many ports.
func New(ports int) Ports {
	c := make(Ports, ports)
	for i := range c {
		c[i].published = new([Counters]atomic.Uint64)
	}
	return c
}

// changedWords is the number of words with a bit for each counter.
const changedWords = (int(Counters) + 63) / 64

// Add adds to a counter of a port.
func (c Ports) Add(port int, n Counter, by uint64) {
	p := &c[port]
	p.count[n] += by
	p.changed[n/64] |= 1 << (n % 64)
}

// Publish copies what has changed to shared memory. Counters are many and change rarely, so each has a bit.
func (c Ports) Publish(port int) {
	p := &c[port]
	for word := range p.changed {
		fastpath.StoreSet(p.published[64*word:], p.count[64*word:], p.changed[word])
		p.changed[word] = 0
	}
}

// Read adds what was published of a port; any goroutine may call it.
func (c Ports) Read(port int, to *[Counters]uint64) {
	for n := range to {
		to[n] += c[port].published[n].Load()
	}
}
