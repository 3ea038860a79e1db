package dataplane

import (
	"sync/atomic"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/frames"
	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/flowtable"
)

// path is the workers' shared state for measuring the round-trip time of the path behind a WAN port.
type path struct {
	least   atomic.Int64                         // of the STAMP samples since the last Adapt, ns; 0: none
	passive [passiveSamples]atomic.Uint64        // passive samples since then: the congestion.Receiver, and in the lower half ns; 0: free
	samples [congestion.RTTSources]atomic.Uint64 // total
	probe   probe
	tracked [trackedReceivers]atomic.Uint32 // receivers of the flows that workers have tracked last, each a congestion.Receiver
	turn    atomic.Uint32                   // number of such flows

	_ [64]byte // no line shared with the next port
}

const (
	passiveSamples   = 8 // kept for Adapt; others that come before it are discarded
	trackedReceivers = 16
)

// probed records a STAMP sample; it ignores values that are not above 0.
func (p *path) probed(rtt int64) {
	if rtt <= 0 {
		return
	}
	p.samples[congestion.RTTSTAMP].Add(1)
	for {
		least := p.least.Load()
		if least != 0 && least <= rtt || p.least.CompareAndSwap(least, rtt) {
			return
		}
	}
}

// acknowledged records a passive sample, above 0 and at most longestRTT, and the receiver that acknowledged.
func (p *path) acknowledged(from congestion.Receiver, rtt int64) {
	p.samples[congestion.RTTPassive].Add(1)
	for i := range p.passive {
		if p.passive[i].CompareAndSwap(0, uint64(from)<<32|uint64(rtt)) {
			return
		}
	}
}

// takeSamples passes the samples since the last call to the port's RTT.
func (p *path) takeSamples(to *congestion.RTT, policy *congestion.RTTPolicy, now int64) {
	if least := p.least.Swap(0); least > 0 {
		to.Sample(policy, congestion.RTTSTAMP, now, least)
	}
	for i := range p.passive {
		if sample := p.passive[i].Swap(0); sample != 0 {
			to.SampleOf(policy, congestion.Receiver(sample>>32), now, int64(uint32(sample)))
		}
	}
}

// track records that a worker tracks a flow to a receiver.
func (p *path) track(r congestion.Receiver) {
	p.tracked[(p.turn.Add(1)-1)%trackedReceivers].Store(uint32(r))
}

// age says how long ago a receiver's tenant was tracked, and for one tenant how long ago the receiver was. It is above 0.
func (p *path) age(r congestion.Receiver) int {
	const never = trackedReceivers + 1
	tenant, turn := never, p.turn.Load()
	for ago := 1; ago < never; ago++ {
		switch was := congestion.Receiver(p.tracked[(turn-uint32(ago))%trackedReceivers].Load()); {
		case was == r:
			return min(tenant, ago)*never + ago
		case was.Tenant() == r.Tenant():
			tenant = min(tenant, ago)
		}
	}
	return tenant*never + never
}

// tracker is a worker's state for measuring the path behind a WAN port.
type tracker struct {
	*stage.State
	out  int // the port
	seed uint64
	path *path
	next int64 // time of the next check of a batch, ns

	// The flow whose packets are timed, see passive.go.
	tracked  flowtable.Ref       // the zero Ref: none
	highest  uint32              // highest PSN of its requests since tracking began
	since    int64               // when that began, ns
	current  bool                // highest includes the last batch
	probes   int                 // of the flow, done
	receiver congestion.Receiver // of the flow
	looks    int                 // at batches for a packet to time
	timed    int64               // when the probe in flight began, if it is this worker's; 0: none
}

// lookInterval is the time between checks of batches while no packet is timed, ns.
const lookInterval = 1e6

// meter is the stage that measures round-trip times.
type meter struct {
	*stage.State
	trackers []tracker // by port
	gateway  *ownHost
}

// measure is the stage that times RoCEv2 packets and matches their acknowledgements. It checks few batches.
func (m *meter) measure(b *frames.Batch) {
	if m.Ports[b.Port].Role == WAN {
		t := &m.trackers[b.Port]
		if began := t.path.probe.began.Load(); began > 0 {
			t.matchACKs(b, began)
		}
		return
	}
	t := &m.trackers[m.Ports[b.Port].Peer]
	if m.Now < t.next {
		return
	}
	t.next = m.Now + lookInterval
	policy := &m.Policy.Ports[t.out]
	if policy.STAMP.Interval > 0 {
		m.gateway.noteLink(b, t.out, policy.STAMP.Interval)
	}
	if policy.RTTFrom.Uses(congestion.RTTPassive) {
		t.timePackets(b)
	} else {
		t.forgetFlow()
	}
}
