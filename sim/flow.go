package sim

import (
	"fmt"

	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/virtual"
	"github.com/cnpgate/cnpgate/pairing"
)

// Flow is data that one host sends another, over its own connection.
type Flow struct {
	From, To int // hosts, counted from 0 in the order of the nodes
	Bytes    int64
	Start    int64 // ns
	// After are 1 + the indexes of flows that must end before this one starts; they must be lower than its own index. 0: none. Start counts
	// from their end.
	After [2]int
	Group int // for results by group
}

// flow is a flow under way.
type flow struct {
	Flow
	qp       uint32 // at the sender
	peerQP   uint32
	waitsFor int      // flows
	waiting  int32    // head of the list of flows that wait for this one: 0 if none, else 1 + 2 * index + place in After
	behind   [2]int32 // by place in After: the next entry of that list
	started  int64    // ns
	finished int64    // 0 while it goes on
	done     int64    // acknowledged bytes, in whole messages
	failed   bool
}

// messageBytes is the size of a flow's RDMA WRITEs; the last one is shorter.
const messageBytes = 1 << 20

// startFlows connects the flows' hosts and starts the flows.
func (s *Sim) startFlows(flows []Flow) error {
	s.flows, s.unfinished = make([]flow, len(flows)), len(flows)
	psn := virtual.NewRand(s.network.Seed, purposePSN)
	for i, f := range flows {
		if err := s.checkFlow(i, &f); err != nil {
			return err
		}
		to := &s.flows[i]
		to.Flow = f
		var err error
		start := [2]uint32{uint32(psn.Below(1 << 24)), uint32(psn.Below(1 << 24))}
		if to.qp, to.peerQP, err = endpoint.Connect(s.hosts[f.From].end, s.hosts[f.To].end, start); err != nil {
			return fmt.Errorf("flow %d: %w", i, err)
		}
		for place, after := range f.After {
			if after == 0 {
				continue
			}
			before := &s.flows[after-1]
			to.behind[place], before.waiting = before.waiting, int32(1+2*i+place)
			to.waitsFor++
		}
		if to.waitsFor > 0 {
			continue
		}
		if err := s.begin(i, epoch); err != nil {
			return err
		}
	}
	return s.tellPairs()
}

func (s *Sim) checkFlow(i int, f *Flow) error {
	switch hosts := len(s.hosts); {
	case f.From < 0 || f.To < 0 || f.From >= hosts || f.To >= hosts || f.From == f.To:
		return fmt.Errorf("flow %d goes from host %d to host %d: expected two of the %d hosts, counted from 0", i, f.From, f.To, hosts)
	case f.Bytes < 1 || f.Start < 0:
		return fmt.Errorf("flow %d has %d bytes and starts at %d ns: expected at least a byte, and no negative time", i, f.Bytes, f.Start)
	case min(f.After[0], f.After[1]) < 0 || max(f.After[0], f.After[1]) > i:
		return fmt.Errorf("flow %d waits for flows %d and %d: expected flows before it", i, f.After[0]-1, f.After[1]-1)
	}
	return nil
}

// begin starts a flow at its start time after now.
func (s *Sim) begin(i int, now int64) error {
	f := &s.flows[i]
	f.started = now + f.Start
	host := s.hosts[f.From].end
	stream := endpoint.Stream{QP: f.qp, Op: endpoint.Write, At: f.started, ID: uint64(i)}
	if whole := f.Bytes / messageBytes; whole > 0 {
		stream.Bytes, stream.Messages = messageBytes, int(whole)
		if err := host.Start(stream); err != nil {
			return err
		}
	}
	if rest := f.Bytes % messageBytes; rest > 0 {
		stream.Bytes, stream.Messages = uint32(rest), 1
		return host.Start(stream)
	}
	return nil
}

