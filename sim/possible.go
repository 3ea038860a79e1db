package sim

import (
	"math"
	"slices"
)

// possible is the highest goodput that the network allows the flows, bit/s. They take at least as long as the busiest link needs for all that must pass
// it, and one round trip; and as the longest sequence of flows that wait for each other.
func (s *Sim) possible() float64 {
	links := make([]busy, len(s.ports))
	ends, bytes := make([]int64, len(s.flows)), int64(0)
	first, last := int64(math.MaxInt64), int64(0)
	for i := range s.flows {
		f := &s.flows[i].Flow
		start := f.Start
		for _, after := range f.After {
			if after != 0 {
				start = max(start, f.Start+ends[after-1])
			}
		}
		alone := s.ideal(f)
		ends[i] = start + alone
		bytes += f.Bytes
		first, last = min(first, start), max(last, ends[i])
		s.fill(links, f, start, alone)
	}
	for i := range links {
		last = max(last, links[i].first+links[i].latency+int64(links[i].time))
	}
	if last <= first {
		return 0
	}
	return float64(bytes) * 8e9 / float64(last-first)
}

// busy is what a link has to carry.
type busy struct {
	time    float64 // ns in which it sends all
	first   int64   // when the first flow may start, ns
	latency int64   // the least time that a flow takes beyond the time of its bytes, ns
}

// fill adds a flow to the links that it can't avoid.
func (s *Sim) fill(links []busy, f *Flow, start, alone int64) {
	wire, slowest := float64(s.wire(f)), 0.0
	s.walk(f.From, f.To, func(perByte float64, _ int64) { slowest = max(slowest, perByte) })
	latency := alone - int64(wire*slowest)
	s.walkSole(f.From, f.To, func(port int32) {
		l := &links[port]
		if l.time == 0 {
			l.first, l.latency = start, latency
		}
		l.time += wire * 8e9 / float64(s.lineRate(port))
		l.first, l.latency = min(l.first, start), min(l.latency, latency)
	})
}

// walkSole visits the ports that each path from one host to another has.
func (s *Sim) walkSole(from, to int, visit func(port int32)) {
	for ports := []int32{s.hosts[from].port}; len(ports) > 0; {
		if len(ports) == 1 {
			visit(ports[0])
		}
		var next []int32
		for _, n := range ports {
			in := s.ports[n].peer
			switch node := s.ports[in].node; s.kinds[node] {
			case SwitchNode:
				h := s.routes.to[int(node)*s.routes.hosts+to]
				next = append(next, s.routes.ports[h.first:h.first+h.n]...)
			case GatewayNode:
				next = append(next, s.gateways[s.of[node]].through(in))
			}
		}
		slices.Sort(next)
		ports = slices.Compact(next)
	}
}
