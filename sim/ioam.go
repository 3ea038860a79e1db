package sim

import (
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// trace adds a hop to a packet's trace, if it has one with a free entry.
func (s *Sim) trace(f int32, hop *endpoint.Hop) {
	b := s.store.bytes(f)
	packet.Parse(b, s.store.at(f).length, &s.parsed)
	if s.parsed.HopOpts != 0 {
		endpoint.PutHop(b, &s.parsed, hop)
	}
}

// traceGateway adds a hop for the queue in which a packet will wait at a gateway.
func (s *Sim) traceGateway(g *gateway, in, f int32, now int64) {
	out := g.through(in)
	number := s.portNumber[out]
	stats := g.plane.Port(number)
	queue := uint64(0)
	for _, depth := range stats.Depth {
		queue += depth
	}
	s.trace(f, &endpoint.Hop{
		Node: uint32(g.node), Time: now, Queue: uint32(queue), Sent: stats.Count[dataplane.TxBytes], Rate: int64(s.lineRate(out)),
	})
}
