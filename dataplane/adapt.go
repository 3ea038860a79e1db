package dataplane

import (
	"slices"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/egress"
	"github.com/cnpgate/cnpgate/proxy"
	"github.com/cnpgate/cnpgate/ratelimit"
)

// adaptation is the gateway's measurements of a port, on which its policy depends.
type adaptation struct {
	rtt    congestion.RTT
	adjust congestion.Adjuster
}

// Adapt updates the present policy with the measured round-trip times, and adjusts parameters to the traffic if configured (draft-tian
// 5.3.2, 5.8). Call it some 20 times a second, with the time in ns, always by the same clock, and never at the same time as SetPolicy.
// Workers use the changes from their next burst on.
func (d *Dataplane) Adapt(now int64) {
	changed := false
	for port := range d.ports {
		changed = d.adaptPort(port, now) || changed
	}
	if changed {
		d.policy.Store(d.adapted(d.base))
	}
}

func (d *Dataplane) adaptPort(port int, now int64) (changed bool) {
	p, a := &d.base.Ports[port], &d.adaptations[port]
	a.rtt.Receivers = p.Trust.Receivers
	d.paths[port].takeSamples(&a.rtt, &p.RTTFrom, now)
	changed = a.rtt.Update(&p.RTTFrom, p.RTT, now)
	if p.Adjust == (congestion.AdjustPolicy{}) && a.adjust.Percent() == unadjusted {
		return changed
	}
	kMax := d.policy.Load().Ports[port].KMax
	return a.adjust.Look(p.Adjust, now, d.queueTotals(port), kMax, p.Rate) || changed
}

// queueTotals are all workers' counts of a port's queue.
func (d *Dataplane) queueTotals(port int) congestion.QueueTotals {
	s, peer := d.Port(port), d.Port(d.ports[port].Peer)
	q := congestion.QueueTotals{
		Dropped: s.Count[counters.DroppedQueueOctets] + s.Count[counters.DroppedQueueFrames], LineBytes: s.Count[counters.TxBytes] + s.Count[counters.TxPackets]*egress.LineOverhead,
		Depth: slices.Max(s.Depth[:]),
	}
	for n := range counters.Counter(congestion.Causes) { // counted at the peer, where the flows arrive
		if !(congestion.Cause(1) << n).Elsewhere() {
			q.Notified += peer.Count[counters.TriggeredFirst+n]
		}
	}
	return q
}

const unadjusted = 100 // percent

// adapted returns a policy with the gateway's measurements.
func (d *Dataplane) adapted(base *Policy) *Policy {
	p := *base
	p.Ports = slices.Clone(base.Ports)
	for i := range p.Ports {
		port := &p.Ports[i]
		if port.Queue == nil {
			port.Queue = &d.ports[i].Queue
		}
		d.adaptations[i].apply(port)
	}
	return &p
}

// apply sets the present RTT_est in a port's policy, and the values that depend on it. Without a measured RTT_est, and without adjustments,
// the operator's policy stays unchanged.
func (a *adaptation) apply(p *PortPolicy) {
	rtt, source := a.rtt.InForce()
	p.RTTSource, p.Percent = source, a.adjust.Percent()
	if source == congestion.RTTConfigured && p.Percent == unadjusted {
		return
	}
	if source != congestion.RTTConfigured {
		p.RTT = rtt
	}
	if p.PerFlowIsRTT && p.RTT > 0 {
		p.PerFlow = ratelimit.Interval(p.RTT)
	}
	if p.Sizing == (congestion.Sizing{}) { // the control law needs no RTT
		return
	}
	p.Thresholds = p.Sizing.Thresholds(p.Rate, p.RTT, p.Percent)
	p.Triggers.Adjust(p.Percent)
	p.PerFlow = p.PerFlow * ratelimit.Interval(p.Percent) / unadjusted
}

// SetPolicy replaces the policy, which must be for the same ports; each worker uses it from its next burst on. Measurements stay valid.
func (d *Dataplane) SetPolicy(p *Policy) error {
	if err := p.Validate(d.ports); err != nil {
		return err
	}
	d.base = p
	d.policy.Store(d.adapted(p))
	for i, l := range d.lines {
		l.SetRate(d.Policy().Ports[i].Queue.Rate)
	}
	return nil
}

// SetProxies replaces the policy's proxies; each worker uses them from its next burst on. Call it never at the same time as SetPolicy or Adapt.
func (d *Dataplane) SetProxies(s *proxy.Senders) {
	p := *d.base
	p.Proxies = s
	d.base = &p
	d.policy.Store(d.adapted(&p))
}

// Policy returns the present policy: the operator's, with the gateway's measurements and adjustments. Any goroutine may call it.
func (d *Dataplane) Policy() *Policy { return d.policy.Load() }
