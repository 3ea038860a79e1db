package pairing

import (
	"fmt"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing/store"
)

// This file is about flows that other gateways have seen. If the two directions of a connection pass through two gateways, neither can pair
// them by itself. So each may show the other what it has seen of a flow: destination QP, UDP source port and PSNs, no packets. Such a remote
// flow has a slot like any other, and the same rules compare it with the gateway's own flows, with four differences:
//
//   - A pair with a remote flow is confirmed only if the UDP source port of the gateway's own packets is the connection's own (ownPort): by
//     the formula of both QPs, or by RDMA-CM's flow label. So it is the own flow that shows which QP it comes from, and PSNs agree besides. A
//     peer that lies can show no flow, or one that doesn't fit: then the source QP stays unknown. To have another QP named it must find one
//     with the same port, one in 2^14.
//   - The evidence is EvidencePeer, the weakest. Own evidence replaces it, and it replaces none.
//   - What is known of a remote flow is late: it may have used remoteSlack more PSNs, and once paired any, and it is silent only when it is
//     no longer shown. The port protects the pair meanwhile: another connection has another one.
//   - A flow that the gateway sees itself is never remote. Two remote flows are no pair.

// remoteSlack is the number of PSNs that a remote flow may have used since it was shown.
const remoteSlack = 1 << 17

// Remote is what another gateway has seen of a flow.
type Remote struct {
	Key         flowtable.Key // as the flow would have it here
	Port        uint16        // UDP source port
	Unreliable  bool          // UC
	Requests    bool          // First and High are the PSNs of its requests
	Responses   bool          // Acked is the highest PSN of its responses
	First, High uint32
	Acked       uint32
}

// Peers has the flows that other gateways have seen. It belongs to one goroutine, which is no worker.
type Peers struct {
	learner *Learner
	table   *flowtable.Table
	at      flowtable.Index // where Sweep looks for flows that the gateway sees itself now
	packets [1]packet.Record
	found   [1]flowtable.Ref
}

// PeersSize is the number of bytes that JoinPeers needs, where paired is the Pairing's Config.Flows.
func PeersSize(capacity, paired int) int {
	return flowtable.Size(capacity) + LearnerSize(capacity, paired)
}

// JoinPeers makes the Peers of a gateway, for capacity flows, in mem, which must be zero. A remote flow ends when it wasn't shown for aging ns.
// It must be called before the first packet, once.
func (p *Pairing) JoinPeers(mem []byte, capacity int, aging int64, seed uint64) (*Peers, error) {
	if p.peers != 0 {
		return nil, fmt.Errorf("pairing: the flows of other gateways have joined already")
	}
	if need := PeersSize(capacity, p.flows); len(mem) < need {
		return nil, fmt.Errorf("pairing: %d bytes of memory for %d flows of other gateways: expected at least %d", len(mem), capacity, need)
	}
	e := &Peers{}
	var err error
	c := flowtable.Config{Capacity: capacity, Aging: aging, Seed: seed, Observer: (*peersObserver)(e)}
	if e.table, err = flowtable.New(mem, c); err != nil {
		return nil, err
	}
	if e.learner, err = p.Join(e.table, mem[flowtable.Size(capacity):]); err != nil {
		return nil, err
	}
	p.peers = len(p.learners)
	return e, nil
}

type peersObserver Peers

func (o *peersObserver) Begin(x flowtable.Index)                   { o.learner.Begin(x) }
func (o *peersObserver) End(x flowtable.Index, _ flowtable.Ending) { o.learner.End(x) }

func (p *Pairing) isRemote(r store.Ref) bool {
	return p.peers != 0 && r != 0 && r.Worker() == p.peers-1
}

