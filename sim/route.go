package sim

import "fmt"

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
func (s *Sim) newRoutes() (routes, error) {
	r := routes{hosts: len(s.hosts), to: make([]hop, len(s.kinds)*len(s.hosts))}
	distance := make([]int, len(s.kinds))
	for h := range s.hosts {
		order := s.distances(s.hosts[h].node, distance)
		for _, node := range order {
			if s.kinds[node] != SwitchNode {
				continue
			}
			first := int32(len(r.ports))
			for _, n := range s.portsOf[node] {
				if to := s.across(n); distance[to] == distance[node]-1 {
					r.ports = append(r.ports, n)
				}
			}
			r.to[node*r.hosts+h] = hop{first, int32(len(r.ports)) - first}
		}
		for other := range s.hosts {
			if distance[s.hosts[other].node] < 0 {
				return r, fmt.Errorf("there is no path from %s to %s", s.name(s.hosts[other].node), s.name(s.hosts[h].node))
			}
		}
	}
	return r, nil
}

// across is the next host or switch behind a port. Gateways are skipped, and don't count as hops.
func (s *Sim) across(n int32) int {
	for {
		far := s.ports[n].peer
		node := int(s.ports[far].node)
		if s.kinds[node] != GatewayNode {
			return node
		}
		n = s.gateways[s.of[node]].through(far)
	}
}

// distances sets how many hops each node is from a node, -1 if there is no path, and returns the reached nodes in that order. Hosts don't
// forward.
func (s *Sim) distances(from int, distance []int) (order []int) {
	for i := range distance {
		distance[i] = -1
	}
	distance[from] = 0
	order = append(order, from)
	for i := 0; i < len(order); i++ {
		node := order[i]
		if node != from && s.kinds[node] == HostNode {
			continue
		}
		for _, n := range s.portsOf[node] {
			if to := s.across(n); distance[to] < 0 {
				distance[to] = distance[node] + 1
				order = append(order, to)
			}
		}
	}
	return order
}
