package scenario

import (
	"fmt"
	"slices"

	"github.com/cnpgate/cnpgate/internal/yamldoc"
	"github.com/cnpgate/cnpgate/sim"
	"github.com/cnpgate/cnpgate/sim/hpcc"
)

// topology is the network that a scenario's document describes.
type topology struct {
	Warnings []string // about what was left out

	doc     *yamldoc.Document
	d       *document
	network sim.Network // without gateways' dataplanes
	places  []place     // of gateways
	varying []varying   // links whose rate changes
	hosts   int
}

// place is the place of a gateway in the topology.
type place struct {
	node             int
	name             string // of the gateway's section
	at               any    // address of the key
	fabric, wan      int    // links
	fabricRate, rate uint64 // of these, bit/s
}

// given counts the sections, by their addresses, that the document has.
func (s *topology) given(sections ...any) (n int) {
	for _, section := range sections {
		if s.doc.Given(section) {
			n++
		}
	}
	return n
}

// buildTopology makes the network that the scenario describes. Hosts come first among the nodes.
func (s *topology) buildTopology(files Files) {
	t := &s.d.Topology
	if given := s.given(&t.Dumbbell, &t.TwoDCs, &t.File); given != 1 {
		s.doc.Problem(t, "%d topologies; expected one of dumbbell, two_dcs and file", given)
		return
	}
	s.setSwitches()
	switch {
	case s.doc.Given(&t.Dumbbell):
		s.dumbbell(&t.Dumbbell)
	case s.doc.Given(&t.TwoDCs):
		s.twoDCs(&t.TwoDCs)
	default:
		s.fromFile(files)
	}
	if len(t.Gateways) > 0 && !s.doc.Given(&t.File) {
		s.doc.Problem(&t.Gateways, "gateways are listed without a topology file; expected none, as spans name their gateways")
	}
	s.overrideSwitches()
	if err := s.network.CheckSize(); err != nil {
		s.doc.Problem(t, "%v", err)
	}
	for i := range s.network.Links {
		l := &s.network.Links[i]
		gateway := s.network.Nodes[l.A].Kind == sim.GatewayNode || s.network.Nodes[l.B].Kind == sim.GatewayNode // see givePFC
		l.PFC = s.short(l) && !gateway
	}
}

// short reports whether a link is short enough for PFC.
func (s *topology) short(l *sim.Link) bool {
	return s.d.Switches.PFC && l.Delay <= int64(s.d.Switches.PFCReach)
}

func (s *topology) node(kind sim.Kind, format string, args ...any) int {
	s.network.Nodes = append(s.network.Nodes, sim.Node{Name: fmt.Sprintf(format, args...), Kind: kind})
	if kind == sim.HostNode {
		s.hosts++
	}
	return len(s.network.Nodes) - 1
}

// connect adds a link, and returns its number.
func (s *topology) connect(l sim.Link) int {
	s.network.Links = append(s.network.Links, l)
	return len(s.network.Links) - 1
}

// dumbbell builds senders, a switch, the spans, a switch, and receivers.
func (s *topology) dumbbell(d *dumbbellSection) {
	if len(d.Spans) == 0 {
		s.doc.Problem(&d.Spans, "no spans; expected at least one, with rate and delay")
		return
	}
	senders, receivers := int(d.Senders), int(d.Receivers)
	for h := range senders {
		s.node(sim.HostNode, "sender-%d", h)
	}
	for h := range receivers {
		s.node(sim.HostNode, "receiver-%d", h)
	}
	first := s.node(sim.SwitchNode, "switch-0")
	for h := range senders {
		s.connect(sim.Link{A: h, B: first, Rate: d.Rate, Delay: int64(d.Delay)})
	}
	at := end{node: first}
	for i := range d.Spans {
		at = s.span(d, i, at)
	}
	if d.FarReceivers > d.Receivers {
		s.doc.Problem(&d.FarReceivers, "%d far receivers; expected at most the %d receivers", d.FarReceivers, receivers)
	}
	for h := range receivers {
		delay := int64(d.Delay)
		if h >= receivers-int(d.FarReceivers) {
			delay = int64(d.FarDelay)
		}
		s.connect(sim.Link{A: senders + h, B: at.node, Rate: d.Rate, Delay: delay})
	}
}

