package sim

import (
	"fmt"
	"slices"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// graph is the nodes and ports of a network, and the paths between them.
type graph struct {
	network *Network
	ports   []port
	portsOf [][]int32 // by node
	kinds   []Kind    // by node
	of      []int32   // by node: its index in hosts or gateways
	// portNumber is a port's number in its gateway's dataplane, by port.
	portNumber []int
	hosts      []host
	gateways   []*gateway
	routes     routes
	payload    int // bytes of a full packet
}

// routes holds the ports of each switch that lead to a host over the fewest links.
type routes struct {
	hosts int
	to    []hop   // by switch's node and host
	ports []int32 // the hops' ports
}

// hop is a range of routes.ports.
type hop struct {
	first int32
	n     int32
}

// next returns the port by which a frame leaves a node towards a host. The hash of its flow selects one of several ports (ECMP). Each node
// has its own salt, so that nodes select independently.
func (r *routes) next(node, host int32, hash uint32) (int32, bool) {
	if uint32(host) >= uint32(r.hosts) {
		return 0, false
	}
	h := r.to[int(node)*r.hosts+int(host)]
	switch h.n {
	case 0:
		return 0, false
	case 1:
		return r.ports[h.first], true
	}
	salted := mixHash(uint64(hash)<<32 | uint64(uint32(node)))
	return r.ports[h.first+int32(salted>>32*uint64(h.n)>>32)], true
}

// newRoutes finds the paths to each host by breadth-first search from it. It fails if a host can't reach another one.
func (g *graph) newRoutes() (routes, error) {
	r := routes{hosts: len(g.hosts), to: make([]hop, len(g.kinds)*len(g.hosts))}
	distance := make([]int, len(g.kinds))
	for h := range g.hosts {
		order := g.distances(g.hosts[h].node, distance)
		for _, node := range order {
			if g.kinds[node] != SwitchNode {
				continue
			}
			first := int32(len(r.ports))
			for _, n := range g.portsOf[node] {
				if to := g.across(n); distance[to] == distance[node]-1 {
					r.ports = append(r.ports, n)
				}
			}
			r.to[node*r.hosts+h] = hop{first, int32(len(r.ports)) - first}
		}
		for other := range g.hosts {
			if distance[g.hosts[other].node] < 0 {
				return r, fmt.Errorf("there is no path from %s to %s", g.name(g.hosts[other].node), g.name(g.hosts[h].node))
			}
		}
	}
	return r, nil
}

// across is the next host or switch behind a port. Gateways are skipped, and don't count as hops.
func (g *graph) across(n int32) int {
	for {
		far := g.ports[n].peer
		node := int(g.ports[far].node)
		if g.kinds[node] != GatewayNode {
			return node
		}
		n = g.gateways[g.of[node]].through(far)
	}
}

// distances sets how many hops each node is from a node, -1 if there is no path, and returns the reached nodes in that order. Hosts don't
// forward.
func (g *graph) distances(from int, distance []int) (order []int) {
	for i := range distance {
		distance[i] = -1
	}
	distance[from] = 0
	order = append(order, from)
	for i := 0; i < len(order); i++ {
		node := order[i]
		if node != from && g.kinds[node] == HostNode {
			continue
		}
		for _, n := range g.portsOf[node] {
			if to := g.across(n); distance[to] < 0 {
				distance[to] = distance[node] + 1
				order = append(order, to)
			}
		}
	}
	return order
}

// Headers of a packet of a flow, and an acknowledgement, in bytes without FCS.
const (
	headers  = packet.EthernetLen + packet.IPv6Len + packet.UDPLen + packet.BTHLen + packet.ICRCLen
	ackFrame = headers + packet.AETHLen
)

// ideal is how long a flow would take alone on its path, ns: from its start to the last acknowledgement.
func (g *graph) ideal(f *Flow) int64 {
	if f.Bursts < 2 {
		return g.alone(f)
	}
	burst := Flow{From: f.From, To: f.To, Bytes: f.Bytes / int64(f.Bursts)}
	return max(g.alone(f), int64(f.Bursts-1)*f.Every+g.alone(&burst))
}

// alone is how long the bytes of a flow would take alone, if they were sent at once.
func (g *graph) alone(f *Flow) int64 {
	wire := g.wire(f)
	first := wire
	if f.Bytes > int64(g.payload) {
		first = int64(g.payload + headers + g.network.Overhead)
	}
	slowest, total := 0.0, 0.0
	g.walk(f.From, f.To, func(perByte float64, delay int64) {
		slowest = max(slowest, perByte)
		total += perByte*float64(first) + float64(delay)
	})
	g.walk(f.To, f.From, func(perByte float64, delay int64) {
		total += perByte*float64(ackFrame+g.network.Overhead) + float64(delay)
	})
	return int64(total + slowest*float64(wire-first))
}

// wire is the number of bytes that a flow occupies on a line.
func (g *graph) wire(f *Flow) int64 {
	payload := int64(g.payload)
	packets := (f.Bytes + payload - 1) / payload
	writes := (f.Bytes + messageBytes - 1) / messageBytes
	padded := (f.Bytes + 3) &^ 3 // IBTA 9.2.3: a payload is a multiple of 4 bytes
	return padded + packets*int64(headers+g.network.Overhead) + writes*packet.RETHLen
}

// walk visits the links on the path from one host to another, with the time of a byte at the rate of the sending port, and the delay, ns.
func (g *graph) walk(from, to int, visit func(perByte float64, delay int64)) {
	n := g.hosts[from].port
	for {
		visit(8e9/float64(g.lineRate(n)), g.ports[n].delay)
		in := g.ports[n].peer
		switch node := g.ports[in].node; g.kinds[node] {
		case HostNode:
			return
		case SwitchNode:
			n, _ = g.routes.next(node, int32(to), 0) // newRoutes has checked that there is one
		case GatewayNode:
			n = g.gateways[g.of[node]].through(in)
		}
	}
}

// lineRate is the rate at which a port sends frames at first, bit/s: a gateway's port may be slower than its link.
func (g *graph) lineRate(n int32) uint64 {
	p, rate := &g.ports[n], g.network.Links[n/2].Rate
	if g.kinds[p.node] != GatewayNode {
		return rate
	}
	return min(rate, g.network.Nodes[p.node].Gateway.Dataplane.Ports[g.portNumber[n]].Rate)
}

// busy is what a link has to carry.
type busy struct {
	time    float64 // ns in which it sends all
	first   int64   // when the first flow may start, ns
	latency int64   // the least time that a flow takes beyond the time of its bytes, ns
}

// fill adds a flow to the links that it can't avoid.
func (g *graph) fill(links []busy, f *Flow, start int64) {
	wire, slowest := float64(g.wire(f)), 0.0
	g.walk(f.From, f.To, func(perByte float64, _ int64) { slowest = max(slowest, perByte) })
	latency := g.alone(f) - int64(wire*slowest)
	g.walkSole(f.From, f.To, func(port int32) {
		l := &links[port]
		if l.time == 0 {
			l.first, l.latency = start, latency
		}
		l.time += wire * 8e9 / float64(g.lineRate(port))
		l.first, l.latency = min(l.first, start), min(l.latency, latency)
	})
}

// walkSole visits the ports that each path from one host to another has.
func (g *graph) walkSole(from, to int, visit func(port int32)) {
	for ports := []int32{g.hosts[from].port}; len(ports) > 0; {
		if len(ports) == 1 {
			visit(ports[0])
		}
		var next []int32
		for _, n := range ports {
			in := g.ports[n].peer
			switch node := g.ports[in].node; g.kinds[node] {
			case SwitchNode:
				h := g.routes.to[int(node)*g.routes.hosts+to]
				next = append(next, g.routes.ports[h.first:h.first+h.n]...)
			case GatewayNode:
				next = append(next, g.gateways[g.of[node]].through(in))
			}
		}
		slices.Sort(next)
		ports = slices.Compact(next)
	}
}
