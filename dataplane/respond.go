package dataplane

import (
	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/ratelimit"
)

// cause is the packet that is answered.
type cause struct {
	frame   burst.Frame
	packet  *packet.Parsed
	flow    flowtable.Index
	account *account // of the flow
	depth   uint64   // bytes that the frame found in the queue, itself included
}

// response is what answering packets of one burst to one class of a queue has in common, and the one that is answered now.
type response struct {
	cause
	in, out, class int
	thresholds     congestion.Thresholds
	perFlow        ratelimit.Interval
	notifies       bool   // senders are notified of congestion in this queue
	limited        bool   // by destination or by port
	alone          bool   // no other worker can have flows of this queue
	capacity       uint64 // bytes of the queue
	othersLargest  uint64 // bytes of the flow that has most of it at another worker
}

// begin makes the response for frames that come in by a port, to a class of its peer's queue.
func (w *Worker) begin(r *response, in, class int) {
	out := w.ports[in].Peer
	policy, port := &w.policy.Ports[out], &w.ports[out]
	r.in, r.out, r.class = in, out, class
	r.thresholds, r.perFlow, r.capacity, r.notifies = policy.Thresholds, policy.PerFlow, port.Capacity, port.Role == WAN
	r.limited = !w.policy.PerDestination.Off() || !w.policy.PerPort.Off()
	r.othersLargest, r.alone = 0, len(w.plane.workers) == 1
	if !r.alone {
		r.othersLargest = w.plane.othersLargest(out, class, w.id)
	}
}

// respond is the multi-level response (draft-tian 5.4) to the depth that a frame found, itself included, in the queue it entered:
// above K_min the frame is marked, above K_max its sender is notified. A packet whose Fast CNP was sent is not marked (draft
// fast-cnp-05 4: the sender is known to be capable).
func (w *Worker) respond(r *response) {
	level, p := r.thresholds.Level(r.depth), r.packet
	if level == congestion.None {
		return
	}
	if level == congestion.Second && r.notifies && carriesData(p) {
		if w.notify(r) == notifiedByFastCNP {
			return
		}
	}
	if p.ECN != packet.NotECT && packet.MarkCE(w.batch.Bytes(r.frame), p) {
		w.counters.add(r.out, ECNMarked, 1)
		r.account.marked++ // of flowtable.None too, which nobody reads
	}
}

// carriesData says whether a packet can be one whose sender is notified: RoCEv2 with data in it, and neither a CNP nor any other
// notification, which are never answered (draft fast-cnp-05 4 knows only data packets as causes).
func carriesData(p *packet.Parsed) bool { return p.Kind == packet.RoCEv2 && p.Opcode.HasPayload() }

type outcome uint8

const (
	notNotified outcome = iota
	notified
	notifiedByFastCNP
)

// managementQPs are QP 0 (SMI) and QP 1 (GSI): they carry management datagrams and have no rate to reduce (IBTA 3.9.3).
const managementQPs = 2

// notify notifies the sender of a data packet that entered a queue above K_max, if its flow has the largest share of that queue
// (draft-tian 5.5). Every reason not to is counted.
func (w *Worker) notify(r *response) outcome {
	if r.flow == flowtable.None {
		return w.suppress(r.in, FlowUnknown)
	}
	if q := &w.egress[r.out]; !q.shares[r.class].tracked {
		q.track(r.class)
	}
	switch reason := w.largest(r); reason {
	case allowed:
	case notTheLargest:
		return notNotified // another flow's packet brings its own turn
	default:
		return w.suppress(r.in, reason)
	}
	if reason := w.due(r); reason != allowed {
		return w.suppress(r.in, reason)
	}
	sourceQP, known := w.learner.SourceQP(r.flow)
	if known && sourceQP < managementQPs {
		return w.suppress(r.in, ManagementQP)
	}
	format, reason := w.choose(&r.packet.Src, known)
	if reason != congestion.OK {
		return w.suppress(r.in, Suppression(reason))
	}
	if reason := w.send(r, format, sourceQP); reason != allowed {
		return w.suppress(r.in, reason)
	}
	r.account.notify(format, w.now, !r.alone)
	if format == congestion.FastCNP {
		return notifiedByFastCNP
	}
	return notified
}

// choice is the last one of a policy. Packets that find the queue above K_max are mostly of senders of few prefixes.
type choice struct {
	who  *congestion.Policy
	last congestion.Choice
}

func (w *Worker) choose(src *packet.Addr, sourceQPKnown bool) (congestion.Format, congestion.Reason) {
	c, who := &w.chosen, w.policy.Who
	if c.who != who || !c.last.Covers(*src) {
		if c.who = who; !who.Around(*src, &c.last) {
			c.who = nil
			return who.Choose(*src, sourceQPKnown)
		}
	}
	return c.last.Of(sourceQPKnown)
}

func (w *Worker) suppress(in int, s Suppression) outcome {
	w.counters.add(in, SuppressedFirst+Counter(s-1), 1)
	return notNotified
}

