package pacing

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/keyhash"
	"github.com/cnpgate/cnpgate/internal/packet"
)

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
