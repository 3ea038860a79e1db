package store

import (
	"sync/atomic"
	"unsafe"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// Ref names a flow of any worker: the flow's index (bits 0-27), the low bits of its generation (28-52), and the worker's number (53-60). It never
// names another flow, as long as an index serves fewer than 2^25 flows. 0 is no flow.
type Ref uint64

const (
	indexBits      = 28
	generationBits = 25
	workerBits     = 8

	// MaxWorkers is the number of workers that flows can have.
	MaxWorkers = 1 << workerBits
)

// Bits of Record.owner beside a Ref, see Slot.Move.
const (
	moved  = 1 << 61 // and bit 62: the number of moves, modulo 4
	moves  = 3 * moved
	moving = 1 << 63 // the slot moves now: its flow can't leave it
)

// MakeRef names a flow of a worker.
func MakeRef(worker uint64, generation, index uint32) Ref {
	return Ref(worker<<(indexBits+generationBits) | uint64(generation&(1<<generationBits-1))<<indexBits | uint64(index))
}

// Worker is the worker's number.
func (r Ref) Worker() int { return int(r >> (indexBits + generationBits)) }

// Index is the flow's index at that worker.
func (r Ref) Index() uint32 { return uint32(r & (1<<indexBits - 1)) }

// Is reports whether the flow is the one of a generation of its index.
func (r Ref) Is(generation uint32) bool {
	return (uint32(r>>indexBits)^generation)&(1<<generationBits-1) == 0
}

const (
	NoteBit = 1 << 31 // set in a word that has a PSN, so that it isn't 0
	// FirstSlack is the number of PSNs that a flow may have used before the first one seen: those packets were lost or overtaken.
	FirstSlack = 63
	leaseMask  = 1<<15 - 1
)

// Sent has the PSNs that a flow's requests have used: bits 0-23 the first PSN, 24-47 the highest, 48 whether there were any, 49-63 the
// lease of the slot, which shows a reader whether the word belongs to the flow that has the slot now.
type Sent uint64

// MakeSent is the word of a flow whose requests have used the PSNs from first to high.
func MakeSent(first, high uint32, lease uint16) Sent {
	return Sent(first&packet.PSNMask) | Sent(high&packet.PSNMask)<<24 | 1<<48 | Sent(lease)<<49
}

// Valid reports whether there were requests.
func (s Sent) Valid() bool { return s>>48&1 != 0 }

// First is the first PSN.
func (s Sent) First() uint32 { return uint32(s & packet.PSNMask) }

// High is the highest PSN.
func (s Sent) High() uint32  { return uint32(s>>24) & packet.PSNMask }
func (s Sent) lease() uint16 { return uint16(s >> 49) }

// Width is the number of PSNs that the flow's requests have used, minus one.
func (s Sent) Width() uint32 { return (s.High() - s.First()) & packet.PSNMask }

// Has reports whether psn is between the first and the highest PSN of the flow's requests.
func (s Sent) Has(psn uint32) bool { return s.Valid() && (s.High()-psn)&packet.PSNMask <= s.Width() }

// May is Has, with FirstSlack PSNs more for requests that were sent before the first one seen.
func (s Sent) May(psn uint32) bool {
	return s.Valid() && (s.High()-psn)&packet.PSNMask <= s.Width()+FirstSlack
}

// Ack has the progress of a flow's responses: bits 0-23 their highest PSN, 48 whether there were any, 49-63 the lease of the slot.
type Ack uint64

// MakeAck is the word of a flow whose responses have got to psn.
func MakeAck(psn uint32, lease uint16) Ack { return Ack(psn&packet.PSNMask) | 1<<48 | Ack(lease)<<49 }

// Valid reports whether there were responses.
func (a Ack) Valid() bool { return a>>48&1 != 0 }

// Last is their highest PSN.
func (a Ack) Last() uint32  { return uint32(a & packet.PSNMask) }
func (a Ack) lease() uint16 { return uint16(a >> 49) }

// Link is the slot of a flow's peer flow: bits 0-8 its number plus 1, 0 for no peer flow; 9-23 its lease; 24 whether the flow's UDP source
// port is its own, that is, another connection would have another port; 32-63 the slot's number in the store.
type Link uint64

func makeLink(to *View, ownPort bool) Link {
	l := Link(to.n+1) | Link(to.Lease())<<9 | Link(to.x)<<32
	if ownPort {
		l |= 1 << 24
	}
	return l
}

// Number is the number of the peer flow's slot on its side, -1 for no peer flow.
func (l Link) Number() int { return int(l&0x1ff) - 1 }

func (l Link) slot() uint32 { return uint32(l >> 32) }

// Lease is the lease of that slot.
func (l Link) Lease() uint16 { return uint16(l>>9) & leaseMask }

// OwnPort reports whether the flow's UDP source port is its own.
func (l Link) OwnPort() bool { return l>>24&1 != 0 }

// SharedPort returns the same link, with a UDP source port that is no longer the flow's own.
func (l Link) SharedPort() Link { return l &^ (1 << 24) }

// Identity has the data of a flow that the port rules need.
//
//	bits 0-23 destination QP, 24-39 UDP source port, 40 the port has changed and isn't steady yet, 41 UC: nothing is acknowledged, 42 another
//	gateway has seen the flow
type Identity uint64

// MakeIdentity is the word of a flow by its destination QP and UDP source port.
func MakeIdentity(qp uint32, port uint16, varies, unreliable bool) Identity {
	i := Identity(qp) | Identity(port)<<24
	if varies {
		i |= 1 << 40
	}
	if unreliable {
		i |= 1 << 41
	}
	return i
}

// Remote is the identity of a flow that another gateway has seen.
func (i Identity) Remote() Identity { return i | 1<<42 }

// IsRemote reports whether another gateway has seen the flow, and not this one.
func (i Identity) IsRemote() bool { return i>>42&1 != 0 }

// QP is the destination QP.
func (i Identity) QP() uint32 { return uint32(i & packet.MaxQP) }

// Port is the UDP source port.
func (i Identity) Port() uint16 { return uint16(i >> 24) }

// Steady reports whether the port hasn't changed lately.
func (i Identity) Steady() bool { return i>>40&1 == 0 }

// Unreliable reports whether the transport is UC.
func (i Identity) Unreliable() bool { return i>>41&1 != 0 }

// Claim is RDMA-CM's claim about a flow that has a slot: bits 0-23 the source QP, 24-47 the PSN of the flow's first request, 48-63 its UDP
// source port, 0 for any. It is 0 without a claim.
type Claim uint64

// MakeClaim is the claim of a source QP, a first PSN and a UDP source port, 0 for any.
func MakeClaim(sourceQP, psn uint32, port uint16) Claim {
	return Claim(sourceQP&packet.MaxQP) | Claim(psn&packet.PSNMask)<<24 | Claim(port)<<48
}

// SourceQP is the flow's source QP.
func (c Claim) SourceQP() uint32 { return uint32(c & packet.MaxQP) }

// PSN is that of the flow's first request.
func (c Claim) PSN() uint32 { return uint32(c>>24) & packet.PSNMask }

// Port is the flow's UDP source port, 0 for any.
func (c Claim) Port() uint16 { return uint16(c >> 48) }

// PortMark shows which flows have the same port as this one, at the last judgement of this flow or one of those.
type PortMark uint8

const (
	PortEqual   PortMark = 1 << iota // a flow of the other side
	PortFormula                      // a flow of the other side, and the port is the formula's for the two
)

// Elimination is the evidence of a flow's responses about its peer flow.
type Elimination struct {
	OnlyIs         uint16 // number of the only slot of the other side that is left, plus 1; 0 if none or several are left
	Width          uint8  // log2 of the number of PSNs that this flow had used when it became the only one
	Agreeing       uint8  // responses since then, each to a higher PSN than all before
	Exact          uint8  // consecutive ACKs since then for PSNs with AckReq
	Retries        uint8  // how often no flow was left, so that all flows became possible again
	Contradictions uint8  // contradictions of the pair that count; View.Contradictions counts all
	Plausible      uint8  // responses in a row to PSNs that some flow of the other side can have sent
	Wait           uint16 // responses with no flow left until all flows may become possible again
}

// Only is the number of the only slot of the other side that is left, or -1.
func (e Elimination) Only() int { return int(e.OnlyIs) - 1 }

// Restart clears the evidence of responses, but not the counts of its errors.
func (e *Elimination) Restart() {
	*e = Elimination{Retries: e.Retries, Contradictions: e.Contradictions, Wait: e.Wait}
}

const (
	NextRing  = 8 // PSNs that a flow's last responses wait for
	AskedRing = 8 // a flow's last PSNs with AckReq
)

// Record is a slot: three cache lines.
type Record struct {
	// owner and peer are written under Group.lock, with two exceptions: a flow that ends frees its slot without it, and a flow whose peer
	// flow has gone, or whose port is no longer its own, records that in peer without it.
	owner atomic.Uint64 // a Ref, with moved and moving; 0 for an empty slot
	peer  atomic.Uint64 // a Link
	// The worker of the flow writes these, any worker reads them. They carry the lease of the slot.
	sent atomic.Uint64 // a Sent
	ack  atomic.Uint64 // an Ack

	// The rest is read and written under Group.lock, except next, asked, counted, spot and ended.
	id             Identity
	claim          Claim // RDMA-CM's claim about the flow
	elimination    Elimination
	lease          uint16 // how often the slot was assigned, from 1 on, modulo 2^15
	contradictions uint16 // how often packets contradicted the flow's pair
	match          PortMark
	next           [NextRing]atomic.Uint32  // written by the flow's worker, with NoteBit
	asked          [AskedRing]atomic.Uint32 // written by the flow's worker, with NoteBit
	row            [rowWords]uint64         // a bit for each slot of the other side whose flow may be the peer flow

	spot    atomic.Uint64 // where the slot is, see makeSpot; 0 while it is in no group
	counted atomic.Uint64 // hash of the source for which the flow is counted in Store.unpaired; 0 if it isn't
	// ended is when RDMA-CM released the connection, in milliseconds modulo 2^32. It is written under the lock of the CM records.
	ended atomic.Uint32
	began uint32 // when the slot was assigned, as ended
	free  uint32 // under Store.Lock: of a slot in no group, the next one
}

var _ [192]byte = [unsafe.Sizeof(Record{})]byte{}
