package sim

import (
	"errors"
	"fmt"
	"math"

	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/splitmix"
	"github.com/cnpgate/cnpgate/internal/virtual"
)

// epoch is the time at which a simulation begins, ns. It is not 0, as 0 means never in a gateway's flow.
const epoch = 1_000_000_000

// Purposes of random numbers. Ports have one purpose each, from purposePorts on.
const (
	purposeLoss = 1 << 32
	purposeECN  = 2 << 32
	purposePSN  = 3 << 32
)

// Config describes a simulation.
type Config struct {
	Network Network
	Host    endpoint.Config // of all hosts; Addr, MAC, LineRate, Overhead and Completed are filled in
	// EachHost, if not nil, changes the configuration of one host.
	EachHost func(host int, c *endpoint.Config)
	Flows    []Flow
	Length   int64 // of the simulation, ns; it ends earlier if all flows have ended
	Sample   int64 // ns between two samples of queues and rates
	// Passed, if not nil, is called for each notification on each link of its way. It must not retain the passage.
	Passed func(*Passage)
}

// Sim is a simulation: hosts and gateways on a network, traffic between the hosts, and measurements.
type Sim struct {
	traffic
	end      int64
	scratch  []byte // where hosts write frames
	measure  measure
	noBuffer uint64 // frames for which a gateway's backend had no buffer
	changed  int    // changes of links that were made
	team     *team  // nil: each gateway is alone
}

// lines are the network's links and switches in operation: the frames on them, and when something happens next.
type lines struct {
	graph
	now    int64
	agenda *virtual.Agenda
	store  store
	parsed packet.Parsed
	notices
	hops       uint64 // frames that were put on a link
	unroutable uint64 // frames to an address that no host has
}

// Sources of events, in the agenda's order: a port's line is free; a frame arrives over its link; its PFC frame is to be repeated; a host has
// something to do; a gateway polls; the measurements are due; a link's rate changes.
func (l *lines) arrivalOf(port int32) int { return len(l.ports) + int(port) }
func (l *lines) repeatOf(port int32) int  { return 2*len(l.ports) + int(port) }
func (l *lines) pumpOf(host int32) int    { return 3*len(l.ports) + int(host) }
func (l *lines) pollOf(gateway int32) int { return 3*len(l.ports) + len(l.hosts) + int(gateway) }
func (l *lines) sampler() int             { return 3*len(l.ports) + len(l.hosts) + len(l.gateways) }
func (l *lines) changer() int             { return l.sampler() + 1 }

// New makes a simulation. It doesn't change c, but the dataplanes retain what c refers to.
func New(c *Config) (*Sim, error) {
	if c.Length < 1 || c.Sample < 1 {
		return nil, fmt.Errorf("a simulation of %d ns, measured every %d ns: expected at least 1 each", c.Length, c.Sample)
	}
	if err := c.Network.validate(); err != nil {
		return nil, err
	}
	most := c.Network.MaxPackets
	if most == 0 {
		most = defaultMaxPackets
	}
	s := &Sim{end: epoch + c.Length, scratch: make([]byte, endpoint.MaxFrame)}
	s.network, s.now, s.store = &c.Network, epoch, store{free: none, most: most}
	s.notices = newNotices(c.Passed)
	s.link()
	if err := s.build(c); err != nil {
		return nil, err
	}
	var err error
	if err = s.formFleet(); err != nil {
		return nil, err
	}
	if s.routes, err = s.newRoutes(); err != nil {
		return nil, err
	}
	s.agenda = virtual.NewAgenda(s.changer() + 1)
	s.payload = c.Host.MTU
	if err := s.startFlows(c.Flows); err != nil {
		return nil, err
	}
	s.startMeasuring(c.Sample)
	s.scheduleChange()
	return s, nil
}

// link makes the ports.
func (g *graph) link() {
	nodes := len(g.network.Nodes)
	g.portsOf, g.kinds, g.of = make([][]int32, nodes), make([]Kind, nodes), make([]int32, nodes)
	for i := range g.network.Links {
		l := &g.network.Links[i]
		a, b := int32(2*i), int32(2*i+1)
		g.addPort(l, l.A, l.PortA, b)
		g.addPort(l, l.B, l.PortB, a)
		g.portsOf[l.A] = append(g.portsOf[l.A], a)
		g.portsOf[l.B] = append(g.portsOf[l.B], b)
	}
}

