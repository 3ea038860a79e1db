package sim

import (
	"fmt"
	"math"
	"slices"

	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/telemetry"
)

// Result is the result of a simulation. Times are ns, sizes bytes, rates bit/s.
type Result struct {
	Ended         int64             `json:"ended_ns"` // when the simulation ended
	All           Group             `json:"all"`
	Groups        []Group           `json:"groups,omitempty"`
	Gateway       Queue             `json:"gateway_queue"` // the longest queue of gateways' WAN ports
	Switch        Queue             `json:"switch_queue"`  // the longest queue of switches
	Dropped       uint64            `json:"dropped_packets"`
	Lost          uint64            `json:"lost_packets"` // on links
	Retransmitted uint64            `json:"retransmitted_packets"`
	Marked        uint64            `json:"marked_packets"`
	Pauses        uint64            `json:"pfc_pauses"`    // PFC frames with which switches stopped a link
	Paused        int64             `json:"pfc_paused_ns"` // total time for which ports of switches were stopped
	Crossed       int64             `json:"crossed_ns"`    // from the first flow's start until a gateway's WAN queue first exceeded the depth at which it responds; -1: never
	SlowDown      int64             `json:"slow_down_ns"`  // from the first flow's start until the first sender slowed down; -1: never
	Sent          uint64            `json:"notifications"` // of gateways
	ByKind        map[string]uint64 `json:"notifications_by_kind"`
	CNPs          uint64            `json:"cnps"` // of receivers
	// Reactions counts the senders' decisions on notifications, by endpoint.Decision.
	Reactions map[string]uint64 `json:"reactions"`
	Jain      float64           `json:"jain"`                 // of the flows
	Senders   float64           `json:"jain_senders"`         // of the hosts that send
	Possible  float64           `json:"possible_goodput_bps"` // a bound of All.Goodput
	// Unresponsive are the hosts that don't react to notifications, as the gateways found.
	Unresponsive []int  `json:"unresponsive_hosts,omitempty"`
	Hops         uint64 `json:"packet_hops"`
	// Gateways are the gateways' counters, by the names of the catalogue in package telemetry; zeros are left out.
	Gateways []map[string]uint64 `json:"gateways,omitempty"`
	Fleet    *FleetResult        `json:"fleet,omitempty"` // if the gateways are one
}

// Group is the result of a group of flows, or of all flows.
type Group struct {
	Flows        int     `json:"flows"`
	Finished     int     `json:"finished"`
	Failed       int     `json:"failed"`
	MeanFCT      int64   `json:"fct_mean_ns"` // of the finished flows
	P99FCT       int64   `json:"fct_p99_ns"`
	MeanSlowdown float64 `json:"slowdown_mean"`
	P99Slowdown  float64 `json:"slowdown_p99"`
	Goodput      float64 `json:"goodput_bps"` // acknowledged bits, from the first start to the last end
}

// Queue describes the length of a queue.
type Queue struct {
	Peak int64 `json:"peak_bytes"`
	P99  int64 `json:"p99_bytes"` // of the samples
}

// Series are the measurements over time.
func (s *Sim) Series() *Series { return &s.measure.series }

// Result computes the results so far. It fails if a frame is unaccounted for.
func (s *Sim) Result() (*Result, error) {
	if err := s.account(); err != nil {
		return nil, err
	}
	r := &Result{Ended: s.now - epoch, Hops: s.hops, Crossed: -1, SlowDown: -1, ByKind: map[string]uint64{}, Reactions: map[string]uint64{}}
	r.Fleet = s.team.result()
	s.sumPorts(r)
	if err := s.sumGateways(r); err != nil {
		return nil, err
	}
	s.sumHosts(r)
	slices.Sort(r.Unresponsive)
	r.Unresponsive = slices.Compact(r.Unresponsive)
	groups := 0
	for i := range s.flows {
		groups = max(groups, s.flows[i].Group+1)
	}
	r.All = s.group(-1)
	for g := range groups {
		r.Groups = append(r.Groups, s.group(g))
	}
	r.Jain, r.Senders, r.Possible = s.jain(), s.jainSenders(), s.possible()
	series := &s.measure.series
	r.Gateway.P99, r.Switch.P99 = percentile(series.Gateway, 99), percentile(series.Switch, 99)
	if crossed := s.measure.crossed; crossed != 0 {
		r.Crossed = crossed - s.firstStart()
	}
	if first := s.measure.first; first != 0 {
		r.SlowDown = first - s.firstStart()
	}
	return r, nil
}

