package dataplane

import (
	"unsafe"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// ecnCE is the codepoint Congestion Experienced (RFC 3168 5).
const ecnCE = 3

// receive takes one port's burst through parse, learn, border policy, queue and response. Each is a pass over the burst, so that the
// flow table's memory is fetched for all of its packets at a time.
func (w *Worker) receive(port int) {
	rx := w.batch.Ports[port].Rx
	if len(rx) == 0 {
		return
	}
	w.work += len(rx)
	w.learner.StartBurst()
	b := w.parse(port, rx)
	w.counters.add(port, RxPackets, uint64(len(rx)))
	w.counters.add(port, RxBytes, b.bytes)
	w.learn(rx, &b)
	if b.plain && w.fits(port, len(rx), &b) {
		w.pass(port, rx, &b)
		return
	}
	for i := range rx {
		w.forward(port, rx[i], &w.parsed[i], w.flow[i], b.plain)
	}
}

// summary is what the first pass over a burst finds.
type summary struct {
	bytes uint64
	ce    uint64 // RoCEv2 packets with CE
	none  uint64 // by place in the burst: the packet has no flow
	keys  int    // flows to look up: of the other packets, in their order
	class int    // the first frame's
	plain bool   // all frames are of this class, none is a notification or MAC control: there is nothing to decide about any of them
}

// parse is the first pass: headers, flow keys, and what is special about the burst. It goes from run to run of plain frames.
func (w *Worker) parse(port int, rx []burst.Frame) (s summary) {
	s.plain = true
	w.touched = packet.Touch(w.batch.Base, rx)
	keys := (*[burst.MaxSize]packet.FlowWords)(unsafe.Pointer(&w.keys))
	rx = rx[:min(len(rx), burst.MaxSize)] // as it is: for the compiler, which then knows where i ends
	for i := 0; i < len(rx); i++ {
		run := packet.ParsePlain(w.batch.Base, rx[i:], uint64(port), w.parsed[i:], keys[s.keys:])
		if run.N > 0 {
			w.sum(port, i, &run, &s)
			i += run.N
		}
		if i < len(rx) {
			w.parseOne(port, i, rx[i], &s)
		}
	}
	return s
}

// sum adds a run of plain frames, which begins at place first. Most runs have one traffic class; where there are several, the packets say
// which it is.
func (w *Worker) sum(port, first int, run *packet.Run, s *summary) {
	s.bytes += run.Octets
	s.keys += run.N
	parsed := w.parsed[first : first+run.N]
	w.classify(port, first, &parsed[0], s)
	if run.Any>>2 != run.All>>2 {
		for i := range parsed {
			w.classify(port, first+i, &parsed[i], s)
		}
	}
	if run.Any&ecnCE == ecnCE {
		for i := range parsed {
			if parsed[i].ECN == ecnCE {
				s.ce++
			}
		}
	}
}

// classify compares a packet's class with that of the burst's first one.
func (w *Worker) classify(port, i int, p *packet.Parsed, s *summary) {
	class := int(w.ports[w.ports[port].Peer].ClassOf[p.DSCP&63])
	if i == 0 {
		s.class = class
	}
	if class != s.class {
		s.plain = false
	}
}

// parseOne parses a frame that isn't plain.
func (w *Worker) parseOne(port, i int, f burst.Frame, s *summary) {
	p, b := &w.parsed[i], w.batch.Bytes(f)
	packet.Parse(b, f.Len, p)
	s.bytes += uint64(f.Len)
	w.classify(port, i, p, s)
	if p.Kind != packet.RoCEv2 || p.Opcode == packet.CNP {
		s.plain = w.flowless(port, b, p, &w.keys[s.keys]) && s.plain
		s.none |= 1 << i
		return
	}
	if p.ECN == ecnCE {
		s.ce++
	}
	if impostor(p) {
		s.none |= 1 << i
		return
	}
	setKey(&w.keys[s.keys], port, p)
	s.keys++
}

// flowless handles a packet without a flow, and says whether there is nothing to decide about it. A CNP makes no flow: it answers one. A
// receiver's CNP is evidence for source QPs; a gateway's notification is not, since it says nothing of the receiver's QPs. The packet's key
// is written to k.
func (w *Worker) flowless(port int, b []byte, p *packet.Parsed, k *flowtable.Key) bool {
	receivers := p.Opcode == packet.CNP && p.BTHFlags&packet.ExtensionBit == 0 && p.DstOpts == 0 // only RoCEv2 packets have an opcode
	if receivers && !impostor(p) {
		setKey(k, port, p)
		w.learner.Observe(flowtable.None, k, p, b, w.now)
	}
	return p.Kind != packet.MACControl && packet.Classify(b, p, &w.policy.Build.Code) == packet.NotANotification
}

// learn finds or adds the flow of every RoCEv2 packet of the burst (draft-tian 5.2), and learns source QPs from the packets.
func (w *Worker) learn(rx []burst.Frame, s *summary) {
	found, of := w.flow[:len(rx)], inOrder[:len(rx)]
	if s.none != 0 {
		found, of = w.found[:s.keys], w.of[:s.keys]
		w.place(len(rx), s.none)
	}
	keys := w.keys[:s.keys]
	if len(keys) == 0 {
		return
	}
	w.flows.Lookup(keys, w.now, found)
	w.learner.Touch(found)
	if s.none != 0 {
		for k, i := range of {
			w.flow[i] = found[k]
		}
	}
	for k := w.learner.Routine(found, of, &w.parsed, 0); k < len(keys); k = w.learner.Routine(found, of, &w.parsed, k+1) {
		w.learner.Observe(found[k], &keys[k], &w.parsed[of[k]], w.batch.Bytes(rx[of[k]]), w.now)
	}
}

// inOrder are the places of packets in a burst in which each has a flow.
var inOrder = func() (of [burst.MaxSize]uint8) {
	for i := range of {
		of[i] = uint8(i)
	}
	return of
}()

// place notes the places of the packets that have a flow, in a burst where not all have one.
func (w *Worker) place(n int, none uint64) {
	k := 0
	for i := range n {
		w.flow[i] = flowtable.None
		if none>>i&1 == 0 {
			w.of[k] = uint8(i)
			k++
		}
	}
}

// ParsePlain writes keys as they lie in memory.
var _ [unsafe.Sizeof(flowtable.Key{})]byte = [unsafe.Sizeof(packet.FlowWords{})]byte{}

// setKey writes a packet's flow key field by field: a whole Key would be made on the stack first, which costs more than all else here.
func setKey(k *flowtable.Key, port int, p *packet.Parsed) {
	k.Src, k.Dst, k.DestQP, k.SourceQP = p.Src, p.Dst, p.DestQP, p.SourceQP
	k.Port, k.OuterTag, k.InnerTag = uint16(port), p.OuterTag, p.InnerTag
}

// impostor says whether an IPv6 packet has an IPv4-mapped address, which no packet may have on the wire (RFC 4038 4.2): its flow
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
	w.enqueue(port, f, p, flow)
}

// stop ends a frame that goes no further, and counts notifications.
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
	q.enter(class, entry{f, flow})
	w.counters.watermark(out, class, depth)
	if w.policy.Ports[out].Thresholds.Level(depth) != congestion.None {
		var r response
		w.begin(&r, port, class)
		r.cause = cause{f, p, flow, w.accounts.get(flow), depth}
		w.respond(&r)
	}
}

// drop ends a frame: its buffer goes back, and the counter says why.
func (w *Worker) drop(port int, reason Counter, f burst.Frame) {
	w.counters.add(port, reason, 1)
	w.batch.Free = append(w.batch.Free, f.Buf)
}
