package dataplane

import (
	"sync/atomic"

	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/host"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
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

// tracker is a worker's state for measuring the path behind a port.
type tracker struct {
	next int64 // time of the next check of a batch, ns

	// The flow whose packets are timed, see passive.go.
	flow     flowtable.Ref       // the zero Ref: none
	highest  uint32              // highest PSN of its requests since tracking began
	since    int64               // when that began, ns
	current  bool                // highest includes the last batch
	probes   int                 // of the flow, done
	receiver congestion.Receiver // of the flow
	looks    int                 // at batches for a packet to time
	timed    int64               // when the probe in flight began, if it is this worker's; 0: none

	// The Ethernet header of a data packet, which stays until linkUntil (ns), so that a reply has time to come.
	link      [cnpgen.LinkLen]byte
	linkLen   int
	linkUntil int64
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
		w.noteLink(b, out, t, policy.STAMP.Interval)
	}
	if policy.RTTFrom.Uses(congestion.RTTPassive) {
		w.timePackets(b, out, t)
	} else {
		w.forgetFlow(out, t)
	}
}

// noteLink keeps the Ethernet header of a forwarded packet outside tunnels, for frames that the gateway sends by the same port. While the peer answers
// test packets with the present header, that stays: another one may be of a VLAN that doesn't lead to the peer.
func (w *Worker) noteLink(b *batch, out int, t *tracker, interval int64) {
	if by, ok := w.plane.host.Answers(out, w.now, interval); w.now < t.linkUntil || ok && by == uint32(w.id) {
		return
	}
	const group = 1 // the bit of a MAC address
	data, p := w.frame(b, 0)
	if b.gone&1 == 0 && p.Kind == packet.RoCEv2 && !p.Encapsulated() && data[0]&group == 0 {
		t.linkLen, t.linkUntil = copy(t.link[:], data[:p.L3]), w.now+host.AnsweredIntervals*interval
	}
	w.inHand = notInHand
}
