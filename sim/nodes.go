package sim

import (
	"fmt"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/stepper"
	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/internal/burst/inmem"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/splitmix"
	"github.com/cnpgate/cnpgate/internal/virtual"
)

// host is a host of the network and its port.
type host struct {
	node int
	port int32
	end  *endpoint.Host
}

// toHost passes a frame to a host.
func (s *Sim) toHost(h, f int32, now int64) {
	end := s.hosts[h].end
	end.Receive(now, s.store.bytes(f), int(s.store.at(f).length))
	s.store.release(f)
	if s.measure.first == 0 && slowedDown(end) {
		s.measure.first = now
	}
	s.schedule(h, now)
}

// slowedDown reports whether a host has ever obeyed a notification that slows it down.
func slowedDown(end *endpoint.Host) bool {
	d := &end.ReactionPoint().Counters().Decisions
	return d[endpoint.SlowedDown]+d[endpoint.Measured]+d[endpoint.Paused]+d[endpoint.Reduced] > 0
}

// isCNP recognises a receiver's CNP (IBTA Annex A17).
func isCNP(b []byte) bool {
	const opcode = atL4 + packet.UDPLen
	return len(b) > opcode && b[atNext] == packet.ProtoUDP && b[opcode] == byte(packet.CNP)
}

// schedule schedules a host's next action.
func (l *lines) schedule(h int32, now int64) {
	at := virtual.Never
	if due, ok := l.hosts[h].end.Due(); ok {
		at = max(due, now)
	}
	l.agenda.Set(l.pumpOf(h), at)
}

// pump makes a host do what is due, and processes a frame that it sends.
func (s *Sim) pump(h int32, now int64) error {
	n, length := s.hosts[h].end.Next(now, s.scratch)
	if length > 0 {
		if n > longBytes {
			return fmt.Errorf("host %s sent a frame with %d bytes of headers, more than the %d that are kept", s.name(s.hosts[h].node), n, longBytes)
		}
		if f := s.store.put(s.scratch[:n], length); f != none {
			if isCNP(s.scratch[:n]) {
				s.measure.cnps++
			}
			s.start(s.hosts[h].port, f, now)
		}
		s.schedule(h, now)
		return nil
	}
	due, ok := s.hosts[h].end.Due()
	if !ok {
		due = virtual.Never
	}
	s.agenda.Set(s.pumpOf(h), max(due, now+1)) // a host with nothing to send has at most a timer: time must advance
	return nil
}

// gateway is a gateway's dataplane in the network. Its workers poll every loop nanoseconds: frames that arrive in between wait for the next
// poll. A poll processes all frames that have arrived: no worker is too slow.
type gateway struct {
	node     int
	ports    []int32 // by port of the dataplane
	linked   []bool  // by port of the dataplane: whether ports has an entry
	peers    []int   // by port of the dataplane
	plane    *dataplane.Dataplane
	backends []*inmem.Backend // by worker
	time     *stepper.Stepper
	loop     int64
}

// spareBytes is the size of a buffer in which a notification is built about a packet with headers only.
const spareBytes = 384

// newGateway makes the dataplane of a node.
func (s *Sim) newGateway(node int) (*gateway, error) {
	c := s.network.Nodes[node].Gateway
	if c.Loop < 1 {
		return nil, fmt.Errorf("gateway %s polls every %d ns, expected at least 1", s.name(node), c.Loop)
	}
	ports := len(c.Dataplane.Ports)
	g := &gateway{node: node, ports: make([]int32, ports), linked: make([]bool, ports), loop: c.Loop}
	for _, p := range c.Dataplane.Ports {
		g.peers = append(g.peers, p.Peer)
	}
	for range max(c.Workers, 1) {
		memory := make([]byte, c.Buffers*spareBytes)
		backend, err := inmem.New(inmem.Config{
			Ports: ports, Burst: c.Burst, BufferSize: spareBytes, Memory: memory,
			Sent: func(sent inmem.Sent) { s.fromGateway(g, &sent) },
		})
		if err != nil {
			return nil, fmt.Errorf("gateway %s: %w", s.name(node), err)
		}
		g.backends = append(g.backends, backend)
	}
	config := c.Dataplane
	for _, backend := range g.backends {
		config.Backends = append(config.Backends, backend)
	}
	config.Allocate = virtual.Heap
	s.network.Fleet.withPeers(&config)
	var err error
	if g.plane, err = dataplane.New(config); err != nil {
		return nil, fmt.Errorf("gateway %s: %w", s.name(node), err)
	}
	g.time = stepper.New(g.plane, g.backends, s.now)
	g.time.AdaptEvery = stepper.AdaptStep
	return g, nil
}

// through is the port by which frames leave a gateway that arrived by port in.
func (g *gateway) through(in int32) int32 {
	for i, n := range g.ports {
		if n == in {
			return g.ports[g.peers[i]]
		}
	}
	return in
}

// toGateway passes a frame to a gateway, which processes it at the next poll.
func (s *Sim) toGateway(n, in, f int32, now int64) {
	g := s.gateways[n]
	if s.network.IOAM {
		s.traceGateway(g, in, f, now)
	}
	s.enter(f)
	if !s.backendOf(g, f).Inject(s.portNumber[in], s.store.bytes(f), s.store.at(f).length) {
		s.noBuffer++
	}
	s.store.release(f)
	s.agenda.Set(s.pollOf(n), min(s.agenda.At(s.pollOf(n)), g.poll(now)))
}

// backendOf is the backend of the worker for a frame: as with symmetric receive-side scaling, a worker has both directions of some connections.
func (s *Sim) backendOf(g *gateway, f int32) *inmem.Backend {
	if len(g.backends) == 1 {
		return g.backends[0]
	}
	p := &s.parsed
	packet.Parse(s.store.bytes(f), s.store.at(f).length, p)
	hash := splitmix.Mix(splitmix.Mix(p.Src.Hi^p.Src.Lo) ^ splitmix.Mix(p.Dst.Hi^p.Dst.Lo) ^ uint64(p.SrcPort^p.DstPort))
	return g.backends[hash%uint64(len(g.backends))]
}

// poll is the time of the first poll at or after a time.
func (g *gateway) poll(at int64) int64 { return (at + g.loop - 1) / g.loop * g.loop }

// step polls a gateway's ports until nothing is left to do at this time.
func (s *Sim) step(n int32, now int64) {
	g := s.gateways[n]
	g.time.SetTime(now)
	g.time.Step()
	if s.measure.crossed == 0 {
		s.measure.cross(g, now)
	}
	at := virtual.Never
	if due, any := g.time.NextDue(); any {
		at = g.poll(max(due, now+1))
	}
	s.agenda.Set(s.pollOf(n), at)
}

// fromGateway processes a frame that a gateway has sent.
func (s *Sim) fromGateway(g *gateway, sent *inmem.Sent) {
	f := s.store.put(sent.Octets, int(sent.Length))
	if f == none {
		return
	}
	if sent.Built {
		s.measure.notification(s.store.at(f).to)
	}
	s.leaves(f, sent.Built)
	s.start(g.ports[sent.Port], f, s.now)
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
		Node: uint32(g.node), Time: now, Queue: uint32(queue), Sent: stats.Count[counters.TxBytes], Rate: int64(min(s.lineRate(out), s.ports[out].rate)),
	})
}
