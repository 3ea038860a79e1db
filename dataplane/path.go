package dataplane

import (
	"sync/atomic"

	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// path is the workers' shared state for measuring the round-trip time of the path behind a WAN port.
type path struct {
	least   [congestion.RTTSources]atomic.Int64  // of the samples since the last Adapt, ns; 0: none
	samples [congestion.RTTSources]atomic.Uint64 // total
	probe   probe
	session session
	replies atomic.Int64 // limit of STAMP replies

	neighbors, echoes atomic.Int64 // limits of answers, see reach.go

	_ [64]byte // no line shared with the next port
}

// measured records a sample; it ignores values that are not above 0.
func (p *path) measured(s congestion.RTTSource, rtt int64) {
	if rtt <= 0 {
		return
	}
	p.samples[s].Add(1)
	for {
		least := p.least[s].Load()
		if least != 0 && least <= rtt || p.least[s].CompareAndSwap(least, rtt) {
			return
		}
	}
}

// take returns the smallest sample since the last call, 0 if there was none.
func (p *path) take(s congestion.RTTSource) int64 { return p.least[s].Swap(0) }

// tracker is a worker's state for measuring the path behind a port.
type tracker struct {
	next int64 // time of the next check of a batch, ns

	// The flow whose packets are timed, see passive.go.
	flow    flowtable.Ref // the zero Ref: none
	highest uint32        // highest PSN of its requests since tracking began
	since   int64         // when that began, ns
	current bool          // highest includes the last batch
	looks   int           // at batches for a packet to time
	timed   int64         // when the probe in flight began, if it is this worker's; 0: none

	// The Ethernet header of the last data packet.
	link    [cnpgen.LinkLen]byte
	linkLen int
}

// lookInterval is the time between checks of batches while no packet is timed, ns.
const lookInterval = 1e6

// measure is the stage that times RoCEv2 packets and matches their acknowledgements. It checks few batches.
func (w *Worker) measure(b *batch) {
	if w.ports[b.port].Role == WAN {
		p := &w.plane.paths[b.port]
		if began := p.probe.began.Load(); began > 0 {
			w.matchACKs(b, p, began)
		}
		return
	}
	out := w.ports[b.port].Peer
	if t := &w.trackers[out]; w.now >= t.next {
		w.look(b, out, t)
	}
}

// look uses a batch of data packets to measure their path.
func (w *Worker) look(b *batch, out int, t *tracker) {
	policy := &w.policy.Ports[out]
	t.next = w.now + lookInterval
	if policy.STAMP.Interval > 0 {
		w.noteLink(b, t)
	}
	if policy.RTTFrom.Uses(congestion.RTTPassive) {
		w.timePackets(b, out, t)
	} else {
		w.forgetFlow(out, t)
	}
}

// noteLink keeps the Ethernet header of a forwarded packet outside tunnels, for frames that the gateway sends by the same port.
func (w *Worker) noteLink(b *batch, t *tracker) {
	const group = 1 // the bit of a MAC address
	data, p := w.frame(b, 0)
	if b.gone&1 == 0 && p.Kind == packet.RoCEv2 && !p.Encapsulated() && data[0]&group == 0 {
		t.linkLen = copy(t.link[:], data[:p.L3])
	}
}