// account checks that every frame is in a queue or on a link.
func (l *lines) account() error {
	held := 0
	for i := range l.ports {
		p := &l.ports[i]
		for class := range p.queues {
			held += p.queues[class].count(&l.store)
		}
		held += p.flight.frames.Len()
	}
	free := fifo{first: l.store.free}
	if n := l.store.places - free.count(&l.store); n != held {
		return fmt.Errorf("%d frames are in the network, but %d in queues and on links: a bug in cnpgate; please report it", n, held)
	}
	return nil
}

func (q *fifo) count(s *store) (n int) {
	for f := q.first; f != none; f = s.at(f).next {
		n++
	}
	return n
}

func (l *lines) sumPorts(r *Result) {
	for i := range l.ports {
		p := &l.ports[i]
		r.Dropped += p.stats.Dropped.Frames
		r.Lost += p.stats.Lost.Frames
		r.Marked += p.stats.Marked
		r.Pauses += p.stats.Pauses
		r.Paused += p.stats.StoppedFor - max(p.stoppedTo-l.now, 0)
		r.Switch.Peak = max(r.Switch.Peak, p.stats.Peak)
	}
}

// sumGateways adds up the gateways' counters, and checks their accounting identity.
func (s *Sim) sumGateways(r *Result) error {
	r.Dropped += s.noBuffer + s.unroutable
	for _, g := range s.gateways {
		v := g.plane.Values()
		if err := v.Check(); err != nil {
			return fmt.Errorf("gateway %s: %w", s.name(g.node), err)
		}
		r.Dropped += v.Sum(telemetry.DroppedPackets)
		r.Marked += v.Sum(telemetry.ECNMarkedPackets)
		r.Sent += v.Sum(telemetry.NotificationsSent)
		for kind, n := range v[telemetry.NotificationsSent.Name].By {
			r.ByKind[kind] += n
		}
		senders, _ := g.plane.Unresponsive()
		for i := range senders {
			r.Unresponsive = append(r.Unresponsive, int(senders[i].Host.Lo)-1)
		}
		counted := map[string]uint64{}
		v.Each(func(name string, value uint64) { counted[name] = value })
		r.Gateways = append(r.Gateways, counted)
		for port := range g.ports {
			if g.wan(s, port) {
				for _, most := range g.plane.Port(port).Watermark {
					r.Gateway.Peak = max(r.Gateway.Peak, int64(most))
				}
			}
		}
	}
	return nil
}

func (s *Sim) sumHosts(r *Result) {
	for i := range s.hosts {
		c := s.hosts[i].end.Counters()
		r.CNPs += c.CNPsSent
		r.Retransmitted += c.Retransmitted
		for decision, n := range s.hosts[i].end.ReactionPoint().Counters().Decisions {
			if n > 0 {
				r.Reactions[endpoint.Decision(decision).String()] += n
			}
		}
	}
}

// firstStart is when the first flow started.
func (t *traffic) firstStart() int64 {
	first := int64(math.MaxInt64)
	for i := range t.flows {
		if f := &t.flows[i]; f.started != 0 {
			first = min(first, f.started)
		}
	}
	return first
}

// FCTs returns the flows' completion times, ns; 0 for one that hasn't ended.
func (t *traffic) FCTs() []int64 {
	all := make([]int64, len(t.flows))
	for i := range t.flows {
		if f := &t.flows[i]; f.finished != 0 && !f.failed {
			all[i] = f.finished - f.started
		}
	}
	return all
}

