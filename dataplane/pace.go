package dataplane

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// A receiver's CNP takes half a WAN round trip to its sender, and the sender's reaction takes another half to arrive. Until then a gateway
// near the receiver can slow down the frames towards that host itself. It forwards the CNP.

// slowHost reduces the pace of frames towards the host that a CNP comes from. The CNP must belong to a confirmed pair of flows: otherwise
// anybody in the data centre could slow down a host in whose name he has sent a packet. So a CNP about UD, which has no pairs, slows down
// nobody.
func (w *Worker) slowHost(port int, p *packet.Parsed) {
	pacer := w.pacers[port]
	if pacer == nil || pacer.policy == nil {
		return
	}
	if w.confirmed(port, p) {
		w.slow(port, packet.Host{Addr: p.Src, Scope: packet.ScopeOf(uint16(port), p)})
	}
}

// confirmed reports whether a CNP belongs to a confirmed pair of flows: pairing knows the QP at the CNP's source that is connected to the QP that
// the CNP names, and data comes from the latter by the port's peer. Nobody behind this port can forge that.
func (w *Worker) confirmed(port int, p *packet.Parsed) bool {
	k := flowtable.Key{Src: p.Src, Dst: p.Dst, DestQP: p.DestQP}
	k.SetScope(packet.ScopeOf(uint16(port), p))
	qp, ok := w.plane.sourceQP(&k)
	if !ok {
		return false
	}
	k.Src, k.Dst, k.DestQP, k.Port = p.Dst, p.Src, qp, uint16(w.ports[port].Peer)
	back, ok := w.plane.sourceQP(&k)
	return ok && back == p.DestQP
}

// slow reduces the pace of a host behind a port, here and at the other workers.
func (w *Worker) slow(port int, host packet.Host) {
	if w.pacers[port].slow(host, w.now) {
		w.counters.add(port, PaceReductions, 1)
		for _, other := range w.plane.workers {
			if other != w && !other.mail[w.id].put(slowDown{host, port}) {
				w.counters.add(port, PaceReductionsMissed, 1)
			}
		}
	}
}

// pace holds the packets of a batch that have to wait for the pace of their host or flow, and returns their mask. out is their egress port. A packet
// in a tunnel doesn't wait: the host with its address there is another one.
func (w *Worker) pace(b *batch, out int, all mask) (held mask) {
	for left := all &^ (b.flowless | b.tunnel); left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(uint64(left))
		x := w.flow[i]
		if x.Index == flowtable.None || w.records[i].Opcode == packet.RCAcknowledge && !w.behindResponses(out, x.Index) {
			continue
		}
		if w.holdBack(b, i, out, x) {
			held |= 1 << i
		}
	}
	if held != 0 {
		w.counters.add(out, PacedPackets, uint64(bits.OnesCount64(uint64(held))))
	}
	return held
}

// behindResponses reports whether READ responses of a flow may be held. An ACK must not overtake them: the requester would consider them
// lost, and request the data again. It may overtake requests, whose PSNs are the other side's.
func (w *Worker) behindResponses(out int, x flowtable.Index) bool {
	a := w.accounts.Find(x)
	return a != nil && a.Paced != 0 && w.pacers[out].flows.of[a.Paced].responses
}

// slowedAs returns the slot of what a packet is slowed down as: the host that it is for, or at a WAN port its flow. It is 0 if that is not
// slowed down.
func (w *Worker) slowedAs(out, i int, flow flowtable.Ref) uint32 {
	p := w.pacers[out]
	if w.ports[out].Role == Fabric {
		f := &w.records[i].Flow
		k := hostKey(packet.Host{Addr: f.Dst, Scope: f.Scope.At(out)})
		return p.find(&k)
	}
	if p.requests.n > 0 && p.policy != nil {
		w.takePaceRequests(out, flow)
	}
	return p.find(w.flows.Key(flow.Index))
}