// largest is allowed if no flow has more bytes waiting in the packet's class than its own, at this worker or another. Frames that
// are not RoCEv2 have no sender that could be notified: where they are the larger part, notifying an RDMA flow would be wrong.
func (w *Worker) largest(r *response) Suppression {
	q, bytes := &w.egress[r.out], uint64(r.account.queued)
	if int(r.account.class) != r.class || bytes < r.othersLargest || bytes < q.largest(r.class) {
		return notTheLargest
	}
	if bytes < q.shares[r.class].other {
		return LargestNotRoCE
	}
	return allowed
}

// trackForOthers tracks the shares of a class while any worker may notify a sender of it: the others need to know its largest.
func (w *Worker) trackForOthers(port, class int) {
	q := &w.egress[port]
	if w.ports[port].Role == WAN && w.policy.Ports[port].Thresholds.Level(q.depth[class]+q.others[class]) == congestion.Second {
		q.track(class)
	}
}

// due is allowed if the flow has a rate to reduce and its sender was not notified within the minimum interval (draft-tian 5.5), by this
// worker or by one that other packets of the flow went to.
func (w *Worker) due(r *response) Suppression {
	if r.packet.DestQP < managementQPs {
		return ManagementQP
	}
	if !r.perFlow.Ready(r.account.lastNotified, w.now) || !r.alone && !w.dueAtOthers(r) {
		return FlowLimit
	}
	return allowed
}

// dueAtOthers says whether the interval has passed at the other workers too.
func (w *Worker) dueAtOthers(r *response) bool {
	for _, other := range w.plane.workers {
		if other == w {
			continue
		}
		x, state, found := other.flows.Find(w.flows.Key(r.flow))
		if found && !r.perFlow.Ready(other.accounts.lastNotifiedOf(x, state.Generation()), w.now) {
			return false
		}
	}
	return true
}

// send builds the notification in a spare buffer and queues it, ahead of data, for the port the flow came in by, if the limits of
// the destination and the port allow it.
func (w *Worker) send(r *response, format congestion.Format, sourceQP uint32) Suppression {
	q, spares := &w.egress[r.in].notifications, len(w.batch.Spare)
	if q.full() {
		return NotificationQueueFull
	}
	if spares == 0 {
		return NoBuffer
	}
	if r.limited {
		if reason := w.limits(r.in, r.packet); reason != allowed {
			return reason
		}
	}
	spare := &w.batch.Spare[spares-1]
	n := w.build(r, w.batch.Bytes(*spare), format, sourceQP)
	if n == 0 {
		return NotBuilt
	}
	at := q.place(q.n)
	q.frames[at] = burst.Frame{Buf: spare.Buf, Data: spare.Data, Len: uint32(n), Head: uint32(n)}
	q.tags[at] = flowtable.Index(format)
	q.n++
	w.batch.Spare = w.batch.Spare[:spares-1]
	return allowed
}

// limits takes a token of the destination and one of the port, or none.
func (w *Worker) limits(in int, p *packet.Parsed) Suppression {
	to, each := w.plane.toDestination, w.policy.PerDestination
	if !each.Off() {
		switch to.Allow(each, p.Src, w.now) {
		case ratelimit.Limited:
			return DestinationLimit
		case ratelimit.Busy:
			return DestinationsFull
		}
	}
	if !w.policy.PerPort.Allow(&w.plane.toPort[in], w.now) {
		to.Refund(each, p.Src)
		return PortLimit
	}
	return allowed
}

func (w *Worker) build(r *response, out []byte, format congestion.Format, sourceQP uint32) int {
	data, p := w.batch.Bytes(r.frame), r.packet
	if format == congestion.FastCNP {
		n, carried := cnpgen.FastCNP(out, data, p, &w.policy.Build)
		if n != 0 && carried == cnpgen.TraceTooLong {
			w.counters.add(r.in, FastCNPTraceTooLong, 1)
		}
		return n
	}
	i := congestion.RateReduce(w.policy.ReducePercent, r.depth, r.capacity, w.policy.DiscloseMetrics)
	if format == congestion.LongHaulCNP && p.Family == 4 {
		if w.drafted.policy != w.policy || w.drafted.instruction != i {
			l := longHaul(&i, 0)
			w.drafted.policy, w.drafted.instruction, w.drafted.draft = w.policy, i, cnpgen.DraftLongHaulCNP(&w.policy.Build, &l)
		}
		return w.drafted.draft.LongHaulCNP(out, data, p, sourceQP)
	}
	l := longHaul(&i, sourceQP)
	if format == congestion.LongHaulCNPICMPv6 {
		return cnpgen.LongHaulCNPICMPv6(out, data, p, &w.policy.Build, &l)
	}
	return cnpgen.LongHaulCNP(out, data, p, &w.policy.Build, &l)
}

// drafted is the draft of the last Long-haul CNP over IPv4. A queue's depth in kilobytes, and what follows from it, is the same for many
// packets.
type drafted struct {
	policy      *Policy
	instruction congestion.Instruction
	draft       cnpgen.Draft
}

func longHaul(i *congestion.Instruction, sourceQP uint32) cnpgen.LongHaul {
	return cnpgen.LongHaul{
		Level: i.Level, Action: cnpgen.RateReduce, Parameter: i.Parameter, SourceQP: sourceQP,
		MetricType: i.MetricType, MetricValue: i.MetricValue,
	}
}