func (g *graph) addPort(l *Link, node, number int, peer int32) {
	n := uint64(len(g.ports))
	p := port{
		node: int32(node), peer: peer, delay: l.Delay, rate: l.Rate, perByte: nsPerByte(l.Rate), overhead: int64(g.network.Overhead),
		random: splitmix.New(g.network.Seed, purposeLoss+n),
	}
	if l.Loss > 0 {
		p.lose = uint64(math.Ldexp(min(l.Loss, 1-1e-15), 64))
	}
	for class := range p.queues {
		p.queues[class].first = none
	}
	p.ingress.pfc = l.PFC && g.network.Nodes[node].Kind == SwitchNode
	g.ports = append(g.ports, p)
	g.portNumber = append(g.portNumber, number)
}

// build makes the hosts, switches and gateways.
func (s *Sim) build(c *Config) error {
	for node := range s.network.Nodes {
		kind := s.network.Nodes[node].Kind
		s.kinds[node] = kind
		var err error
		switch kind {
		case HostNode:
			err = s.addHost(node, c)
		case SwitchNode:
			err = s.initSwitch(node, s.portsOf[node])
		case GatewayNode:
			err = s.addGateway(node)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Sim) addHost(node int, config *Config) error {
	c := config.Host
	n := len(s.hosts)
	port := s.portsOf[node][0]
	c.Addr, c.MAC = HostAddr(n), HostMAC(n)
	c.LineRate, c.Overhead = int64(s.ports[port].rate), s.network.Overhead
	c.Completed = s.completed
	if config.EachHost != nil {
		config.EachHost(n, &c)
	}
	end, err := endpoint.New(c)
	if err != nil {
		return fmt.Errorf("host %s: %w", s.name(node), err)
	}
	s.of[node] = int32(n)
	s.hosts = append(s.hosts, host{node: node, port: port, end: end})
	return nil
}

func (s *Sim) addGateway(node int) error {
	g, err := s.newGateway(node)
	if err != nil {
		return err
	}
	for _, n := range s.portsOf[node] {
		number := s.portNumber[n]
		if number < 0 || number >= len(g.ports) || g.linked[number] {
			return fmt.Errorf("gateway %s: a link to port %d: expected one to each of its ports, 0 to %d", s.name(node), number, len(g.ports)-1)
		}
		g.ports[number], g.linked[number] = n, true
	}
	s.of[node] = int32(len(s.gateways))
	s.gateways = append(s.gateways, g)
	return nil
}

func (g *graph) name(node int) string { return g.network.Nodes[node].Name }

// Progress is how far a simulation has advanced.
type Progress struct {
	Now        int64 // ns since it began
	Unfinished int   // flows
}

// Run processes a number of events, and reports whether there are more.
func (s *Sim) Run(events int) (more bool, err error) {
	more, _, err = s.RunUntil(math.MaxInt64-epoch, events)
	return more, err
}

// RunUntil processes the events up to a time, ns since the simulation began, but no more than a number of them. It reports whether there are more, and whether
// the time is reached.
func (s *Sim) RunUntil(until int64, events int) (more, reached bool, err error) {
	for range events {
		source, at, _ := s.agenda.Next() // the sampler is always scheduled
		if at > s.end || s.unfinished == 0 {
			return false, true, s.wrong()
		}
		if at > epoch+until {
			return true, true, s.wrong()
		}
		s.now = at
		if s.team != nil {
			s.team.meet(at)
		}
		if err := s.handle(source, at); err != nil {
			return false, false, err
		}
	}
	if err := s.wrong(); err != nil {
		return false, false, err
	}
	return true, false, nil
}

// wrong returns an error that a callback couldn't return.
func (s *Sim) wrong() error {
	if s.store.full {
		return errFull
	}
	return s.failure
}

var errFull = errors.New("more frames are in the network at once than it may hold: raise the bound, or simulate shorter links, lower rates or larger packets")

// handle processes an event of a source.
func (s *Sim) handle(source int, now int64) error {
	ports := len(s.ports)
	switch {
	case source < ports:
		s.transmit(int32(source), now)
	case source < 2*ports:
		s.arrive(int32(source-ports), now)
	case source < 3*ports:
		s.sendPFC(int32(source-2*ports), true, now)
	case source < s.pollOf(0):
		return s.pump(int32(source-3*ports), now)
	case source < s.sampler():
		s.step(int32(source-s.pollOf(0)), now)
	case source == s.sampler():
		s.sample(now)
	default:
		return s.change()
	}
	return nil
}

// Progress returns how far the simulation has advanced.
func (s *Sim) Progress() Progress { return Progress{s.now - epoch, s.unfinished} }