// holdBack holds one packet of a flow, if it has to wait. If there is no space for it, frames for the same host are released first; if
// their class is full, the packet is dropped, since it must not overtake them.
func (w *Worker) holdBack(b *batch, i, out int, flow flowtable.Ref) bool {
	p, f := w.pacers[out], b.frames[i]
	at := w.slowedAs(out, i, flow)
	if at == 0 || !p.waits(at, f.Len, w.now) {
		return false
	}
	if h := &p.hosts.of[at]; h.enforced.braked && (p.full(at, f.Len) || p.late(h, w.now)) {
		w.drop(out, DroppedPacing, f)
		b.gone |= 1 << i
		return false
	}
	for p.full(at, f.Len) && p.hosts.of[at].flows != 0 {
		if next, _ := p.next(at); !w.fits(out, next) {
			w.drop(out, DroppedQueueOctets, f)
			b.gone |= 1 << i
			return false
		}
		w.goOn(out, at)
		w.counters.add(out, PacedTooMany, 1)
	}
	if p.full(at, f.Len) { // of other hosts: none of this flow is held
		w.counters.add(out, PacedTooMany, 1)
		return false
	}
	a, served := w.accounts.Get(flow.Index), min(w.learner.Bytes(flow.Index), longFlow)
	place := uint32(a.Paced)
	if h := &p.hosts.of[at]; h.enforced.linked {
		place = h.flows // of the one flow, even if its frames are held from before it got this Ref
	}
	place = p.hold(at, f, w.classOf(b.port, &w.records[i]), flow, place, served)
	a.Paced = uint16(place)
	if place == 0 { // for too many flows frames are held
		w.counters.add(out, PacedTooMany, 1)
		return false
	}
	if w.records[i].Opcode.Role() == packet.Response {
		p.flows.of[place].responses = true
	}
	return true
}

// stayPaced gives held frames to the flow that replaces theirs in the same place of the table, with the same key: its packets must not overtake them.
// It may be the same connection, of which more packets were lost than pairing follows. a is the account of the new flow.
func (w *Worker) stayPaced(x flowtable.Index, a *account.Flow, place uint16) {
	is := a.Generation.Load()
	held := &w.pacers[w.ports[w.flows.Key(x).Port].Peer].flows.of[place]
	if held.ref == (flowtable.Ref{Index: x, Generation: is - 1}) { // otherwise the place has become another flow's
		a.Paced, held.ref.Generation = place, is
	}
}

// longFlow is the maximum of a flow's past bytes that count: flows that have sent more share the pace equally. Otherwise one of them would
// wait until another one has sent as much, which may take hours. It is above the longest flows of common workloads, so that these finish
// sooner on average.
const longFlow = 32 << 20

// goOn moves the next held frame for a host to its queue.
func (w *Worker) goOn(out int, at uint32) {
	p := w.pacers[out]
	held, ref := p.next(at)
	f, class, braked := held.frame, int(held.class), p.hosts.of[at].enforced.braked
	if last := p.leave(at, w.now); last {
		if a, ok := w.accounts.Named(ref); ok {
			a.Paced = 0
		}
	}
	if !w.flows.Live(ref) {
		ref = flowtable.Ref{}
	}
	if w.queueOne(out, class, f, ref) && (braked || !w.policy.Ports[out].Law.On()) {
		w.markHeld(out, class, f, ref)
	}
}

// markHeld does for a frame that was held, and has entered its class, what queueClass and respond do for others: it updates the maximum depth, and marks
// the frame above K_min (draft-tian 5.4), with the law only if its sender doesn't react.
func (w *Worker) markHeld(out, class int, f burst.Frame, flow flowtable.Ref) {
	policy, q := &w.policy.Ports[out], &w.egress[out]
	depth := q.Classes[class].Waiting()
	w.counters.watermark(out, class, depth)
	if !policy.Marks || depth <= policy.KMin {
		return
	}
	var p packet.Parsed
	data := w.batch.Bytes(f)
	packet.Parse(data, f.Len, &p)
	switch {
	case p.ECN == packet.NotECT || p.ECN == packet.CE:
		return
	case w.policy.observesAt(out):
		w.states[out][class].observed++
		w.counters.add(out, ECNObserved, 1)
		return
	}
	packet.MarkCE(data, p.Outer, p.ECN)
	w.states[out][class].marked++
	w.counters.add(out, ECNMarked, 1)
	if flow.Index != flowtable.None {
		w.accounts.Get(flow.Index).Marked++
	}
}

// fits reports whether there is space for a held frame in its class.
func (w *Worker) fits(out int, f *pacedFrame) bool {
	return w.egress[out].Classes[f.class].Fits(w.policy.Ports[out].Queue, 1, uint64(f.frame.Len))
}

// paceAStep bounds the frames that release takes a step: more than a port sends in one.
const paceAStep = 128

// release moves the frames whose time has come to their queue, as far as their class has space for them. A host whose next frame finds no
// space tries again later, so that it doesn't delay the others.
func (w *Worker) release(out int) {
	p := w.pacers[out]
	p.sweep(w.now)
	p.sweepPaceRequests(w.now)
	for range paceAStep {
		if len(p.due) == 1 {
			return
		}
		at := p.due[1]
		if p.hosts.of[at].dueAt() > w.now {
			return
		}
		if f, _ := p.next(at); w.fits(out, f) {
			w.goOn(out, at)
		} else {
			p.postpone(at, w.now)
		}
	}
}
