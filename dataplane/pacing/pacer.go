// Package pacing holds the frames that are slowed down, in front of the queue of a port. It is pure: the worker queues what leaves, and
// counts.
package pacing

import (
	"sync/atomic"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing"
)

// Pacer holds frames that are slowed down, in front of a port's queue: at a fabric port those towards a host, at a WAN port those of a flow
// whose sender does not slow down itself (enforce.go). A pacedHost is either. Frames of one flow stay in order. Of the flows to one host,
// the one that has sent least goes first, so that short ones don't wait for long ones.
//
// Its memory is allocated at the start. If a host or a flow finds no slot, its frames aren't held. If the held frames have too many bytes,
// those of the current host leave sooner than its pace allows.
type Pacer struct {
	policy   *congestion.Pacing // at this step; unpaced: no more frames are held
	Accounts *account.Accounts
	Learner  *pairing.Learner
	Port     int
	ByFlow   bool // it is a WAN port, where flows are slowed down, not hosts
	hosts    hostTable
	senders  senderTable // only at a WAN port
	requests requests    // only at a WAN port
	flows    flowHeaps
	frames   pool[HeldFrame]
	due      dueHeap

	Tally
	held  int    // frames
	bytes uint64 // of them
	limit uint64

	publishedFrames, publishedBytes atomic.Uint64 // held, for any goroutine
}

// pacedFlow is a flow with held frames. The flows of a host are a leftist heap.
type pacedFlow struct {
	ref         flowtable.Ref
	served      uint64 // bytes sent; those from before the flow had this slot count up to longFlow
	first, last uint32 // frames
	left, right uint32
	distance    uint32 // of the nearest place without a right child
	responses   bool   // frames of READ responses are held, or were since the flow has this slot
}

// HeldFrame is a held frame.
type HeldFrame struct {
	Frame burst.Frame
	Class uint64 // of the queue
}

const (
	pacedHosts = 1024
	pacedFlows = 8192
)

// Frames is the number of frames that a pacer with this limit in bytes may hold: one for each KB.
func Frames(bytes uint64) int { return int(bytes / 1024) }

// Memory is the memory that a pacer needs to hold this many bytes of frames, without the frames' buffers.
func Memory(bytes uint64) int { return size(Frames(bytes)) }

// size is the memory that a pacer needs, in bytes, to hold this many frames.
func size(frames int) int {
	return poolSize[pacedHost](pacedHosts) + poolSize[pacedFlow](pacedFlows) + poolSize[HeldFrame](frames) +
		requestsSize() + senderBuckets*(8+4) + 4*(2*pacedHosts+2)
}

// New makes a pacer for a limit in bytes in zeroed memory of Memory(limit) bytes, 8-byte aligned. The seed keys the hash of hosts.
func New(memory []byte, limit, seed uint64) *Pacer {
	return newSized(memory, Frames(limit), limit, seed)
}

// newSized is New for this many frames.
func newSized(memory []byte, frames int, limit, seed uint64) *Pacer {
	p := &Pacer{limit: limit, policy: &unpaced}
	p.hosts.pool, memory = newPool[pacedHost](memory, pacedHosts)
	p.flows.pool, memory = newPool[pacedFlow](memory, pacedFlows)
	p.frames, memory = newPool[HeldFrame](memory, frames)
	p.senders.held, memory = carve[uint64](memory, senderBuckets)
	p.requests, memory = newRequests(memory)
	p.senders.flows, memory = carve[uint32](memory, senderBuckets)
	p.hosts.heads, memory = carve[uint32](memory, pacedHosts)
	p.due.of, _ = carve[uint32](memory, pacedHosts+1)
	p.due.of = p.due.of[:1]
	p.hosts.seed, p.senders.seed = seed, seed
	p.senders.hosts, p.due.hosts, p.requests.senders = p.hosts.of, p.hosts.of, &p.senders
	return p
}

// hostKey is the key of a host.
func hostKey(host packet.Host) (k flowtable.Key) {
	k.Dst = host.Addr
	k.SetScope(host.Scope)
	return k
}

// Slow reduces the pace of a host because of its CNP at the time now. It returns false if the last reduction was too recent, or the host
// finds no slot.
func (p *Pacer) Slow(host packet.Host, now int64) bool {
	k := hostKey(host)
	at := p.hosts.add(&k, now)
	return at != 0 && p.hosts.of[at].pace.Reduce(p.policy, now)
}

// forget removes a host that has no frames here.
func (p *Pacer) forget(at uint32) {
	if p.hosts.of[at].enforced.linked {
		p.senders.unlink(at)
	}
	p.hosts.remove(at)
}

// Sweep checks the next waiting request, and the next of all hosts, and removes it if it has no frames here and is no longer slowed down:
// packets for it may never come again.
func (p *Pacer) Sweep(now int64) {
	p.requests.sweep(now)
	t := &p.hosts
	if t.known == 0 {
		return
	}
	t.swept = t.swept%t.used + 1
	h := &t.of[t.swept]
	if h.known && h.flows == 0 && h.pausedTo <= now && !h.enforced.measures(now) && !h.pace.Slow(p.policy, now) {
		p.forget(t.swept)
	}
}

