package sim

import (
	"slices"

	"github.com/cnpgate/cnpgate/dataplane"
)

// Series are samples at equal intervals.
type Series struct {
	Every   int64        // ns
	Ports   []PortSeries // the gateways' WAN ports
	Gateway []int64      // bytes in the longest queue of them
	Switch  []int64      // bytes of data in the longest queue of a switch
	// Senders are the hosts at which flows begin. Rates are what each sent in the last interval, bit/s on the line, and Asked the notifications that gateways
	// sent to it: by sender and time.
	Senders      []int
	Rates, Asked [][]int64
	// Notified are the gateways' notifications, CNPs the receivers' CNPs, Lost the packets that queues dropped or links lost, up to each sample.
	Notified, CNPs, Lost []int64
}

// PortSeries are samples of a gateway's port.
type PortSeries struct {
	Gateway   string
	Reference int64   // bytes that the control law wants to wait in a queue; 0: it isn't used
	Depth     []int64 // bytes in the longest queue
	Fair      []int64 // the control law's lowest fair rate of a queue, bit/s; 0 before the first
}

// MaxSamples is the most samples that a simulation keeps.
const MaxSamples = 1 << 20

// measure holds the measurements of a simulation.
type measure struct {
	series         Series
	ports          []gatewayPort // of series.Ports
	sent           []uint64      // by sender, bytes at the last sample
	asked          []int64       // by host, notifications since the last sample
	notified, cnps int64
	first          int64 // when the first sender slowed down, ns; 0: none yet
	crossed        int64 // when a gateway's queue first exceeded the threshold of its port, ns; 0: none yet
}

// gatewayPort is a port of a gateway.
type gatewayPort struct {
	*gateway
	port      int
	threshold uint64 // bytes above which the gateway responds: the control law by notifications, else the first marks
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
	m.series.Asked = make([][]int64, len(m.series.Senders))
	m.sent = make([]uint64, len(m.series.Senders))
	m.asked = make([]int64, len(s.hosts))
	for _, g := range s.gateways {
		for port := range g.ports {
			if g.wan(s, port) {
				policy := s.network.Nodes[g.node].Gateway.Dataplane.Policy
				reference, threshold := policy.Ports[port].Law.Reference, policy.Ports[port].KMin
				if notifies := slices.Contains(policy.Who.Enabled[:], true); notifies && reference > 0 {
					threshold = uint64(reference / 2)
				}
				m.ports = append(m.ports, gatewayPort{g, port, threshold})
				m.series.Ports = append(m.series.Ports, PortSeries{Gateway: s.name(g.node), Reference: int64(reference)})
			}
		}
	}
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
	m.series.Gateway = append(m.series.Gateway, s.samplePorts())
	longest := int64(0)
	for n := range s.ports {
		longest = max(longest, s.ports[n].queues[classData].bytes)
	}
	m.series.Switch = append(m.series.Switch, longest)
	m.series.Notified, m.series.CNPs = append(m.series.Notified, m.notified), append(m.series.CNPs, m.cnps)
	m.series.Lost = append(m.series.Lost, s.lost())
	for i, h := range m.series.Senders {
		p := &s.ports[s.hosts[h].port]
		bytes := p.stats.Sent.Bytes + p.stats.Sent.Frames*uint64(s.network.Overhead)
		m.series.Rates[i] = append(m.series.Rates[i], int64(float64(bytes-m.sent[i])*8e9/float64(m.series.Every)))
		m.sent[i] = bytes
		m.series.Asked[i] = append(m.series.Asked[i], m.asked[h])
		m.asked[h] = 0
	}
}

// samplePorts records the queues and fair rates of gateways' WAN ports, and returns the depth of the longest queue.
func (s *Sim) samplePorts() (longest int64) {
	for i, p := range s.measure.ports {
		stats := p.plane.Port(p.port)
		depth, fair := slices.Max(stats.Depth[:]), uint64(0)
		for _, f := range stats.Fair {
			if f > 0 && (fair == 0 || f < fair) {
				fair = f
			}
		}
		to := &s.measure.series.Ports[i]
		to.Depth, to.Fair = append(to.Depth, int64(depth)), append(to.Fair, int64(fair))
		longest = max(longest, int64(depth))
	}
	return longest
}

// cross notes when a queue of a gateway first exceeds its threshold.
func (m *measure) cross(g *gateway, now int64) {
	for i := range m.ports {
		if p := &m.ports[i]; p.gateway == g && g.plane.Watermark(p.port) > p.threshold {
			m.crossed = now
		}
	}
}

// notification counts a notification of a gateway.
func (m *measure) notification(to int32) {
	m.notified++
	if to >= 0 && int(to) < len(m.asked) {
		m.asked[to]++
	}
}

// wan reports whether a port is on the WAN side.
func (g *gateway) wan(s *Sim, port int) bool {
	return s.network.Nodes[g.node].Gateway.Dataplane.Ports[port].Role == dataplane.WAN
}
