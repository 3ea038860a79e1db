// Package pacing holds the frames that are slowed down, in front of the queue of a port. It is pure: the worker queues what leaves, and
// counts.
package pacing

import (
	"math/bits"
	"sync/atomic"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/keyhash"
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
	policy   *congestion.Pacing // at this step; nil: no more frames are held
	Accounts *account.Table
	Learner  *pairing.Learner
	Port     int
	ByFlow   bool // it is a WAN port, where flows are slowed down, not hosts
	seed     uint64
	heads    []uint32 // by hash of the key, the first host of a list
	hosts    pool[pacedHost]
	flows    pool[pacedFlow]
	frames   pool[HeldFrame]
	due      []uint32 // hosts with frames, a binary heap by dueAt; place 0 is unused

	requests requests // only at a WAN port

	Counted bool           // events has any
	Events  [events]uint64 // since the worker has counted them
	known   int            // hosts
	swept   uint32         // the last host that sweep has checked
	held    int            // frames
	bytes   uint64         // of them
	limit   uint64

	publishedFrames, publishedBytes atomic.Uint64 // held, for any goroutine
}

// pacedHost is a host, or a flow at a WAN port, whose frames are held, or were recently.
type pacedHost struct {
	key      flowtable.Key // of a host only Dst, its address, and its scope
	pace     congestion.Pace
	ready    int64        // time when its pace allows the next frame, ns
	pausedTo int64        // time before which no frame leaves, ns
	enforced enforcedFlow // only at a WAN port
	flows    uint32       // flows with held frames, a heap with the least served one on top
	rank     uint32       // place in due, 0 for none
	known    bool         // the place is in use
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
	return poolSize[pacedHost](pacedHosts) + poolSize[pacedFlow](pacedFlows) + poolSize[HeldFrame](frames) + requestsSize() + 4*(2*pacedHosts+2)
}

// New makes a pacer for a limit in bytes in zeroed memory of Memory(limit) bytes, 8-byte aligned. The seed keys the hash of hosts.
func New(memory []byte, limit, seed uint64) *Pacer {
	return newSized(memory, Frames(limit), limit, seed)
}

// newSized is New for this many frames.
func newSized(memory []byte, frames int, limit, seed uint64) *Pacer {
	p := &Pacer{seed: seed, limit: limit}
	p.hosts, memory = newPool[pacedHost](memory, pacedHosts)
	p.flows, memory = newPool[pacedFlow](memory, pacedFlows)
	p.frames, memory = newPool[HeldFrame](memory, frames)
	p.requests, memory = newRequests(memory)
	p.heads, memory = carve[uint32](memory, pacedHosts)
	p.due, _ = carve[uint32](memory, pacedHosts+1)
	p.due = p.due[:1]
	return p
}

// head returns the start of the list of hosts with a key's hash.
func (p *Pacer) head(k *flowtable.Key) *uint32 {
	src := keyhash.Fold(k.Src.Hi^p.seed, k.Src.Lo^bits.RotateLeft64(p.seed, 16))
	dst := keyhash.Fold(k.Dst.Hi^p.seed, k.Dst.Lo^bits.RotateLeft64(p.seed, 32))
	hosts := keyhash.Fold(src^uint64(k.DestQP)^p.seed, dst^bits.RotateLeft64(p.seed, 48))
	return &p.heads[keyhash.Fold(hosts^p.seed, uint64(k.Scope())^bits.RotateLeft64(p.seed, 8))%pacedHosts]
}

// find returns the slot of a host or flow, 0 if it isn't known.
func (p *Pacer) find(k *flowtable.Key) uint32 {
	at := *p.head(k)
	for at != 0 && p.hosts.of[at].key != *k {
		at = p.hosts.next[at]
	}
	return at
}

// add returns the slot of a host or flow, a new one if it isn't known; 0 if there is none.
func (p *Pacer) add(k *flowtable.Key, now int64) uint32 {
	at := p.find(k)
	if at != 0 {
		return at
	}
	if at = p.hosts.take(); at == 0 {
		return 0
	}
	h, head := &p.hosts.of[at], p.head(k)
	h.key, h.ready, h.known = *k, now, true
	p.hosts.next[at], *head = *head, at
	p.known++
	return at
}

// hostKey is the key of a host.
func hostKey(host packet.Host) (k flowtable.Key) {
	k.Dst = host.Addr
	k.SetScope(host.Scope)
	return k
}