// waits reports whether a frame for a known host has to wait: for the host's pace, for the end of its pause, or for frames that already
// wait. If not, the frame counts as sent. A host that is no longer slowed down is removed.
func (p *Pacer) waits(at uint32, bytes uint32, now int64) bool {
	h := &p.hosts.of[at]
	if h.enforced.measuring {
		h.measure(p.policy, bytes, now)
	}
	switch {
	case h.flows != 0, h.pausedTo > now:
		return true
	case !h.pace.Slow(p.policy, now):
		if !h.enforced.measuring {
			p.forget(at)
		}
		return false
	case h.ready > now:
		return true
	}
	h.ready = now + h.pace.Takes(p.policy, now, bytes)
	return false
}

// full reports whether there is no space for a frame of this many bytes for a host.
func (p *Pacer) full(at, bytes uint32) bool {
	return p.bytes+uint64(bytes) > p.limit || p.held == len(p.frames.of)-1 || p.senderFull(&p.hosts.of[at], bytes)
}

// hold holds a frame of a flow for a host. There must be space for it. flow is the flow's slot, 0 if none of its frames is held; served is
// the number of its bytes so far. hold returns the flow's slot; if it finds none it returns 0, and doesn't hold the frame.
func (p *Pacer) hold(at uint32, f burst.Frame, class int, ref flowtable.Ref, flow uint32, served uint64) uint32 {
	if flow == 0 {
		if flow = p.flows.take(); flow == 0 {
			return 0
		}
		p.flows.of[flow] = pacedFlow{ref: ref, served: served, distance: 1}
	}
	frame, of := p.frames.take(), &p.flows.of[flow]
	p.frames.of[frame] = HeldFrame{f, uint64(class)}
	if of.last != 0 {
		p.frames.next[of.last] = frame
		of.last = frame
	} else {
		of.first, of.last = frame, frame
		p.join(at, flow)
	}
	p.held++
	p.bytes += uint64(f.Len)
	*p.senders.heldOf(&p.hosts.of[at]) += uint64(f.Len)
	return flow
}

// join adds a flow to those of its host, and the host to those that are due.
func (p *Pacer) join(at, flow uint32) {
	h := &p.hosts.of[at]
	h.flows = p.flows.merge(h.flows, flow)
	if h.rank == 0 {
		p.due.add(at)
	}
}

// Next returns the next frame of a host with frames, and its flow.
func (p *Pacer) Next(at uint32) (f *HeldFrame, of flowtable.Ref) {
	flow := &p.flows.of[p.hosts.of[at].flows]
	return &p.frames.of[flow.first], flow.ref
}

// leave removes the next frame of a host, which leaves at the time now. It reports whether it was the last one of its flow.
func (p *Pacer) leave(at uint32, now int64) (last bool) {
	h := &p.hosts.of[at]
	top := h.flows
	flow := &p.flows.of[top]
	frame := flow.first
	bytes := p.frames.of[frame].Frame.Len
	began := min(max(h.dueAt(), now-lateness), now) // a frame that leaves too soon doesn't delay the next ones for that
	h.ready = max(h.ready, began+h.pace.Takes(p.policy, now, bytes))
	h.flows = p.flows.merge(flow.left, flow.right)
	flow.first, flow.left, flow.right, flow.distance = p.frames.next[frame], 0, 0, 1
	flow.served += uint64(bytes)
	p.frames.give(frame)
	p.held--
	p.bytes -= uint64(bytes)
	*p.senders.heldOf(h) -= uint64(bytes)
	if last = flow.first == 0; last {
		p.flows.give(top)
	} else {
		h.flows = p.flows.merge(h.flows, top)
	}
	if h.flows == 0 {
		p.due.remove(h.rank)
		h.rank = 0
	} else {
		p.due.down(h.rank, at)
	}
	return last
}

// Postpone makes a host wait whose next frame finds no space in its class.
func (p *Pacer) Postpone(at uint32, now int64) {
	h := &p.hosts.of[at]
	h.ready = now + fullInterval
	p.due.down(h.rank, at)
}

// fullInterval is the time after which a frame whose class was full is tried again, ns.
const fullInterval = 50_000

// lateness is the time that a host may catch up after a late worker, ns.
const lateness = 50_000

// unpaced is the policy for frames that still wait when pacing has been switched off: they leave at once.
var unpaced = congestion.Pacing{HostRate: 1 << 50, Recovery: 1}

// senderFull reports whether the frames held of a flow's sender leave no space for one of this many bytes: one sender may hold half of the
// pacer, so that it leaves space for the others.
func (p *Pacer) senderFull(h *pacedHost, bytes uint32) bool {
	return h.enforced.linked && *p.senders.heldOf(h)+uint64(bytes) > p.limit/2
}