// group computes the results of a group of flows; -1 is all flows.
func (t *traffic) group(n int) (g Group) {
	var times []int64
	var slowdowns []float64
	first, last, bytes := int64(math.MaxInt64), int64(0), int64(0)
	for i := range t.flows {
		f := &t.flows[i]
		if n >= 0 && f.Group != n {
			continue
		}
		g.Flows++
		bytes += f.done
		if f.started != 0 {
			first = min(first, f.started)
		}
		switch {
		case f.failed:
			g.Failed++
		case f.finished != 0:
			g.Finished++
			times = append(times, f.finished-f.started)
			slowdowns = append(slowdowns, float64(f.finished-f.started)/float64(t.ideal(&f.Flow)))
			last = max(last, f.finished)
		}
	}
	if g.Finished+g.Failed < g.Flows {
		last = t.now
	}
	g.MeanFCT, g.P99FCT = int64(mean(times)), percentile(times, 99)
	g.MeanSlowdown, g.P99Slowdown = mean(slowdowns), percentile(slowdowns, 99)
	if last > first {
		g.Goodput = float64(bytes) * 8e9 / float64(last-first)
	}
	return g
}

// jain is Jain's fairness index (DEC-TR-301, 1984) of the flows' rates, each relative to the rate that the flow would have had alone: 1 if
// all are equal, 1/n if one of n flows had everything.
func (t *traffic) jain() float64 {
	var shares []float64
	for i := range t.flows {
		f := &t.flows[i]
		if f.started == 0 || f.started >= t.now {
			continue
		}
		shares = append(shares, float64(f.done)/float64(f.Bytes)*float64(t.ideal(&f.Flow))/float64(t.end(f)-f.started))
	}
	return jainOf(shares)
}

// jainSenders is that index of the senders' goodputs, from the start of a host's first flow to the end of its last.
func (t *traffic) jainSenders() float64 {
	type sum struct{ bytes, start, end int64 }
	sent := map[int]*sum{} // by sender
	for i := range t.flows {
		f := &t.flows[i]
		if f.started == 0 || f.started >= t.now {
			continue
		}
		s := sent[f.From]
		if s == nil {
			s = &sum{start: f.started}
			sent[f.From] = s
		}
		s.bytes, s.start, s.end = s.bytes+f.done, min(s.start, f.started), max(s.end, t.end(f))
	}
	var shares []float64
	for h := range t.hosts {
		if s := sent[h]; s != nil {
			shares = append(shares, float64(s.bytes)/float64(s.end-s.start))
		}
	}
	return jainOf(shares)
}

// end is when a flow ended, or now.
func (t *traffic) end(f *flow) int64 {
	if f.finished == 0 {
		return t.now
	}
	return f.finished
}

func jainOf(shares []float64) float64 {
	sum, squares := 0.0, 0.0
	for _, share := range shares {
		sum += share
		squares += share * share
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(shares)) * squares)
}

// possible is the highest goodput that the network allows the flows, bit/s. They take at least as long as the busiest link needs for all that must pass
// it, and one round trip; and as the longest sequence of flows that wait for each other.
func (t *traffic) possible() float64 {
	links := make([]busy, len(t.ports))
	ends, bytes := make([]int64, len(t.flows)), int64(0)
	first, last := int64(math.MaxInt64), int64(0)
	for i := range t.flows {
		f := &t.flows[i].Flow
		start := f.Start
		for _, after := range f.After {
			if after != 0 {
				start = max(start, f.Start+ends[after-1])
			}
		}
		alone := t.ideal(f)
		ends[i] = start + alone
		bytes += f.Bytes
		first, last = min(first, start), max(last, ends[i])
		t.fill(links, f, start)
	}
	for i := range links {
		l := &links[i]
		last = max(last, l.first+l.latency+int64(t.network.lasts(i, float64(l.first), l.time)))
	}
	if last <= first {
		return 0
	}
	return float64(bytes) * 8e9 / float64(last-first)
}

func mean[T int64 | float64](values []T) float64 {
	sum := 0.0
	for _, v := range values {
		sum += float64(v)
	}
	return sum / float64(max(len(values), 1))
}

// percentile is the least value that at least p percent of the values don't exceed (nearest rank); 0 if there are none.
func percentile[T int64 | float64](values []T, p int) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return sorted[max((len(sorted)*p+99)/100-1, 0)]
}
