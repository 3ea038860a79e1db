package dataplane

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/frames"
	"github.com/cnpgate/cnpgate/dataplane/mailbox"
	"github.com/cnpgate/cnpgate/dataplane/pacing"
	"github.com/cnpgate/cnpgate/dataplane/respond"
	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/dataplane/trace"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// A receiver's CNP takes half a WAN round trip to its sender, and the sender's reaction takes another half to arrive. Until then a gateway
// near the receiver can slow down the frames towards that host itself. It forwards the CNP.

// pacer is the stage that holds the frames which are slowed down, in front of the queue.
type pacer struct {
	*stage.State
	queuer *queuer
	law    *respond.Law
	peers  []*pacer                // of all workers
	mail   []mailbox.Box[slowDown] // by the worker that writes; nil without others, or without pacing
}

// slowDown reports that a host behind a port has sent a CNP.
type slowDown struct {
	host packet.Host
	port int
}

// slowHost reduces the pace of frames towards the host that a CNP comes from. The CNP must belong to a confirmed pair of flows: otherwise
// anybody in the data centre could slow down a host in whose name he has sent a packet. So a CNP about UD, which has no pairs, slows down
// nobody.
func (h *pacer) slowHost(port int, p *packet.Parsed) {
	if h.Pacers[port].Active() && h.Confirmed(port, p) {
		h.slow(port, packet.Host{Addr: p.Src, Scope: packet.ScopeOf(uint16(port), p)})
	}
}

// slow reduces the pace of a host behind a port, here and at the other workers.
func (h *pacer) slow(port int, host packet.Host) {
	if h.Pacers[port].Slow(host, h.Now) {
		h.Counters.Add(port, counters.PaceReductions, 1)
		for _, other := range h.peers {
			if other != h && !other.mail[h.ID].Put(slowDown{host, port}) {
				h.Counters.Add(port, counters.PaceReductionsMissed, 1)
			}
		}
	}
}

// pace holds the packets of a batch that have to wait for the pace of their host or flow, and returns those that enter the queue now. A packet
// in a tunnel doesn't wait: the host with its address there is another one.
func (h *pacer) pace(b *frames.Batch) (enter frames.Mask) {
	all, out := frames.First(len(b.Frames))&^b.Gone, h.Ports[b.Port].Peer
	if !h.Pacers[out].Slows() {
		return all
	}
	held := frames.Mask(0)
	for left := all &^ (b.Flowless | b.Tunnel); left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(uint64(left))
		if h.holdBack(b, i, out) {
			held |= 1 << i
		}
	}
	if held != 0 {
		h.Counters.Add(out, counters.PacedPackets, uint64(bits.OnesCount64(uint64(held))))
		h.Trace.Each(held, func(t *trace.Packet) { t.Paced = true })
	}
	held |= all & b.Gone
	h.law.Held(b, out, held)
	return all &^ held
}

// holdBack holds one packet of a flow, if it has to wait. If there is no space for it, frames for the same host are released first; if
// their class is full, the packet is dropped, since it must not overtake them.
func (h *pacer) holdBack(b *frames.Batch, i, out int) bool {
	p, r, f := h.Pacers[out], &b.Records[i], b.Frames[i]
	at, end := p.Arrives(r, f.Len, b.Flow[i], h.Now)
	if end == pacing.Waits {
		end = p.Hold(at, r, f, b.ClassAt(i), b.Flow[i])
	}
	for end == pacing.HostFull && h.goOn(out, at) {
		h.Counters.Add(out, counters.PacedTooMany, 1)
		end = p.Hold(at, r, f, b.ClassAt(i), b.Flow[i])
	}
	switch end {
	case pacing.Held:
		return true
	case pacing.Dropped:
		h.queuer.inspector.dropQueued(out, counters.DroppedPacing, f, b.Flow[i])
		b.Gone |= 1 << i
	case pacing.HostFull:
		h.queuer.inspector.dropQueued(out, counters.DroppedQueueOctets, f, b.Flow[i])
		b.Gone |= 1 << i
	case pacing.NoSpace:
		h.Counters.Add(out, counters.PacedTooMany, 1)
	}
	return false
}

// goOn moves the next held frame for a host to its queue. It returns false if its class has no space for it.
func (h *pacer) goOn(out int, at uint32) bool {
	p := h.Pacers[out]
	if next, _ := p.Next(at); !h.Egress[out].Classes[next.Class].Fits(h.Policy.Ports[out].Queue, 1, uint64(next.Frame.Len)) {
		return false
	}
	f, flow, braked := p.Release(at, h.Now)
	if h.queuer.queueOne(out, int(f.Class), f.Frame, flow) && (braked || !h.Policy.Ports[out].Law.On()) {
		h.markHeld(out, int(f.Class), f.Frame, flow)
	}
	return true
}

// markHeld does for a frame that was held, and has entered its class, what queueClass and respond do for others: it updates the maximum depth, and marks
// the frame above K_min (draft-tian 5.4), with the law only if its sender doesn't react.
func (h *pacer) markHeld(out, class int, f burst.Frame, flow flowtable.Ref) {
	policy, q := &h.Policy.Ports[out], &h.Egress[out]
	depth := q.Classes[class].Waiting()
	q.Classes[class].NoteDepth(depth)
	if !policy.Marks || depth <= policy.KMin {
		return
	}
	var p packet.Parsed
	data := h.IO.Bytes(f)
	packet.Parse(data, f.Len, &p)
	switch {
	case p.ECN == packet.NotECT || p.ECN == packet.CE:
		return
	case h.Policy.ObservesAt(out):
		q.Classes[class].Observed++
		h.Counters.Add(out, counters.ECNObserved, 1)
		return
	}
	packet.MarkCE(data, p.Outer, p.ECN)
	q.Classes[class].Marked++
	h.Counters.Add(out, counters.ECNMarked, 1)
	if flow.Index != flowtable.None {
		h.Accounts.Get(flow.Index).Marked++
	}
}

// paceAStep bounds the frames that release takes a step: more than a port sends in one.
const paceAStep = 128

// release moves the frames whose time has come to their queue, as far as their class has space for them. A host whose next frame finds no
// space tries again later, so that it doesn't delay the others.
func (h *pacer) release(out int) {
	p := h.Pacers[out]
	p.Sweep(h.Now)
	for range paceAStep {
		at, due, any := p.First()
		if !any || due > h.Now {
			return
		}
		if !h.goOn(out, at) {
			p.Postpone(at, h.Now)
		}
	}
}

// readMail does what notifications ask for that arrived at other workers.
func (h *pacer) readMail() {
	for from := range h.mail {
		for range mailbox.Size {
			s, ok := h.mail[from].Take()
			if !ok {
				break
			}
			if p := h.Pacers[s.port]; p.Active() {
				p.Slow(s.host, h.Now)
			}
		}
	}
}
