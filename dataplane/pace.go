package dataplane

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/dataplane/pacing"
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
	if w.pacers[port].Active() && w.confirmed(port, p) {
		w.slow(port, packet.Host{Addr: p.Src, Scope: packet.ScopeOf(uint16(port), p)})
	}
}

// slow reduces the pace of a host behind a port, here and at the other workers.
func (w *Worker) slow(port int, host packet.Host) {
	if w.pacers[port].Slow(host, w.now) {
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
		if w.holdBack(b, i, out) {
			held |= 1 << i
		}
	}
	if held != 0 {
		w.counters.add(out, PacedPackets, uint64(bits.OnesCount64(uint64(held))))
	}
	return held
}

// holdBack holds one packet of a flow, if it has to wait. If there is no space for it, frames for the same host are released first; if
// their class is full, the packet is dropped, since it must not overtake them.
func (w *Worker) holdBack(b *batch, i, out int) bool {
	p, r, f := w.pacers[out], &b.records[i], b.frames[i]
	at, end := p.Arrives(r, f.Len, b.flow[i], w.now)
	if end == pacing.Waits {
		end = p.Hold(at, r, f, b.classAt(i), b.flow[i])
	}
	for end == pacing.HostFull && w.goOn(out, at) {
		w.counters.add(out, PacedTooMany, 1)
		end = p.Hold(at, r, f, b.classAt(i), b.flow[i])
	}
	switch end {
	case pacing.Held:
		return true
	case pacing.Dropped:
		w.drop(out, DroppedPacing, f)
		b.gone |= 1 << i
	case pacing.HostFull:
		w.drop(out, DroppedQueueOctets, f)
		b.gone |= 1 << i
	case pacing.NoSpace:
		w.counters.add(out, PacedTooMany, 1)
	}
	return false
}

// goOn moves the next held frame for a host to its queue. It returns false if its class has no space for it.
func (w *Worker) goOn(out int, at uint32) bool {
	p := w.pacers[out]
	if next, _ := p.Next(at); !w.egress[out].Classes[next.Class].Fits(w.policy.Ports[out].Queue, 1, uint64(next.Frame.Len)) {
		return false
	}
	f, flow, braked := p.Release(at, w.now)
	if w.queueOne(out, int(f.Class), f.Frame, flow) && (braked || !w.policy.Ports[out].Law.On()) {
		w.markHeld(out, int(f.Class), f.Frame, flow)
	}
	return true
}

// markHeld does for a frame that was held, and has entered its class, what queueClass and respond do for others: it updates the maximum depth, and marks
// the frame above K_min (draft-tian 5.4), with the law only if its sender doesn't react.
func (w *Worker) markHeld(out, class int, f burst.Frame, flow flowtable.Ref) {
	policy, q := &w.policy.Ports[out], &w.egress[out]
	depth := q.Classes[class].Waiting()
	q.Classes[class].NoteDepth(depth)
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
		q.Classes[class].Observed++
		w.counters.add(out, ECNObserved, 1)
		return
	}
	packet.MarkCE(data, p.Outer, p.ECN)
	q.Classes[class].Marked++
	w.counters.add(out, ECNMarked, 1)
	if flow.Index != flowtable.None {
		w.accounts.Get(flow.Index).Marked++
	}
}

// paceAStep bounds the frames that release takes a step: more than a port sends in one.
const paceAStep = 128

// release moves the frames whose time has come to their queue, as far as their class has space for them. A host whose next frame finds no
// space tries again later, so that it doesn't delay the others.
func (w *Worker) release(out int) {
	p := w.pacers[out]
	p.Sweep(w.now)
	for range paceAStep {
		at, due, any := p.First()
		if !any || due > w.now {
			return
		}
		if !w.goOn(out, at) {
			p.Postpone(at, w.now)
		}
	}
}
