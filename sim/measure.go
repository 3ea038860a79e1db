package sim

import (
	"github.com/cnpgate/cnpgate/dataplane"
)

// Series are samples at equal intervals.
type Series struct {
	Every   int64   // ns
	Gateway []int64 // bytes in the longest queue of a gateway's WAN ports
	Switch  []int64 // bytes of data in the longest queue of a switch
	// Senders are the hosts at which flows begin. Rates are what each sent in the last interval: bit/s on the line, by host and time.
	Senders []int
	Rates   [][]int64
	// Notified counts the gateways' notifications, CNPs the receivers' CNPs.
	Notified, CNPs Events
}

// Events is the number of events of a kind up to each sample, and the times of the first ones, ns.
type Events struct {
	ByThen []int64
	First  []int64
	n      int64
}

const (
	// MaxSamples is the most samples that a simulation keeps.
	MaxSamples = 1 << 20
	maxFirst   = 1 << 16 // times kept in Events
)

// measure holds the measurements of a simulation.
type measure struct {
	series Series
	sent   []uint64 // by sender, bytes at the last sample
	first  int64    // when the first sender slowed down, ns; 0: none yet
}

// startMeasuring schedules the first sample.
func (s *Sim) startMeasuring(every int64) {
	m := &s.measure
	m.series.Every = every
	seen := make([]bool, len(s.hosts))
	for i := range s.flows {
		if from := s.flows[i].From; !seen[from] {
			seen[from] = true
			m.series.Senders = append(m.series.Senders, from)
		}
	}
	m.series.Rates = make([][]int64, len(m.series.Senders))
	m.sent = make([]uint64, len(m.series.Senders))
	for h := range s.hosts {
		s.schedule(int32(h), s.now)
	}
	s.agenda.Set(s.sampler(), s.now+every)
}

// sample records the present queues and rates.
func (s *Sim) sample(now int64) {
	m := &s.measure
	s.agenda.Set(s.sampler(), now+m.series.Every)
	if len(m.series.Gateway) == MaxSamples {
		return
	}
	m.series.Gateway = append(m.series.Gateway, s.longestAtGateways())
	longest := int64(0)
	for n := range s.ports {
		longest = max(longest, s.ports[n].queues[classData].bytes)
	}
	m.series.Switch = append(m.series.Switch, longest)
	for _, e := range []*Events{&m.series.Notified, &m.series.CNPs} {
		e.ByThen = append(e.ByThen, e.n)
	}
	for i, h := range m.series.Senders {
		p := &s.ports[s.hosts[h].port]
		bytes := p.stats.Sent.Bytes + p.stats.Sent.Frames*uint64(s.network.Overhead)
		m.series.Rates[i] = append(m.series.Rates[i], int64(float64(bytes-m.sent[i])*8e9/float64(m.series.Every)))
		m.sent[i] = bytes
	}
}

// longestAtGateways is the depth of the longest queue of a WAN port.
func (s *Sim) longestAtGateways() int64 {
	longest := uint64(0)
	for _, g := range s.gateways {
		for port := range g.ports {
			if g.wan(s, port) {
				for _, depth := range g.plane.Port(port).Depth {
					longest = max(longest, depth)
				}
			}
		}
	}
	return int64(longest)
}

// wan reports whether a port is on the WAN side.
func (g *gateway) wan(s *Sim, port int) bool {
	return s.network.Nodes[g.node].Gateway.Dataplane.Ports[port].Role == dataplane.WAN
}

// add records an event.
func (e *Events) add(now int64) {
	if e.n++; len(e.First) < maxFirst {
		e.First = append(e.First, now-epoch)
	}
}