// SenderOf is the sender of a flow.
func SenderOf(k *flowtable.Key) packet.Host { return packet.Host{Addr: k.Src, Scope: k.Scope()} }

// Slow reduces the pace of a host because of its CNP at the time now. It returns false if the last reduction was too recent, or the host
// finds no slot.
func (p *Pacer) Slow(host packet.Host, now int64) bool {
	k := hostKey(host)
	at := p.add(&k, now)
	return at != 0 && p.hosts.of[at].pace.Reduce(p.policy, now)
}

// forget removes a host that has no frames here.
func (p *Pacer) forget(at uint32) {
	h := &p.hosts.of[at]
	link := p.head(&h.key)
	for *link != at {
		link = &p.hosts.next[*link]
	}
	*link = p.hosts.next[at]
	if h.enforced.linked {
		p.unlink(at)
	}
	h.known = false
	p.hosts.give(at)
	p.known--
}

// dueAt is the time when a host's next frame may leave, ns.
func (h *pacedHost) dueAt() int64 { return max(h.ready, h.pausedTo) }

// Sweep checks the next host and the next waiting request, and removes what is of no use any more.
func (p *Pacer) Sweep(now int64) {
	p.sweepHosts(now)
	p.sweepRequests(now)
}

// sweepHosts checks the next of all hosts, and removes it if it has no frames here and is no longer slowed down: packets for it may never come
// again.
func (p *Pacer) sweepHosts(now int64) {
	if p.known == 0 {
		return
	}
	p.swept = p.swept%p.hosts.used + 1
	h := &p.hosts.of[p.swept]
	if h.known && h.flows == 0 && h.pausedTo <= now && !h.enforced.measures(now) && !h.pace.Slow(p.policyOr(), now) {
		p.forget(p.swept)
	}
}

// waits reports whether a frame for a known host has to wait: for the host's pace, for the end of its pause, or for frames that already
// wait. If not, the frame counts as sent. A host that is no longer slowed down is removed.
func (p *Pacer) waits(at uint32, bytes uint32, now int64) bool {
	h := &p.hosts.of[at]
	if h.enforced.measuring {
		h.measure(p.policyOr(), bytes, now)
	}
	switch {
	case h.flows != 0, h.pausedTo > now:
		return true
	case !h.pace.Slow(p.policyOr(), now):
		if !h.enforced.measuring {
			p.forget(at)
		}
		return false
	case h.ready > now:
		return true
	}
	h.ready = now + h.pace.Takes(p.policyOr(), now, bytes)
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
	*p.heldOf(&p.hosts.of[at]) += uint64(f.Len)
	return flow
}

// join adds a flow to those of its host, and the host to those that are due.
func (p *Pacer) join(at, flow uint32) {
	h := &p.hosts.of[at]
	h.flows = p.merge(h.flows, flow)
	if h.rank == 0 {
		p.due = append(p.due, at) // within its capacity: each host is in it once
		p.up(uint32(len(p.due)-1), at)
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
	h.ready = max(h.ready, began+h.pace.Takes(p.policyOr(), now, bytes))
	h.flows = p.merge(flow.left, flow.right)
	flow.first, flow.left, flow.right, flow.distance = p.frames.next[frame], 0, 0, 1
	flow.served += uint64(bytes)
	p.frames.give(frame)
	p.held--
	p.bytes -= uint64(bytes)
	*p.heldOf(h) -= uint64(bytes)
	if last = flow.first == 0; last {
		p.flows.give(top)
	} else {
		h.flows = p.merge(h.flows, top)
	}
	if h.flows == 0 {
		p.remove(h.rank)
		h.rank = 0
	} else {
		p.down(h.rank, at)
	}
	return last
}

// Postpone makes a host wait whose next frame finds no space in its class.
func (p *Pacer) Postpone(at uint32, now int64) {
	h := &p.hosts.of[at]
	h.ready = now + fullInterval
	p.down(h.rank, at)
}

// fullInterval is the time after which a frame whose class was full is tried again, ns.
const fullInterval = 50_000

// lateness is the time that a host may catch up after a late worker, ns.
const lateness = 50_000

// unpaced is the policy for frames that still wait when pacing has been switched off: they leave at once.
var unpaced = congestion.Pacing{HostRate: 1 << 50, Recovery: 1}

func (p *Pacer) policyOr() *congestion.Pacing {
	if p.policy == nil {
		return &unpaced
	}
	return p.policy
}