// end is where the next link begins: a switch, or a gateway's WAN port.
type end struct {
	node    int
	gateway bool
}

// span adds a span after a node, and returns the node at its end: the gateway of the next span, or a switch.
func (s *topology) span(d *dumbbellSection, i int, from end) end {
	span := &d.Spans[i]
	if span.Paths > 1 {
		return s.parallel(d, i, from)
	}
	if s.doc.Given(&span.Gateway) && !from.gateway {
		rate := max(span.Rate, d.Rate*uint64(d.Senders))
		from = s.addGateway(&span.Gateway, from.node, rate, int64(d.Delay))
	}
	long := sim.Link{A: from.node, PortA: portWAN, Rate: span.Rate, Delay: int64(span.Delay), Loss: float64(span.Loss) / 1e6}
	to := end{}
	if next := i + 1; next < len(d.Spans) && s.doc.Given(&d.Spans[next].Gateway) {
		gateway := &d.Spans[next].Gateway
		to = end{s.node(sim.GatewayNode, "%s", *gateway), true}
		s.places = append(s.places, place{
			node: to.node, name: *gateway, at: gateway, fabric: len(s.network.Links), fabricRate: span.Rate,
		})
	} else {
		to = end{s.node(sim.SwitchNode, "switch-%d", i+1), false}
	}
	long.B, long.PortB = to.node, portFabric
	link := s.connect(long)
	s.onWAN(from, link)
	s.varies(span, link)
	return to
}

// parallel adds a span of several equal paths after a switch, each with a gateway of its own, and returns the switch at its end. Switches choose
// a path by the hash of a flow (ECMP), in each direction another one.
func (s *topology) parallel(d *dumbbellSection, i int, from end) end {
	span := &d.Spans[i]
	if !s.doc.Given(&span.Gateway) || from.gateway || i+1 < len(d.Spans) && s.doc.Given(&d.Spans[i+1].Gateway) {
		s.doc.Problem(&span.Paths, "several paths begin at a switch, each with a gateway, and end at a switch; expected a gateway in this span, and none in the next")
		return end{node: s.node(sim.SwitchNode, "switch-%d", i+1)}
	}
	to := s.node(sim.SwitchNode, "switch-%d", i+1)
	for range span.Paths {
		gateway := s.addGateway(&span.Gateway, from.node, max(span.Rate, d.Rate*uint64(d.Senders)), int64(d.Delay))
		link := s.connect(sim.Link{
			A: gateway.node, PortA: portWAN, B: to, Rate: span.Rate, Delay: int64(span.Delay), Loss: float64(span.Loss) / 1e6,
		})
		s.onWAN(gateway, link)
		s.varies(span, link)
	}
	return end{node: to}
}

// onWAN records a link as that of a gateway's WAN port.
func (s *topology) onWAN(from end, link int) {
	for i := range s.places {
		if p := &s.places[i]; from.gateway && p.node == from.node {
			p.wan, p.rate = link, s.network.Links[link].Rate
		}
	}
}

// The ports of a gateway's dataplane, in the order of its configuration.
const (
	portFabric = iota
	portWAN
)

// fastest is the highest rate that a gateway's port may have, bit/s.
const fastest = 10_000_000_000_000

// addGateway adds a gateway next to a switch.
func (s *topology) addGateway(name *string, node int, rate uint64, delay int64) end {
	rate = min(rate, fastest)
	g := s.node(sim.GatewayNode, "%s", *name)
	link := s.connect(sim.Link{A: node, B: g, PortB: portFabric, Rate: rate, Delay: delay})
	s.places = append(s.places, place{node: g, name: *name, at: name, fabric: link, fabricRate: rate})
	return end{g, true}
}

