package sim

import (
	"fmt"
	"math"

	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/internal/splitmix"
	"github.com/cnpgate/cnpgate/pairing"
)

// Flow is data that one host sends another, over its own connection.
type Flow struct {
	From, To int // hosts, counted from 0 in the order of the nodes
	Bytes    int64
	Start    int64 // ns
	// Bursts, if more than 1, is the number of equal messages that the bytes are posted in, one each Every ns, whether the one before it has ended
	// or not.
	Bursts int
	Every  int64
	// After are 1 + the indexes of flows that must end before this one starts; they must be lower than its own index. 0: none. Start counts
	// from their end.
	After [2]int
	Group int // for results by group
}

// traffic is the flows between the hosts of a network.
type traffic struct {
	lines
	flows      []flow
	unfinished int
	failure    error // of callbacks that can't return one
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
func (t *traffic) startFlows(flows []Flow) error {
	t.flows, t.unfinished = make([]flow, len(flows)), len(flows)
	psn := splitmix.New(t.network.Seed, purposePSN)
	for i, f := range flows {
		if err := t.checkFlow(i, &f); err != nil {
			return err
		}
		to := &t.flows[i]
		to.Flow = f
		var err error
		start := [2]uint32{uint32(psn.Below(1 << 24)), uint32(psn.Below(1 << 24))}
		if to.qp, to.peerQP, err = endpoint.Connect(t.hosts[f.From].end, t.hosts[f.To].end, start); err != nil {
			return fmt.Errorf("flow %d: %w", i, err)
		}
		for place, after := range f.After {
			if after == 0 {
				continue
			}
			before := &t.flows[after-1]
			to.behind[place], before.waiting = before.waiting, int32(1+2*i+place)
			to.waitsFor++
		}
		if to.waitsFor > 0 {
			continue
		}
		if err := t.begin(i, epoch); err != nil {
			return err
		}
	}
	return t.tellPairs()
}

func (t *traffic) checkFlow(i int, f *Flow) error {
	switch hosts := len(t.hosts); {
	case f.From < 0 || f.To < 0 || f.From >= hosts || f.To >= hosts || f.From == f.To:
		return fmt.Errorf("flow %d goes from host %d to host %d: expected two of the %d hosts, counted from 0", i, f.From, f.To, hosts)
	case f.Bytes < 1 || f.Start < 0:
		return fmt.Errorf("flow %d has %d bytes and starts at %d ns: expected at least a byte, and no negative time", i, f.Bytes, f.Start)
	case f.Bursts > 1 && (f.Every < 1 || f.Bytes%int64(f.Bursts) != 0 || f.Bytes/int64(f.Bursts) > math.MaxInt32):
		return fmt.Errorf("flow %d has %d bytes in %d bursts each %d ns: expected bursts of equally many bytes, at most %d, and at least 1 ns", i, f.Bytes, f.Bursts, f.Every, math.MaxInt32)
	case min(f.After[0], f.After[1]) < 0 || max(f.After[0], f.After[1]) > i:
		return fmt.Errorf("flow %d waits for flows %d and %d: expected flows before it", i, f.After[0]-1, f.After[1]-1)
	}
	return nil
}

// begin starts a flow at its start time after now.
func (t *traffic) begin(i int, now int64) error {
	f := &t.flows[i]
	f.started = now + f.Start
	host := t.hosts[f.From].end
	stream := endpoint.Stream{QP: f.qp, Op: endpoint.Write, At: f.started, ID: uint64(i)}
	if f.Bursts > 1 {
		stream.Bytes, stream.Messages, stream.Interval = uint32(f.Bytes/int64(f.Bursts)), f.Bursts, f.Every
		return host.Start(stream)
	}
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
func (t *traffic) completed(c endpoint.Completion) {
	f := &t.flows[c.ID]
	if f.finished != 0 {
		return
	}
	if !c.Failed {
		f.done += int64(c.Bytes)
	}
	if f.done < f.Bytes && !c.Failed {
		return
	}
	f.failed, f.finished = c.Failed, t.now
	t.unfinished--
	for w := f.waiting; w != 0; {
		i, place := int(w-1)/2, (w-1)%2
		w = t.flows[i].behind[place]
		t.goOn(i)
	}
}

// goOn notes that one of the flows for which flow i waits has ended.
func (t *traffic) goOn(i int) {
	f := &t.flows[i]
	if f.waitsFor--; f.waitsFor > 0 {
		return
	}
	if err := t.begin(i, t.now); err != nil {
		t.failure = err
	}
	t.schedule(int32(f.From), t.now)
}

// tellPairs gives the operator's map of QP pairs to the gateways that have one.
func (t *traffic) tellPairs() error {
	pairs := make([]pairing.QPPair, len(t.flows))
	for i := range t.flows {
		f := &t.flows[i]
		pairs[i] = pairing.QPPair{Source: HostAddr(f.From), Destination: HostAddr(f.To), SourceQP: f.qp, DestinationQP: f.peerQP}
	}
	for _, g := range t.gateways {
		if !t.network.Nodes[g.node].Gateway.KnowsQPs {
			continue
		}
		m, err := pairing.NewQPMap(pairs, t.network.Seed)
		if err != nil {
			return err
		}
		p := *t.network.Nodes[g.node].Gateway.Dataplane.Policy
		p.QPMap = m
		if err := g.plane.SetPolicy(&p); err != nil {
			return err
		}
	}
	return nil
}
