package scenario

import (
	"slices"
	"strconv"
	"strings"

	"github.com/cnpgate/cnpgate/sim"
)

const millionths = 1e6 // of a Decimal

// setSwitches configures all switches.
func (s *topology) setSwitches() {
	c := &s.d.Switches
	n := &s.network
	const headers = 320 // bytes, more than any packet has
	n.MaxFrame = int(s.d.Hosts.MTU) + headers
	const ethernet = 24 // preamble, start delimiter, FCS and gap (IEEE 802.3 3.1.1, 4.4.2)
	n.Overhead = ethernet
	n.Switch = sim.SwitchConfig{
		Buffer: int64(c.Buffer), Alpha: float64(c.Alpha) / millionths, AlphaByRate: c.AlphaByRate, EgressAlpha: float64(c.EgressAlpha) / millionths,
	}
	for i := range c.ECN {
		e := &c.ECN[i]
		if e.KMin > e.KMax {
			s.doc.Problem(&e.KMin, "K_min is above K_max; expected at most %d bytes", e.KMax)
		}
		if i > 0 && e.Rate <= c.ECN[i-1].Rate {
			s.doc.Problem(&e.Rate, "not above the rate of the entry before; expected the slowest first")
		}
		n.Switch.ECN = append(n.Switch.ECN, sim.ECN{Rate: e.Rate, KMin: int64(e.KMin), KMax: int64(e.KMax), PMax: float64(e.PMax) / millionths})
	}
}

// overrideSwitches gives single switches other values. Later entries override earlier ones.
func (s *topology) overrideSwitches() {
	for i := range s.d.Switches.Overrides {
		o := &s.d.Switches.Overrides[i]
		for _, part := range strings.Split(o.Switches, ",") {
			nodes := s.switchesNamed(strings.TrimSpace(part))
			if len(nodes) == 0 {
				s.doc.UnknownName(&o.Switches, part, "switch", s.switchNames())
			}
			for _, node := range nodes {
				s.override(&s.network.Nodes[node], o)
			}
		}
	}
}

func (s *topology) override(node *sim.Node, o *switchSection) {
	if node.Switch == nil {
		own := s.network.Switch
		node.Switch = &own
	}
	if s.doc.Given(&o.Buffer) {
		node.Switch.Buffer = int64(o.Buffer)
	}
	if s.doc.Given(&o.Alpha) {
		node.Switch.Alpha = float64(o.Alpha) / millionths
	}
	if s.doc.Given(&o.EgressAlpha) {
		node.Switch.EgressAlpha = float64(o.EgressAlpha) / millionths
	}
}

// switchesNamed finds the switches of a name, or of a range of numbers such as 32-39.
func (s *topology) switchesNamed(text string) (nodes []int) {
	from, to, isRange := strings.Cut(text, "-")
	first, err1 := strconv.Atoi(from)
	last, err2 := strconv.Atoi(to)
	isRange = isRange && err1 == nil && err2 == nil
	for i := range s.network.Nodes {
		node := &s.network.Nodes[i]
		if node.Kind != sim.SwitchNode {
			continue
		}
		number, err := strconv.Atoi(node.Name)
		if node.Name == text || isRange && err == nil && number >= first && number <= last {
			nodes = append(nodes, i)
		}
	}
	return nodes
}

func (s *topology) switchNames() (names []string) {
	for i := range s.network.Nodes {
		if s.network.Nodes[i].Kind == sim.SwitchNode {
			names = append(names, s.network.Nodes[i].Name)
		}
	}
	slices.Sort(names)
	return names
}
