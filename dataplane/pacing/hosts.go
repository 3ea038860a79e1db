package pacing

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/keyhash"
	"github.com/cnpgate/cnpgate/internal/packet"
)

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

// dueAt is the time when a host's next frame may leave, ns.
func (h *pacedHost) dueAt() int64 { return max(h.ready, h.pausedTo) }

// hostTable finds the hosts that are slowed down, or the flows at a WAN port.
type hostTable struct {
	pool[pacedHost]
	seed  uint64
	heads []uint32 // by hash of the key, the first host of a list
	known int      // hosts
	swept uint32   // the last host that Sweep has checked
}

// head returns the start of the list of hosts with a key's hash.
func (t *hostTable) head(k *flowtable.Key) *uint32 {
	src := keyhash.Fold(k.Src.Hi^t.seed, k.Src.Lo^bits.RotateLeft64(t.seed, 16))
	dst := keyhash.Fold(k.Dst.Hi^t.seed, k.Dst.Lo^bits.RotateLeft64(t.seed, 32))
	hosts := keyhash.Fold(src^uint64(k.DestQP)^t.seed, dst^bits.RotateLeft64(t.seed, 48))
	return &t.heads[keyhash.Fold(hosts^t.seed, uint64(k.Scope())^bits.RotateLeft64(t.seed, 8))%pacedHosts]
}

// find returns the slot of a host or flow, 0 if it isn't known.
func (t *hostTable) find(k *flowtable.Key) uint32 {
	at := *t.head(k)
	for at != 0 && t.of[at].key != *k {
		at = t.next[at]
	}
	return at
}

// add returns the slot of a host or flow, a new one if it isn't known; 0 if there is none.
func (t *hostTable) add(k *flowtable.Key, now int64) uint32 {
	at := t.find(k)
	if at != 0 {
		return at
	}
	if at = t.take(); at == 0 {
		return 0
	}
	h, head := &t.of[at], t.head(k)
	h.key, h.ready, h.known = *k, now, true
	t.next[at], *head = *head, at
	t.known++
	return at
}

// remove removes a host.
func (t *hostTable) remove(at uint32) {
	h := &t.of[at]
	link := t.head(&h.key)
	for *link != at {
		link = &t.next[*link]
	}
	*link = t.next[at]
	h.known = false
	t.give(at)
	t.known--
}

// senderTable finds the flows that are slowed down, and the bytes held, by sender.
type senderTable struct {
	hosts []pacedHost // of the hostTable
	seed  uint64
	flows []uint32 // by hash of the sender, the first slowed flow
	held  []uint64 // by hash of the sender, bytes of held frames
}

const senderBuckets = 256

// SenderOf is the sender of a flow.
func SenderOf(k *flowtable.Key) packet.Host { return packet.Host{Addr: k.Src, Scope: k.Scope()} }

// hash is the hash of a sender.
func (s *senderTable) hash(sender packet.Host) uint64 {
	address := keyhash.Fold(sender.Hi^s.seed, sender.Lo^bits.RotateLeft64(s.seed, 32))
	return keyhash.Fold(address^bits.RotateLeft64(s.seed, 16), uint64(sender.Scope)^bits.RotateLeft64(s.seed, 48))
}

// bucket is the place of a sender in the lists by hash.
func (s *senderTable) bucket(sender packet.Host) uint64 { return s.hash(sender) % senderBuckets }

// flowsOf returns the start of the list of slowed flows with a flow's sender.
func (s *senderTable) flowsOf(at uint32) *uint32 {
	return &s.flows[s.bucket(SenderOf(&s.hosts[at].key))]
}

// link adds a flow to the list of its sender.
func (s *senderTable) link(at uint32) {
	e, head := &s.hosts[at].enforced, s.flowsOf(at)
	e.linked, e.next, e.prev = true, *head, 0
	s.hosts[e.next].enforced.prev = at // slot 0 has no list, so its links are never read
	*head = at
}

// unlink removes a flow from the list of its sender, in the same time whatever the list's length: one sender with many flows makes it long.
func (s *senderTable) unlink(at uint32) {
	e := &s.hosts[at].enforced
	s.hosts[e.next].enforced.prev = e.prev
	if e.prev != 0 {
		s.hosts[e.prev].enforced.next = e.next
	} else {
		*s.flowsOf(at) = e.next
	}
}

// heldOf counts the held bytes of a sender, together with those of all senders with the same hash.
func (s *senderTable) heldOf(h *pacedHost) *uint64 { return &s.held[s.bucket(SenderOf(&h.key))] }
