package pacing

import (
	"math/bits"
	"unsafe"

	"github.com/cnpgate/cnpgate/cnpdec"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/keyhash"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// Request is what a notification asks a sender to do with a flow. It names the flow by the receiver and one of the flow's QPs.
type Request struct {
	Sender, Receiver packet.Addr  // receiver is the zero Addr if the notification names only the sender's QP
	QP               uint32       // 24 bits, at least packet.ManagementQPs
	sendersQP        bool         // qp is the sender's, otherwise the receiver's
	Scope            packet.Scope // of the flow
	Action           cnpdec.Ask
	parameter        uint16
	At               int64 // time of the notification, ns
	Unverified       bool  // anybody may have sent it: a CNP of no confirmed pair of flows
}

// Names reports whether a request is about the flow with this key and source QP, 0 if that isn't known. The receiver's QP names no flow of
// UD, where any number of QPs send to it.
func (r *Request) Names(k *flowtable.Key, sourceQP uint32) bool {
	switch {
	case k.Src != r.Sender, k.Scope() != r.Scope, k.DestQP < packet.ManagementQPs:
		return false
	case r.sendersQP:
		return sourceQP == r.QP && (r.Receiver == packet.Addr{} || r.Receiver == k.Dst)
	}
	return k.DestQP == r.QP && k.Dst == r.Receiver && k.SourceQP == 0
}

// sameFlow reports whether two requests name a flow in the same way.
func (r *Request) sameFlow(o *Request) bool {
	return r.Sender == o.Sender && r.Receiver == o.Receiver && r.QP == o.QP && r.sendersQP == o.sendersQP &&
		r.Scope == o.Scope
}

// Host is the sender in its scope.
func (r *Request) Host() packet.Host { return packet.Host{Addr: r.Sender, Scope: r.Scope} }

// ends is the time from which on a request that has met no packet of its flow is of no use, ns.
func (r *Request) ends() int64 {
	if r.Action == cnpdec.Pause {
		return r.At + max(paceRequestLife, int64(r.parameter)*microsecond)
	}
	return r.At + paceRequestLife
}

const (
	paceRequestLife = 10_000_000 // ns
	microsecond     = 1_000      // ns
)

// requests are requests about flows that are not slowed down yet, until the next packet of their flow: only a packet shows which worker has
// the flow, and a Long-haul CNP doesn't name the receiver.
type requests struct {
	waiting pool[Request]
	byName  []uint32 // by hash of the flow's name, the first waiting request, the oldest first
	n       int      // waiting
	senders *senderTable
	swept   uint32
}

const (
	waitingPaceRequests = 256
	nameBuckets         = 1024
	longestList         = 64 // slowed flows of a list that are checked
	// requestsABucket bounds the requests in a list of names: those for one flow, as others meet by chance only.
	requestsABucket = 8
)

// requestsSize is the memory that newRequests needs, in bytes, a multiple of 8.
func requestsSize() int {
	return poolSize[Request](waitingPaceRequests) + nameBuckets*int(unsafe.Sizeof(uint32(0)))
}

// newRequests makes requests in zeroed memory, 8-byte aligned, and returns the rest of the memory.
func newRequests(memory []byte) (r requests, rest []byte) {
	r.waiting, memory = newPool[Request](memory, waitingPaceRequests)
	r.byName, memory = carve[uint32](memory, nameBuckets)
	return r, memory
}

// named returns the start of the list of the waiting requests with a name: the hash of the sender, the receiver, and the QP of one of them.
func (q *requests) named(sender uint64, receiver packet.Addr, qp uint32, sendersQP bool) *uint32 {
	if sendersQP {
		qp |= 1 << 31
	}
	to := keyhash.Fold(receiver.Hi^bits.RotateLeft64(q.senders.seed, 8), receiver.Lo^bits.RotateLeft64(q.senders.seed, 40))
	flow := keyhash.Fold(sender^bits.RotateLeft64(q.senders.seed, 24), uint64(qp)^bits.RotateLeft64(q.senders.seed, 56))
	return &q.byName[keyhash.Fold(flow^q.senders.seed, to^bits.RotateLeft64(q.senders.seed, 32))%nameBuckets]
}

// listOf returns the start of the list of a request.
func (q *requests) listOf(r *Request) *uint32 {
	return q.named(q.senders.hash(r.Host()), r.Receiver, r.QP, r.sendersQP)
}

// expect keeps a request until the next packet of its flow. It returns false if there is no slot. Unverified requests get only the first half
// of the slots, and of those for a flow, so that a flood of forged CNPs leaves the others to gateways.
func (q *requests) expect(r *Request) bool {
	all, alike := waitingPaceRequests, requestsABucket
	if r.Unverified {
		all, alike = all/2, alike/2
	}
	link := q.listOf(r)
	for ; *link != 0; link = &q.waiting.next[*link] {
		alike--
	}
	if q.n >= all || alike <= 0 {
		return false
	}
	at := q.waiting.take()
	if at == 0 {
		return false
	}
	q.waiting.of[at] = *r
	*link = at
	q.n++
	return true
}

// cancel removes what waits for the flow that a request names. It returns false if nothing does.
func (q *requests) cancel(r *Request) (any bool) {
	link := q.listOf(r)
	for *link != 0 {
		if q.waiting.of[*link].sameFlow(r) {
			q.remove(link)
			any = true
			continue
		}
		link = &q.waiting.next[*link]
	}
	return any
}

// remove removes the request that a link of its list points to.
func (q *requests) remove(link *uint32) {
	at := *link
	*link = q.waiting.next[at]
	q.waiting.of[at] = Request{}
	q.waiting.give(at)
	q.n--
}

// sweep checks the next slot, and removes its request if that has ended.
func (q *requests) sweep(now int64) {
	if q.n == 0 {
		return
	}
	q.swept = q.swept%q.waiting.used + 1
	r := &q.waiting.of[q.swept]
	if r.QP == 0 || r.ends() > now { // a slot without a request has no QP
		return
	}
	link := q.listOf(r)
	for *link != q.swept {
		link = &q.waiting.next[*link]
	}
	q.remove(link)
}