// twoDCs builds two leaf-spine fabrics. The hosts of the west come first.
func (s *topology) twoDCs(t *twoDCsSection) {
	tors, perToR, spines := int(t.ToRs), int(t.Hosts), int(t.Spines)
	for _, side := range []string{"west", "east"} {
		for h := range tors * perToR {
			s.node(sim.HostNode, "%s-%d", side, h)
		}
	}
	delay := int64(t.Delay)
	var ends [2]end
	for side, name := range []string{"west", "east"} {
		border := s.node(sim.SwitchNode, "%s-border", name)
		firstSpine := len(s.network.Nodes)
		for i := range spines {
			spine := s.node(sim.SwitchNode, "%s-spine-%d", name, i)
			s.connect(sim.Link{A: spine, B: border, Rate: t.BorderRate, Delay: delay})
		}
		for i := range tors {
			tor := s.node(sim.SwitchNode, "%s-tor-%d", name, i)
			for h := range perToR {
				s.connect(sim.Link{A: (side*tors+i)*perToR + h, B: tor, Rate: t.Rate, Delay: delay})
			}
			for spine := range spines {
				s.connect(sim.Link{A: tor, B: firstSpine + spine, Rate: t.Rate, Delay: delay})
			}
		}
		ends[side] = end{node: border}
	}
	w := &t.WAN
	for side, name := range []*string{&w.West, &w.East} {
		if s.doc.Given(name) {
			ends[side] = s.addGateway(name, ends[side].node, max(w.Rate, t.BorderRate*uint64(t.Spines)), delay)
		}
	}
	link := s.connect(sim.Link{
		A: ends[0].node, B: ends[1].node, PortA: portWAN, PortB: portWAN, Rate: w.Rate, Delay: int64(w.Delay), Loss: float64(w.Loss) / 1e6,
	})
	s.onWAN(ends[0], link)
	s.onWAN(ends[1], link)
}

// fromFile reads a topology of the HPCC simulator. Hosts keep their order and come first among the nodes.
func (s *topology) fromFile(files Files) {
	path := &s.d.Topology.File
	data, err := files(*path)
	if err != nil {
		s.doc.Problem(path, "%v", err)
		return
	}
	topology, err := hpcc.ReadTopology(*path, data)
	if err != nil {
		s.doc.Problem(path, "%v", err)
		return
	}
	s.Warnings = append(s.Warnings, topology.Warnings...)
	for i, isSwitch := range topology.Switch {
		kind := sim.HostNode
		if isSwitch {
			kind = sim.SwitchNode
		}
		s.node(kind, "%d", i)
	}
	s.network.Links = topology.Links
	original := slices.Clone(topology.Links)
	for i := range s.d.Topology.Gateways {
		s.insert(&s.d.Topology.Gateways[i], original)
	}
}

// insert puts a gateway on the first link between two nodes of the file, next to the node on the fabric side. A link can have a gateway at
// each end.
func (s *topology) insert(b *betweenSection, original []sim.Link) {
	fabric, wan := int(b.Fabric), int(b.WAN)
	for i, o := range original {
		l := &s.network.Links[i]
		atA, atB := o.A == fabric && o.B == wan && l.A == o.A, o.B == fabric && o.A == wan && l.B == o.B
		if !atA && !atB {
			continue
		}
		const short = 100 // ns: some 20 m of fibre
		at := s.addGateway(&b.Gateway, fabric, l.Rate, short)
		if l = &s.network.Links[i]; atA { // adding may have moved the links
			l.A, l.PortA = at.node, portWAN
		} else {
			l.B, l.PortB = at.node, portWAN
		}
		s.onWAN(at, i)
		return
	}
	s.doc.Problem(b, "found no link between nodes %d and %d without a gateway next to %d; expected two nodes that the topology file connects", fabric, wan, fabric)
}

// longestRTT is the longest round trip without queues between two hosts of a network, by paths with the fewest links, ns.
func longestRTT(n *sim.Network) int64 {
	beside := make([][]sim.Link, len(n.Nodes)) // by node, with the node as A
	for _, l := range n.Links {
		beside[l.A] = append(beside[l.A], l)
		l.A, l.B = l.B, l.A
		beside[l.A] = append(beside[l.A], l)
	}
	longest := int64(0)
	for from := range n.Nodes {
		if n.Nodes[from].Kind != sim.HostNode {
			continue
		}
		delay := make([]int64, len(n.Nodes))
		seen := make([]bool, len(n.Nodes))
		seen[from] = true
		for order := []int{from}; len(order) > 0; order = order[1:] {
			for _, l := range beside[order[0]] {
				if !seen[l.B] {
					seen[l.B], delay[l.B] = true, delay[l.A]+l.Delay
					order = append(order, l.B)
				}
			}
			if n.Nodes[order[0]].Kind == sim.HostNode {
				longest = max(longest, 2*delay[order[0]])
			}
		}
	}
	return longest
}
