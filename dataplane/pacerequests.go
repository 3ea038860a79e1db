package dataplane

import (
	"math/bits"
	"unsafe"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/keyhash"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// paceAction is what a notification asks a sender to do with a flow.
type paceAction uint8

const (
	slowDownFlow paceAction = iota // to Pacing.Keep percent of its rate: a CNP's meaning, which has no number
	reduceFlow                     // by parameter percent
	pauseFlow                      // for parameter microseconds
	resumeFlow                     // end a pause, and restore parameter percent of the last reduction, or with 0 the whole rate
	endPause                       // only that: PPFC's resume
	paceActions
)

var paceActionNames = [paceActions]string{"slow-down", "rate-reduce", "pause", "resume", "end-pause"}

// paceRequest is what a notification asks a sender to do with a flow. It names the flow by the receiver and one of the flow's QPs.
type paceRequest struct {
	sender, receiver   packet.Addr // receiver is the zero Addr if the notification names only the sender's QP
	qp                 uint32      // 24 bits, at least managementQPs
	sendersQP          bool        // qp is the sender's, otherwise the receiver's
	anyTags            bool        // the notification came for a proxy, in a VLAN of its own
	outerTag, innerTag packet.Tag  // of the notification, as of the flow's packets
	action             paceAction
	parameter          uint16
	at                 int64 // time of the notification, ns
	unverified         bool  // anybody may have sent it: a CNP from an address that has sent nothing to the QP
}

// names reports whether a request is about the flow with this key and source QP, 0 if that isn't known. The receiver's QP names no flow of
// UD, where any number of QPs send to it.
func (r *paceRequest) names(k *flowtable.Key, sourceQP uint32) bool {
	switch {
	case k.Src != r.sender, k.DestQP < managementQPs, !r.anyTags && (k.OuterTag != r.outerTag || k.InnerTag != r.innerTag):
		return false
	case r.sendersQP:
		return sourceQP == r.qp && (r.receiver == packet.Addr{} || r.receiver == k.Dst)
	}
	return k.DestQP == r.qp && k.Dst == r.receiver && k.SourceQP == 0
}

// sameFlow reports whether two requests name a flow in the same way.
func (r *paceRequest) sameFlow(o *paceRequest) bool {
	return r.sender == o.sender && r.receiver == o.receiver && r.qp == o.qp && r.sendersQP == o.sendersQP &&
		r.anyTags == o.anyTags && r.outerTag == o.outerTag && r.innerTag == o.innerTag
}

// ends is the time from which on a request that has met no packet of its flow is of no use, ns.
func (r *paceRequest) ends() int64 {
	if r.action == pauseFlow {
		return r.at + max(paceRequestLife, int64(r.parameter)*microsecond)
	}
	return r.at + paceRequestLife
}

const (
	paceRequestLife = 10_000_000 // ns
	microsecond     = 1_000      // ns
)

// paceRequests are requests about flows that are not slowed down yet, until the next packet of their flow: only a packet shows which worker has
// the flow, and a Long-haul CNP doesn't name the receiver. They also find slowed flows, and the bytes held, by sender.
type paceRequests struct {
	waiting pool[paceRequest]
	byHash  []uint32 // by hash of the sender, the first waiting request, the oldest first
	flows   []uint32 // by hash of the sender, the first slowed flow
	held    []uint64 // by hash of the sender, bytes of held frames
	n       int      // waiting
	swept   uint32
}

const (
	waitingPaceRequests = 256
	senderBuckets       = 256
)

// paceRequestsSize is the memory that newPaceRequests needs, in bytes, a multiple of 8.
func paceRequestsSize() int {
	return poolSize[paceRequest](waitingPaceRequests) + senderBuckets*int(unsafe.Sizeof(uint64(0))+2*unsafe.Sizeof(uint32(0)))
}

// newPaceRequests makes requests in zeroed memory, 8-byte aligned, and returns the rest of the memory.
func newPaceRequests(memory []byte) (r paceRequests, rest []byte) {
	r.waiting, memory = newPool[paceRequest](memory, waitingPaceRequests)
	r.held, memory = carve[uint64](memory, senderBuckets)
	r.byHash, memory = carve[uint32](memory, senderBuckets)
	r.flows, memory = carve[uint32](memory, senderBuckets)
	return r, memory
}

// bucket is the place of a sender in the lists by hash.
func (p *pacer) bucket(sender packet.Addr) uint64 {
	return keyhash.Fold(sender.Hi^p.seed, sender.Lo^bits.RotateLeft64(p.seed, 32)) % senderBuckets
}

// expect keeps a request until the next packet of its flow. It returns false if there is no slot. Unverified requests get only the first half
// of the slots, so that a flood of forged CNPs leaves the others to gateways.
func (p *pacer) expect(r *paceRequest) bool {
	q := &p.requests
	if r.unverified && q.n >= waitingPaceRequests/2 {
		return false
	}
	at := q.waiting.take()
	if at == 0 {
		return false
	}
	q.waiting.of[at] = *r
	link := &q.byHash[p.bucket(r.sender)]
	for *link != 0 { // at most waitingPaceRequests
		link = &q.waiting.next[*link]
	}
	*link = at
	q.n++
	return true
}

// cancel removes what waits for the flow that a request names. It returns false if nothing does.
func (p *pacer) cancel(r *paceRequest) (any bool) {
	link := &p.requests.byHash[p.bucket(r.sender)]
	for *link != 0 {
		if p.requests.waiting.of[*link].sameFlow(r) {
			p.requests.remove(link)
			any = true
			continue
		}
		link = &p.requests.waiting.next[*link]
	}
	return any
}

// remove removes the request that a link of its list points to.
func (q *paceRequests) remove(link *uint32) {
	at := *link
	*link = q.waiting.next[at]
	q.waiting.of[at] = paceRequest{}
	q.waiting.give(at)
	q.n--
}

// sweep checks the next slot, and removes its request if that has ended.
func (p *pacer) sweepPaceRequests(now int64) {
	q := &p.requests
	if q.n == 0 {
		return
	}
	q.swept = q.swept%q.waiting.used + 1
	r := &q.waiting.of[q.swept]
	if r.qp == 0 || r.ends() > now { // a slot without a request has no QP
		return
	}
	link := &q.byHash[p.bucket(r.sender)]
	for *link != q.swept {
		link = &q.waiting.next[*link]
	}
	q.remove(link)
}
