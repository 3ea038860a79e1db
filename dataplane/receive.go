package dataplane

import (
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// ecnCE is the codepoint Congestion Experienced (RFC 3168 5).
const ecnCE = 3

// receive takes one port's burst through parse, learn, border policy, queue and response (in passes over the burst, so that the
// flow table's memory is fetched for all of it at once).
func (w *Worker) receive(port int) {
	rx := w.batch.Ports[port].Rx
	if len(rx) == 0 {
		return
	}
	w.work += len(rx)
	b := w.parse(port, rx)
	w.counters.add(port, RxPackets, uint64(len(rx)))
	w.counters.add(port, RxBytes, b.octets)
	w.learn(rx, b.keys)
	if b.plain && w.smooth(port, len(rx), &b) {
		w.pass(port, rx, &b)
		return
	}
	for i := range rx {
		w.forward(port, rx[i], &w.parsed[i], w.flow[i], b.plain)
	}
}

// seen is what the first pass over a burst finds.
type seen struct {
	octets uint64
	ce     uint64 // RoCEv2 packets with CE
	keys   int    // flows to look up
	class  int    // the first frame's
	plain  bool   // all frames are of this class, none is a notification or MAC control: there is nothing to decide about any of them
}

// parse is the first pass: headers, flow keys, and what is special about the burst.
func (w *Worker) parse(port int, rx []burst.Frame) (s seen) {
	classOf := &w.ports[w.ports[port].Peer].ClassOf
	s.plain = true
	rx = rx[:min(len(rx), burst.MaxSize)] // as it is: for the compiler, which then knows where i ends
	for i := range rx {
		p, b := &w.parsed[i], w.batch.Bytes(rx[i])
		packet.Parse(b, rx[i].Len, p)
		w.flow[i] = flowtable.None
		s.octets += uint64(rx[i].Len)
		class := int(classOf[p.DSCP&63])
		if i == 0 {
			s.class = class
		}
		if class != s.class {
			s.plain = false
		}
		if p.Kind != packet.RoCEv2 || p.Opcode == packet.CNP {
			s.plain = w.flowless(port, b, p) && s.plain
			continue
		}
		if p.ECN == ecnCE {
			s.ce++
		}
		if impostor(p) {
			continue
		}
		k := s.keys & (burst.MaxSize - 1)
		setKey(&w.keys[k], port, p)
		w.of[k] = uint8(i)
		s.keys++
	}
	return s
}

// flowless takes a packet without a flow, and tells whether there is nothing to decide about it. A receiver's CNP is evidence for source
// QPs, and of no flow of its own: it answers one, and one from a gateway names no peer.
func (w *Worker) flowless(port int, b []byte, p *packet.Parsed) bool {
	if p.Opcode == packet.CNP && !impostor(p) { // of RoCEv2 packets alone the opcode is set
		w.learnCNP(port, p)
	}
	return p.Kind != packet.MACControl && packet.Classify(b, p, &w.policy.Build.Code) == packet.NotANotification
}

// learn finds or adds the flow of every RoCEv2 packet of the burst (draft-tian 5.2), and takes what the packets tell of source QPs.
func (w *Worker) learn(rx []burst.Frame, keys int) {
	if keys == 0 {
		return
	}
	w.flows.Lookup(w.keys[:keys], w.now, w.found[:keys])
	w.flows.Touch(w.found[:keys])
	found, of := w.found[:keys], w.of[:keys]
	for k, i := range of {
		w.flow[i] = found[k]
	}
	for k := w.flows.Routine(found, of, &w.parsed, 0); k < keys; k = w.flows.Routine(found, of, &w.parsed, k+1) {
		w.evidence(&w.keys[k], found[k], &w.parsed[of[k]], rx[of[k]])
	}
}

// setKey writes a packet's flow key field by field: a whole Key would be made on the stack first, which costs more than all else here.
func setKey(k *flowtable.Key, port int, p *packet.Parsed) {
	k.Src, k.Dst, k.DestQP, k.SourceQP = p.Src, p.Dst, p.DestQP, p.SourceQP
	k.Port, k.OuterVID, k.InnerVID = uint16(port), p.OuterVID, p.InnerVID
}

// evidence shows the flow table what a packet tells of source QPs.
func (w *Worker) evidence(k *flowtable.Key, x flowtable.Index, p *packet.Parsed, f burst.Frame) {
	if p.DestQP == packet.GSIQP {
		if m, ok := packet.CMMessage(w.batch.Bytes(f), p); ok {
			w.flows.ObserveCM(k, &m, w.now)
		}
		return
	}
	w.flows.Observe(x, p, w.batch.Bytes(f), w.now)
}

// learnCNP takes a receiver's CNP as evidence; a notification of a gateway says nothing of the receiver's QPs.
func (w *Worker) learnCNP(port int, p *packet.Parsed) {
	if p.BTHFlags&packet.ExtensionBit == 0 && p.DstOpts == 0 {
		var k flowtable.Key
		setKey(&k, port, p)
		w.flows.ObserveCNP(&k)
	}
}

// impostor tells whether an IPv6 packet has an IPv4-mapped address, which no packet may have on the wire (RFC 4038 4.2): its flow
// would be taken for the IPv4 flow of the same addresses.
func impostor(p *packet.Parsed) bool { return p.Family == 6 && (p.Src.Is4() || p.Dst.Is4()) }

// forward decides where one frame ends: consumed, dropped by the border policy, or in the queue of the port's peer.
// About the frames of a plain burst there is nothing to decide.
func (w *Worker) forward(port int, f burst.Frame, p *packet.Parsed, flow flowtable.Index, plain bool) {
	if !plain && w.stop(port, f, p) {
		return
	}
	if p.Kind == packet.RoCEv2 && p.ECN == ecnCE {
		w.counters.add(port, CEReceived, 1)
	}
	if flow != flowtable.None {
		w.count(flow, f.Len, p)
	}
	w.enqueue(port, f, p, flow)
}

// stop takes a frame that ends here, and counts notifications.
func (w *Worker) stop(port int, f burst.Frame, p *packet.Parsed) bool {
	if p.Kind == packet.MACControl {
		w.drop(port, ConsumedMACControl, f)
		return true
	}
	note := packet.Classify(w.batch.Bytes(f), p, &w.policy.Build.Code)
	if note != packet.NotANotification {
		w.counters.add(port, ReceivedFirst+Counter(note-1), 1)
		if reason, stop := w.policy.Border.stops(w.ports[port].Role, note, p); stop {
			w.drop(port, reason, f)
			return true
		}
	}
	return false
}

// enqueue puts the frame into the queue of the port's peer, or drops it where that is full, and responds to the depth it finds.
func (w *Worker) enqueue(port int, f burst.Frame, p *packet.Parsed, flow flowtable.Index) {
	out := w.ports[port].Peer
	q := &w.egress[out]
	class := int(w.ports[out].ClassOf[p.DSCP])
	depth := q.depth[class] + q.others[class] + uint64(f.Len)
	if depth > w.ports[out].Capacity {
		w.drop(out, DroppedQueueOctets, f)
		return
	}
	if q.classes[class].full() || q.classes[class].n+q.othersFrames[class] >= w.ports[out].Frames {
		w.drop(out, DroppedQueueFrames, f)
		return
	}
	q.enter(class, entry{f, flow}, w.flows)
	w.counters.watermark(out, class, depth)
	if w.policy.Ports[out].Thresholds.Level(depth) != congestion.None {
		var r response
		w.begin(&r, port, class)
		w.respond(&r, f, p, flow, depth)
	}
}

// drop ends a frame: its buffer goes back, and the counter says why.
func (w *Worker) drop(port int, reason Counter, f burst.Frame) {
	w.counters.add(port, reason, 1)
	w.batch.Free = append(w.batch.Free, f.Buf)
}