// completed processes the end of a message. Hosts call it.
func (s *Sim) completed(c endpoint.Completion) {
	f := &s.flows[c.ID]
	if f.finished != 0 {
		return
	}
	if !c.Failed {
		f.done += int64(c.Bytes)
	}
	if f.done < f.Bytes && !c.Failed {
		return
	}
	f.failed, f.finished = c.Failed, s.now
	s.unfinished--
	for w := f.waiting; w != 0; {
		i, place := int(w-1)/2, (w-1)%2
		w = s.flows[i].behind[place]
		s.goOn(i)
	}
}

// goOn notes that one of the flows for which flow i waits has ended.
func (s *Sim) goOn(i int) {
	f := &s.flows[i]
	if f.waitsFor--; f.waitsFor > 0 {
		return
	}
	if err := s.begin(i, s.now); err != nil {
		s.failure = err
	}
	s.schedule(int32(f.From), s.now)
}

// tellPairs gives the operator's map of QP pairs to the gateways that have one.
func (s *Sim) tellPairs() error {
	pairs := make([]pairing.QPPair, len(s.flows))
	for i := range s.flows {
		f := &s.flows[i]
		pairs[i] = pairing.QPPair{Source: HostAddr(f.From), Destination: HostAddr(f.To), SourceQP: f.qp, DestinationQP: f.peerQP}
	}
	for _, g := range s.gateways {
		if !s.network.Nodes[g.node].Gateway.KnowsQPs {
			continue
		}
		m, err := pairing.NewQPMap(pairs, s.network.Seed)
		if err != nil {
			return err
		}
		p := *s.network.Nodes[g.node].Gateway.Dataplane.Policy
		p.QPMap = m
		if err := g.plane.SetPolicy(&p); err != nil {
			return err
		}
	}
	return nil
}

// Headers of a packet of a flow, and an acknowledgement, in bytes without FCS.
const (
	headers  = packet.EthernetLen + packet.IPv6Len + packet.UDPLen + packet.BTHLen + packet.ICRCLen
	ackFrame = headers + packet.AETHLen
)

// ideal is how long a flow would take alone on its path, ns: from its start to the last acknowledgement.
func (s *Sim) ideal(f *Flow) int64 {
	wire := s.wire(f)
	first := wire
	if f.Bytes > int64(s.payload) {
		first = int64(s.payload + headers + s.network.Overhead)
	}
	slowest, total := 0.0, 0.0
	s.walk(f.From, f.To, func(perByte float64, delay int64) {
		slowest = max(slowest, perByte)
		total += perByte*float64(first) + float64(delay)
	})
	s.walk(f.To, f.From, func(perByte float64, delay int64) {
		total += perByte*float64(ackFrame+s.network.Overhead) + float64(delay)
	})
	return int64(total + slowest*float64(wire-first))
}

// wire is the number of bytes that a flow occupies on a line.
func (s *Sim) wire(f *Flow) int64 {
	payload := int64(s.payload)
	packets := (f.Bytes + payload - 1) / payload
	writes := (f.Bytes + messageBytes - 1) / messageBytes
	padded := (f.Bytes + 3) &^ 3 // IBTA 9.2.3: a payload is a multiple of 4 bytes
	return padded + packets*int64(headers+s.network.Overhead) + writes*packet.RETHLen
}

// walk visits the links on the path from one host to another, with the time of a byte at the rate of the sending port, and the delay, ns.
func (s *Sim) walk(from, to int, visit func(perByte float64, delay int64)) {
	n := s.hosts[from].port
	for {
		visit(8e9/float64(s.lineRate(n)), s.ports[n].delay)
		in := s.ports[n].peer
		switch node := s.ports[in].node; s.kinds[node] {
		case HostNode:
			return
		case SwitchNode:
			n, _ = s.routes.next(node, int32(to), 0) // newRoutes has checked that there is one
		case GatewayNode:
			n = s.gateways[s.of[node]].through(in)
		}
	}
}

// lineRate is the rate at which a port sends frames, bit/s: a gateway's port may be slower than its link.
func (s *Sim) lineRate(n int32) uint64 {
	p := &s.ports[n]
	if s.kinds[p.node] != GatewayNode {
		return p.rate
	}
	return min(p.rate, s.network.Nodes[p.node].Gateway.Dataplane.Ports[s.portNumber[n]].Rate)
}
