package engine

import (
	"cmp"
	"slices"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/sim"
)

// Setup is what doesn't change while a run goes on.
type Setup struct {
	Name      string         `json:"name"`
	Seed      uint64         `json:"seed"`
	Length    int64          `json:"length"`    // ns
	Sample    int64          `json:"sample"`    // ns
	Nodes     []Node         `json:"nodes"`     // of the network
	Sites     int            `json:"sites"`     // data centres, from the first sender's on
	Spans     []Span         `json:"spans"`     // long links, in the order of the sites
	Senders   []int          `json:"senders"`   // hosts
	Receivers []int          `json:"receivers"` // hosts
	Lines     []uint64       `json:"lines"`     // rates of the hosts' links, bit/s
	Flows     int            `json:"flows"`
	Gateways  [Panes][]Queue `json:"gateways"` // WAN ports, by response
	Responses [Panes]string  `json:"responses"`
	Warnings  []string       `json:"warnings"`
}

// Node is a node of the network.
type Node struct {
	Name string `json:"name"`
	Kind string `json:"kind"` // host, switch or gateway
	Site int    `json:"site"`
	Host int    `json:"host"` // number; -1: no host
}

// Span is a long link.
type Span struct {
	A     int    `json:"a"` // node
	B     int    `json:"b"` // node
	Rate  uint64 `json:"rate"`
	Delay int64  `json:"delay"` // ns, one way
	link  int
}

// Queue is the queue of a gateway's WAN port.
type Queue struct {
	Node      int    `json:"node"`
	Gateway   string `json:"gateway"`
	Rate      uint64 `json:"rate"`
	Reference int64  `json:"reference"` // of the control law; 0: it isn't used
	KMin      int64  `json:"k_min"`
	KMax      int64  `json:"k_max"`
	Capacity  int64  `json:"capacity"`
	port      int    // of the network's lines
}

// Setup describes the run.
func (e *Engine) Setup() *Setup {
	c := e.panes[0].run.Config
	n := &c.Network
	u := &Setup{Name: e.scenario.Name, Seed: e.scenario.Seed(), Length: c.Length, Sample: c.Sample, Flows: len(c.Flows), Warnings: e.scenario.Warnings}
	host := 0
	for i := range n.Nodes {
		node := Node{Name: n.Nodes[i].Name, Kind: [...]string{"host", "switch", "gateway"}[n.Nodes[i].Kind], Host: -1}
		if n.Nodes[i].Kind == sim.HostNode {
			node.Host = host
			host++
		}
		u.Nodes = append(u.Nodes, node)
	}
	u.place(n)
	u.Lines = make([]uint64, host)
	for _, l := range n.Links {
		for _, end := range []int{l.A, l.B} {
			if h := u.Nodes[end].Host; h >= 0 {
				u.Lines[h] = l.Rate
			}
		}
	}
	for _, f := range c.Flows {
		u.Senders, u.Receivers = append(u.Senders, f.From), append(u.Receivers, f.To)
	}
	u.Senders, u.Receivers = unique(u.Senders), unique(u.Receivers)
	for i, p := range e.panes {
		u.Responses[i], u.Gateways[i] = p.run.Response.String(), queues(p.run.Config)
	}
	return u
}

func unique(all []int) []int {
	slices.Sort(all)
	return slices.Compact(all)
}

// place finds the sites: nodes that short links connect. It numbers them by their distance from the first host's, and orders the long links alike.
func (u *Setup) place(n *sim.Network) {
	site := n.Sites()
	number := map[int]int{site[0]: 0}
	for found := true; found; {
		found = false
		for i, l := range n.Links {
			a, b := site[l.A], site[l.B]
			_, knowsA := number[a]
			_, knowsB := number[b]
			if l.Delay < sim.LongLink || knowsA == knowsB {
				continue
			}
			s := Span{A: l.A, B: l.B, Rate: l.Rate, Delay: l.Delay, link: i}
			if knowsB {
				s.A, s.B, a = l.B, l.A, b
				b = site[l.A]
			}
			number[b], found = number[a]+1, true
			u.Spans = append(u.Spans, s)
		}
	}
	for i := range u.Nodes {
		u.Nodes[i].Site = number[site[i]]
		u.Sites = max(u.Sites, u.Nodes[i].Site+1)
	}
	slices.SortStableFunc(u.Spans, func(a, b Span) int { return cmp.Compare(u.Nodes[a.A].Site, u.Nodes[b.A].Site) })
}

// queues are the queues of the gateways' WAN ports, in the order of sim.Series.Ports.
func queues(c *sim.Config) []Queue {
	all := []Queue{}
	for node := range c.Network.Nodes {
		g := c.Network.Nodes[node].Gateway
		if g == nil {
			continue
		}
		for i := range g.Dataplane.Ports {
			port, policy := &g.Dataplane.Ports[i], &g.Dataplane.Policy.Ports[i]
			if port.Role != dataplane.WAN {
				continue
			}
			q := Queue{Node: node, Gateway: c.Network.Nodes[node].Name, Rate: port.Rate, Reference: int64(policy.Law.Reference), KMin: int64(policy.KMin), KMax: int64(policy.KMax),
				Capacity: int64(port.Capacity), port: lineOf(&c.Network, node, i)}
			if !slices.Contains(g.Dataplane.Policy.Who.Enabled[:], true) {
				q.Reference = 0 // marks alone: K_min and K_max are what counts
			}
			all = append(all, q)
		}
	}
	return all
}

// lineOf is the number in sim.Line's order of the direction in which a gateway's port sends.
func lineOf(n *sim.Network, node, port int) int {
	for i, l := range n.Links {
		switch {
		case l.A == node && l.PortA == port:
			return 2 * i
		case l.B == node && l.PortB == port:
			return 2*i + 1
		}
	}
	return 0
}