// ofPeers is the verdict about a flow, if the peer flow that it names may be remote.
func (v verdict) ofPeers(f *store.View) verdict {
	if v.why == EvidenceNone {
		return v
	}
	switch here, there := f.Identity().IsRemote(), v.peer.Identity().IsRemote(); {
	case here && there:
		return verdict{}
	case here || there:
		v.why, v.sure = EvidencePeer, v.sure && v.ownPort
	}
	return v
}

// Shown is what became of a remote flow.
type Shown uint8

const (
	ShownTaken Shown = iota // its evidence counts
	ShownSeen               // the gateway sees the flow itself
	ShownFull               // there is no space for it, or another worker had the lock
	ShownStale              // it was shown later PSNs before
	ShownEnded              // it was another connection's before, which ended
)

// Show takes what another gateway has seen of a flow.
func (e *Peers) Show(r *Remote, now int64) Shown {
	l := e.learner
	l.StartBurst()
	if _, _, known := e.table.Find(&r.Key); !known && l.pairing.sees(&r.Key) { // Sweep ends those that are seen later
		return ShownSeen
	}
	e.packets[0].Flow = r.Key.Words()
	l.table.Lookup(e.packets[:], now, e.found[:])
	x := e.found[0].Index
	if x == flowtable.None {
		return ShownFull
	}
	if l.answer(x).fixed() {
		return ShownTaken
	}
	t := &l.tracks[x]
	t.flags |= remote
	t.count(0)
	f, ok := l.flowOf(x)
	p := arrival{&packet.Parsed{Opcode: r.opcode(), DestQP: r.Key.DestQP, PSN: r.Acked, SrcPort: r.Port}, nil, now}
	if !ok {
		if f.track.slot = 0; !f.enter(&p) {
			return ShownFull
		}
	} else if f.port != r.Port || r.Unreliable != (f.flags&unreliable != 0) {
		l.table.Renew(x, now) // and the next time it begins anew
		return ShownEnded
	}
	if !f.follow(r, &p) {
		return ShownStale
	}
	if _, paired := f.slot.LinkedPeer(f.slot.Link()); !paired {
		f.wait(0)
		f.judge(&p)
	}
	return ShownTaken
}

// opcode is that of a packet of the flow: a response, if it has sent any.
func (r *Remote) opcode() packet.Opcode {
	switch {
	case r.Unreliable:
		return packet.UC | packet.RCSendOnly
	case r.Responses:
		return packet.RCAcknowledge
	}
	return packet.RCSendOnly
}

// sees reports whether a worker has the flow.
func (p *Pairing) sees(k *flowtable.Key) bool {
	for i, l := range p.learners {
		if i == p.peers-1 {
			continue
		}
		if _, s, ok := l.table.Find(k); ok && Answer(s.Answer()).Ended() == Open {
			return true
		}
	}
	return false
}

// follow takes the PSNs of a remote flow, and reports whether they are later than those before. They count for a pair only while they go
// together with what the own flow has sent.
func (f *flow) follow(r *Remote, p *arrival) bool {
	const back = 1 << 22
	if r.Requests {
		if behind := (f.high - r.High) & packet.PSNMask; f.flags&sends != 0 && behind > 0 && behind < back {
			return false
		}
		f.flags |= sends
		f.first, f.top, f.high = r.First, r.High, r.High
		if (f.high-f.first)&packet.PSNMask > maxSpan {
			f.first = (f.high - maxSpan) & packet.PSNMask
		}
		f.slot.PublishSent(f.lease, store.MakeSent(f.first, (f.high+remoteSlack)&packet.PSNMask, f.lease))
	}
	if !r.Responses {
		return true
	}
	ack := f.slot.AckBy(f.lease)
	if behind := (ack.Last() - r.Acked) & packet.PSNMask; ack.Valid() && behind > 0 && behind < back {
		return false
	}
	if ack.Valid() && ack.Last() == r.Acked || !f.compare(1) {
		return true
	}
	defer f.unlock()
	peer, paired := f.slot.Peer()
	if !paired {
		f.eliminate(p, ack)
		return true
	}
	sent := peer.Sent()
	if ahead := (r.Acked - sent.High()) & packet.PSNMask; sent.Valid() && ahead > margin && ahead < back {
		f.l.counts.change().Contradictions++
		f.l.pairing.contradict(&f.slot)
		return true
	}
	f.slot.PublishAck(f.lease, store.MakeAck(r.Acked, f.lease))
	return true
}

