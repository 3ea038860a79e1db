package dataplane

import (
	"sync/atomic"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/egress"
	"github.com/cnpgate/cnpgate/dataplane/frames"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/keyhash"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// This file measures round-trip times passively: from the departure of a data packet from a WAN port to the arrival of its acknowledgement
// there.
//
// A retransmitted packet must not be timed: the acknowledgement may be the first transmission's (Karn's algorithm). The worker tracks one
// flow a port. It knows the highest PSN of the flow's requests since then, and times only packets beyond it. It begins to time packets
// longestRTT after it began to track the flow, so that acknowledgements of earlier packets have arrived by then or never will.
//
// A receiver can acknowledge too early, or too late. So after a few packets the worker tracks a flow to another receiver, and several
// receivers must agree (congestion.RTT).

const (
	longestRTT    = 1e9   // ns: a later acknowledgement doesn't count
	probeInterval = 100e6 // ns between the end of a probe and the next one
	mostLooks     = 1024  // batches searched for a packet to time; then another flow is tracked
	probesEach    = 3     // of a flow, before a flow to another receiver is tracked
)

// probe is a data packet in flight whose acknowledgement may arrive at any worker. Each port has at most one at a time. Its time of
// departure distinguishes it from earlier ones.
type probe struct {
	began                  atomic.Int64  // when the packet left, ns; 0: no probe is in flight
	receiver               atomic.Uint32 // a congestion.Receiver
	receiverHi, receiverLo atomic.Uint64
	senderHi, senderLo     atomic.Uint64
	scope                  atomic.Uint64 // of the acknowledgement
	sourceQP, psn, highest atomic.Uint32 // highest: PSN that the flow has sent since
}

// writing is the begin of a probe whose fields are being written: no acknowledgement ends it.
const writing = -1

// end ends the probe that began at a time. It is false if that has ended already.
func (p *probe) end(began int64) bool { return p.began.CompareAndSwap(began, 0) }

// timePackets continues with the tracked flow, or begins to track one.
func (t *tracker) timePackets(b *frames.Batch) {
	switch {
	case !t.Flows.Live(t.tracked):
		t.forgetFlow()
		t.trackFlow(b, 0)
	case t.timed != 0:
		t.follow()
	case t.Now-t.since < longestRTT:
	case t.probes >= probesEach && !t.current && t.trackFlow(b, t.receiver):
	case !t.current:
		t.noteHighest()
		t.current, t.looks, t.next = true, 0, 0
	default:
		t.beginProbe(b)
	}
}

// forgetFlow ends the probe and the tracking of its flow.
func (t *tracker) forgetFlow() {
	if t.timed != 0 {
		t.path.probe.end(t.timed)
	}
	t.tracked, t.timed, t.current = flowtable.Ref{}, 0, false
}

// trackFlow begins to track a flow of the batch: of those to a receiver other than this, one whose tenant, and then whose receiver, was tracked
// least recently. It returns false if none can be timed.
func (t *tracker) trackFlow(b *frames.Batch, other congestion.Receiver) bool {
	best, at := 0, 0
	for i := range b.Frames {
		if !t.canBeTimed(b, i) {
			continue
		}
		if r := t.receiverOf(b, i); r != other && t.path.age(r) > best {
			best, at = t.path.age(r), i
		}
	}
	if best == 0 {
		return false
	}
	t.tracked, t.receiver, t.highest, t.since, t.current, t.probes = b.Flow[at], t.receiverOf(b, at), b.Records[at].PSN, t.Now, false, 0
	t.path.track(t.receiver)
	return true
}

func (t *tracker) canBeTimed(b *frames.Batch, i int) bool {
	p, x := &b.Records[i], b.Flow[i]
	if x.Index == flowtable.None || !acknowledged(p) || p.DestQP() < packet.ManagementQPs {
		return false
	}
	_, confirmed := t.Learner.SourceQP(x.Index)
	return confirmed
}

// receiverOf names the receiver of a data packet.
func (t *tracker) receiverOf(b *frames.Batch, i int) congestion.Receiver {
	var secret [3]uint64
	keyhash.Spread(secret[:], t.seed)
	k := flowtable.KeyOf(&b.Records[i])
	tenant := keyhash.Fold(uint64(k.Scope().At(0).Tenant())^secret[0], secret[1])
	host := keyhash.Fold(k.Dst.Hi^tenant, k.Dst.Lo^secret[2])
	return congestion.Receiver(uint16(tenant))<<16 | congestion.Receiver(uint16(host))
}

// acknowledged reports whether a packet is a request with data that its receiver acknowledges: of the service RC or XRC.
func acknowledged(p *packet.Record) bool {
	const rc, xrc = packet.RCSendFirst >> 5, packet.XRC >> 5
	service := p.Opcode >> 5
	return (service == rc || service == xrc) && p.Opcode.Role() == packet.Request && p.CarriesData()
}

// noteHighest updates highest with the packets that the learner has only counted.
func (t *tracker) noteHighest() {
	if last, ok := t.Learner.LastRequest(t.tracked.Index); ok && beyond(last, t.highest) {
		t.highest = last
	}
}

// observed is called before the learner observes a packet of the tracked flow. A packet with an earlier PSN is a retransmission, or was
// overtaken, and ends the probe.
func (t *tracker) observed(p *packet.Record) {
	t.noteHighest()
	switch role := p.Opcode.Role(); {
	case role != packet.Request && role != packet.ReadRequest:
	case beyond(p.PSN, t.highest):
		t.highest = p.PSN
	case t.timed != 0:
		t.path.probe.end(t.timed)
		t.awaitNext()
	}
}

// awaitNext makes the tracker wait for the time of the next probe.
func (t *tracker) awaitNext() {
	t.timed, t.current, t.next = 0, false, t.Now+probeInterval
	t.probes++
}

// follow publishes the PSNs that an acknowledgement may have, and gives up the probe after a time.
func (t *tracker) follow() {
	p := &t.path.probe
	switch {
	case p.began.Load() != t.timed: // acknowledged
		t.awaitNext()
	case t.Now-t.timed > longestRTT:
		p.end(t.timed)
		t.awaitNext()
	default:
		t.noteHighest()
		p.highest.Store(t.highest)
		t.next = 0
	}
}

// beginProbe looks for a packet of the tracked flow that is sent for the first time and asks to be acknowledged, and times it.
func (t *tracker) beginProbe(b *frames.Batch) {
	if t.looks++; t.looks > mostLooks {
		t.forgetFlow()
		return
	}
	t.next = 0
	ahead := uint64(0)
	for i := range b.Frames {
		p := &b.Records[i]
		if b.Flow[i] == t.tracked && acknowledged(p) && beyond(p.PSN, t.highest) && asksForACK(b.Data(i), b.Headers(i)) {
			// the queue's delay is not part of the path's round-trip time
			t.timePacket(&b.Records[i], t.Egress[t.out].Departs(t.Now, b.ClassAt(i), ahead))
			break
		}
		ahead += uint64(b.Frames[i].Len) + egress.LineOverhead
	}
	t.noteHighest()
}

// asksForACK reports whether a request has the AckReq bit (IBTA 9.2.13).
func asksForACK(data []byte, p *packet.Parsed) bool {
	const octet, bit = 8, 0x80 // of the BTH, which lies in data
	return data[int(p.BTH)+octet]&bit != 0
}

// timePacket makes a packet the probe in flight, if no other worker has one, and the flow's source QP is still known.
func (t *tracker) timePacket(packet *packet.Record, departs int64) {
	p := &t.path.probe
	qp, confirmed := t.Learner.SourceQP(t.tracked.Index)
	if !confirmed || !p.began.CompareAndSwap(0, writing) {
		t.awaitNext()
		return
	}
	p.receiver.Store(uint32(t.receiver))
	p.receiverHi.Store(packet.Flow.Dst.Hi)
	p.receiverLo.Store(packet.Flow.Dst.Lo)
	p.senderHi.Store(packet.Flow.Src.Hi)
	p.senderLo.Store(packet.Flow.Src.Lo)
	p.scope.Store(uint64(packet.Flow.Scope.At(t.out)))
	p.sourceQP.Store(qp)
	p.psn.Store(packet.PSN)
	p.highest.Store(packet.PSN)
	t.timed = max(departs, 1)
	p.began.Store(t.timed)
}

// matchACKs looks for the acknowledgement that ends the probe which began at a time: from the receiver to the sender, in their scope, to the flow's source QP, not a NAK, and of a
// PSN that the flow has sent since the probe. An attacker who can't see the packets has to guess both numbers, within a round trip.
func (t *tracker) matchACKs(b *frames.Batch, began int64) {
	p := &t.path.probe
	qp, psn := p.sourceQP.Load(), p.psn.Load()
	for i := range b.Frames {
		a := &b.Records[i]
		if a.DestQP() != qp || a.Opcode != packet.RCAcknowledge && a.Opcode != packet.XRC|packet.RCAcknowledge {
			continue
		}
		from := packet.Addr{Hi: p.receiverHi.Load(), Lo: p.receiverLo.Load()}
		to := packet.Addr{Hi: p.senderHi.Load(), Lo: p.senderLo.Load()}
		if a.Flow.Src != from || a.Flow.Dst != to || uint64(a.Flow.Scope) != p.scope.Load() || (a.PSN-psn)&packet.PSNMask > (p.highest.Load()-psn)&packet.PSNMask ||
			!packet.DecodeAETH(b.Data(i)[b.Headers(i).Ext():]).IsACK() {
			continue
		}
		receiver := congestion.Receiver(p.receiver.Load())
		if p.end(began) {
			t.acknowledged(receiver, t.Now-began)
		}
		return
	}
}

// acknowledged records the round-trip time of a timed packet, unless it is shorter than can be true.
func (t *tracker) acknowledged(by congestion.Receiver, rtt int64) {
	switch {
	case rtt <= 0 || rtt > longestRTT:
	case rtt < t.Policy.Ports[t.out].Trust.Least:
		t.Counters.Add(t.out, counters.RTTRefused, 1)
	default:
		t.path.acknowledged(by, rtt)
	}
}

// beyond reports whether a PSN is ahead of another one, by less than half of all PSNs.
func beyond(a, b uint32) bool { return a != b && packet.PSNAtMost(b, a) }