// Adopt confirms an own flow with a source QP that it had at another gateway, or at this one before a restart, if it is unknown and its UDP
// source port is that of the two QPs. Its peer flow r counts as remote until it is seen. It reports whether the flow has the source QP now.
func (e *Peers) Adopt(r *Remote, own *flowtable.Key, now int64) bool {
	l := e.learner
	l.StartBurst()
	if packet.SourcePort(own.DestQP, r.Key.DestQP) != r.Port || !l.pairing.sees(&r.Key) && e.Show(r, now) != ShownTaken {
		return false
	}
	all := l.pairing
	key, side := all.groupOf(own)
	if !all.store.Lock.Try() {
		return false
	}
	var on [store.Depths]*store.Group
	n := all.store.Way(all.store.Find(&key, all.hashOf(&key)), r.Port, &on)
	all.store.Lock.Release()
	for _, g := range on[:n] {
		if e.adoptIn(g, &key, side, own, r) {
			return true
		}
	}
	return false
}

// adoptIn is Adopt if both flows are in a group.
func (e *Peers) adoptIn(g *store.Group, key *store.Key, side int, own *flowtable.Key, r *Remote) bool {
	l, all := e.learner, e.learner.pairing
	if !g.Lock().Try() {
		return false
	}
	defer g.Lock().Release()
	if *g.Key() != *key {
		return false
	}
	flow, ok := only(all.store, g, side, own.DestQP)
	peer, there := only(all.store, g, 1-side, r.Key.DestQP)
	if !ok || !there || flow.Identity().IsRemote() {
		return false
	}
	for _, slot := range [...]*store.Slot{&flow, &peer} {
		if i := slot.Identity(); !i.Steady() || i.Port() != r.Port || i.Unreliable() != r.Unreliable || slot.Link() != 0 {
			return false
		}
	}
	m, back := matchPortOf(&flow.View, true), matchPortOf(&peer.View, true)
	if m.n != peer.Number() || back.n != flow.Number() || !m.formula { // another flow fits, too
		return false
	}
	l.pair(&flow, &peer, flow.Ref(), peer.Ref(), EvidencePeer, true)
	a, ok := all.answers.of(flow.Ref())
	return ok && a.Usable() && a.SourceQP() == r.Key.DestQP
}

// only is the slot of the only flow to a QP on a side of a group.
func only(s *store.Store, g *store.Group, side int, qp uint32) (found store.Slot, ok bool) {
	for n := range g.Used(side) {
		if slot, has := s.Occupied(g, side, n); has && slot.Identity().QP() == qp {
			if ok {
				return found, false
			}
			found, ok = slot, true
		}
	}
	return found, ok
}

// Sweep ends remote flows that were not shown for long, and some of those that the gateway sees itself by now. It is called several times a
// second.
func (e *Peers) Sweep(now int64) {
	const batch = 512
	for range batch / 32 { // a Sweep of the table looks at 32 entries at most
		e.table.Sweep(now)
	}
	e.learner.Sweep()
	for range min(batch, int(e.table.High())) {
		e.at = e.at%e.table.High() + 1
		if e.table.State(e.at).Live() && e.learner.tracks[e.at].slot != 0 && e.learner.pairing.sees(e.table.Key(e.at)) {
			e.table.Renew(e.at, now)
		}
	}
}

// Flows is the number of remote flows, for any goroutine.
func (e *Peers) Flows() int { return int(e.table.Stats().Flows) }

// Stats is for any goroutine.
func (e *Peers) Stats() Stats { return e.learner.Stats() }
