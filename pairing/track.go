package pairing

import (
	"unsafe"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing/store"
)

const (
	coarse     = 64          // a confirmed flow publishes its highest PSN, of requests or responses, once in this many PSNs
	margin     = coarse + 32 // maximum distance of a response beyond a highest PSN that may be published late
	backMargin = 48          // maximum distance of an acknowledgement behind the highest one: they overtake each other
)

// track is the state that the worker reads and writes for each packet of a flow: half a cache line. Most packets give no new evidence about
// source QPs, and Routine needs only the track to see that. So packets are counted here, too.
type track struct {
	packets uint32 // packets and bytes that are not in the flow's total yet
	bytes   uint32
	known   uint32 // the flow's answer when a packet was last observed, with knownBit; 0 before the first
	last    uint32 // PSN of the last request; with inexact, see there
	acked   uint32 // PSN that the last observed response of a confirmed flow is to, with ackedBit; 0: observe the next response
	slot    uint32 // the flow's slot, 0 for none
	port    uint16 // UDP source port
	due     uint16 // number of the packet, modulo 2^16, that must be observed
	flags   uint8  // and the transport service in bits 5-7
	pace    uint8  // exponent of two of the pause between judgements, or between attempts to get a slot

	// Of a flow that has a slot.
	portChanges uint8 // how often the UDP source port has changed recently
	asks        uint8 // where the ring of PSNs continues that are to be acknowledged
}

var _ [flowtable.BesideSize]byte = [unsafe.Sizeof(track{})]byte{}

// Bits of track.flags.
const (
	sends      = 1 << iota // has sent a request
	unreliable             // UC: nothing is acknowledged
	sure                   // its source QP has been confirmed in this flow record
	remote                 // another gateway has seen the flow, and not this one
	apart                  // what brings frames to its sender is not its own frames' Ethernet header, see Back
	flagBits   = 5
)

const (
	knownBit = 1 << 31
	inexact  = 1 << 31 // in last: the flow has sent no request yet, or a READ has taken PSNs beyond this one
	ackedBit = 1 << 31 // in acked
	noHurry  = 1 << 14 // at least one packet in this many is observed
	// carried is the part of packets or bytes that goes to the total at a time. On top of it noHurry packets of longFrame bytes fit into 32
	// bits.
	carried   = 1 << 31
	longFrame = 1 << 16
)

// known is the part of an answer that a track keeps. It equals the low half of the flow's state, whose live bit is at knownBit.
func known(a Answer) uint32 { return uint32(a) | knownBit }

// total has the high part of a flow's counts, which doesn't fit into a track. It has the flow's generation, so a new flow need not clear
// it, and the memory of small flows stays untouched.
type total struct {
	packets, bytes uint64
	generation     uint32
	_              uint32
}

// count adds a packet.
func (t *track) count(bytes uint32) {
	t.packets++
	t.bytes += bytes
}

func (t *track) setTransport(o packet.Opcode) { t.flags = t.flags&(1<<flagBits-1) | uint8(o)&0xe0 }

// left is the number of packets until one is due to be observed; 0 or less if the last one or an earlier one was due.
func (t *track) left() int16 { return int16(t.due - uint16(t.packets)) }

// wait makes the n-th packet from now on due; 0 is the current one.
func (t *track) wait(n uint16) { t.due = uint16(t.packets) + n }

// flows is what a worker has of each flow of its table, by the flow's index.
type flows struct {
	table  *flowtable.Table
	number uint64 // of the worker, in Pairing.learners
	tracks []track
	totals []total
	since  []int64 // when a packet first had the flow's present answer (track.known), ns; not set while the answer is Unknown
}

func (f *flows) ref(x flowtable.Index) store.Ref {
	return f.refTo(flowtable.Ref{Index: x, Generation: f.table.State(x).Generation()})
}

func (f *flows) refTo(r flowtable.Ref) store.Ref {
	return store.MakeRef(f.number, r.Generation, uint32(r.Index))
}

func (f *flows) answer(x flowtable.Index) Answer { return Answer(f.table.State(x).Answer()) }

// setAnswer gives a flow of this worker an answer, even if another worker changes it at the same time.
func (f *flows) setAnswer(x flowtable.Index, a Answer) {
	for !f.table.SetAnswer(x, f.table.State(x), flowtable.Answer(a)) {
	}
}

// noteAnswer notes the answer that a flow has at one of its packets. The memory of since stays untouched for flows whose answer is Unknown.
func (f *flows) noteAnswer(x flowtable.Index, a Answer, now int64) {
	f.tracks[x].known = known(a)
	if a.State() != Unknown {
		f.since[x] = now
	}
}

// tally counts a packet, and moves the high part of the track's counts to the total. The counts can't overflow before that: at least one
// packet in noHurry is observed, and so is each frame of longFrame bytes or more.
func (f *flows) tally(x flowtable.Index, bytes uint32) {
	t := &f.tracks[x]
	if bytes >= longFrame {
		f.total(x).bytes += uint64(bytes)
		bytes = 0
	}
	if t.count(bytes); (t.packets|t.bytes)&carried == 0 {
		return
	}
	sum := f.total(x)
	sum.packets += uint64(t.packets & carried)
	sum.bytes += uint64(t.bytes & carried)
	t.packets &^= carried
	t.bytes &^= carried
}

// total returns the flow's total, cleared first if it was an earlier flow's.
func (f *flows) total(x flowtable.Index) *total {
	sum, g := &f.totals[x], f.table.State(x).Generation()
	if sum.generation != g {
		*sum = total{generation: g}
	}
	return sum
}

// Traffic has a flow's counts.
type Traffic struct {
	Packets   uint64
	Bytes     uint64 // of frames without FCS
	Transport uint8  // opcode >> 5, IBTA 9.2.1
	Requests  bool   // the flow has sent a request
}

// OnlyAnswers reports whether a flow of a connection has sent ACKs and the like only: its frames are no longer than such, also in a tunnel.
func (t *Traffic) OnlyAnswers() bool {
	const longest, unreliableDatagram = 160, 3
	return !t.Requests && t.Transport != unreliableDatagram && t.Bytes <= longest*t.Packets
}

// Traffic returns a flow's counts.
func (f *flows) Traffic(x flowtable.Index) Traffic {
	t := &f.tracks[x]
	sum := Traffic{Packets: uint64(t.packets), Bytes: uint64(t.bytes), Transport: t.flags >> flagBits, Requests: t.flags&sends != 0}
	if high := &f.totals[x]; high.generation == f.table.State(x).Generation() {
		sum.Packets += high.packets
		sum.Bytes += high.bytes
	}
	return sum
}

// Bytes returns the bytes of a flow's frames, as Traffic does.
func (f *flows) Bytes(x flowtable.Index) uint64 {
	bytes := uint64(f.trackOf(x).bytes)
	if high := &f.totals[x]; high.generation == f.table.State(x).Generation() {
		bytes += high.bytes
	}
	return bytes
}

func (f *flows) trackOf(x flowtable.Index) *track {
	return (*track)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(f.tracks)), uint64(x)*uint64(unsafe.Sizeof(track{}))))
}

// LastRequest is the PSN of the flow's last request; ok is false before its first one, and after a READ until the next one, whose PSN is
// not known to be the highest that the flow has used.
func (f *flows) LastRequest(x flowtable.Index) (psn uint32, ok bool) {
	last := f.trackOf(x).last
	return last & packet.PSNMask, last&inexact == 0
}

// notes are a worker's own, by the slot of the flow: it needs no lock for them while another worker gives the slot away.
type notes []note

func (n notes) of(slot *store.Slot) *note { return &n[slot.InStore()] }

// note is the worker's state of a flow that has a slot: a cache line.
type note struct {
	first uint32 // first PSN of the requests, but at most maxSpan behind the highest
	top   uint32 // highest PSN of a request itself
	high  uint32 // highest PSN that requests may have used: beyond top if that request is a READ, which uses one PSN for each packet of its response
	began uint32 // when the flow's present connection began, in milliseconds modulo 2^32
	took  uint32 // packets up to the one that confirmed the source QP; all while it isn't confirmed

	lastUnexpected     uint32 // PSN of the last packet that was unexpected, with noteBit
	lastUnexpectedPort uint16 // and its UDP source port
	lease              uint16 // of the flow's slot
	// While the flow waits for a response: the PSN beyond which its peer flow must respond to its requests, and the PSN beyond which it
	// must respond to its peer flow's, with noteBit. Either one is enough. 0 where there are no such requests.
	awaitPeer, awaitOwn uint32
	// After a gap that may be forged: the highest PSN before it, with noteBit, and the number of PSNs by which requests have continued from
	// there.
	gap     uint32
	resumed uint16

	seenCM  uint16 // cm.Records.Added when a claim about the flow was last looked for
	peerAck uint32 // highest PSN of the peer flow's responses at the last silentFor, with noteBit
	width   uint32 // highest number of PSNs that were ever without a response
	moved   uint32 // number of the packet that last changed the UDP source port, with noteBit; 0: none

	skip      uint8 // responses to skip because recent ones added no evidence
	idle      uint8 // exponent of two of the pause between looks at responses
	responses uint8 // where the ring of PSNs continues that the last responses wait for
	_         [5]uint8
}

var _ [lineSize]byte = [unsafe.Sizeof(note{})]byte{}

const (
	noteBit    = store.NoteBit // in a word that has a PSN or the number of a packet, so that it isn't 0
	maxSpan    = 1 << 20       // PSNs behind the highest within which a flow may go back, or be acknowledged
	maxGap     = 64            // maximum step of a request beyond the highest PSN: the requests between were lost before the gateway
	firstSlack = store.FirstSlack
)

const (
	maxPace = 10 // at most 2^10 packets between two judgements of a flow
	maxIdle = 6  // at least one in 2^6 responses is processed
)

// restartPace makes the flow's judgement due with the current packet or the next one, and from then on as often as for a new flow.
func (t *track) restartPace() {
	t.pace = 1
	t.wait(0)
}

// faster makes the flow's judgement due with the current packet or the next one, and from then on twice as often as before.
func (t *track) faster() {
	t.pace = max(t.pace, 2) - 1
	t.wait(0)
}

// slower halves how often the flow is judged.
func (t *track) slower() {
	t.pace = min(t.pace+1, maxPace)
	t.wait(1<<t.pace - 1)
}

// readAll makes every response be processed.
func (n *note) readAll() { n.idle, n.skip = 0, 0 }

// readFewer skips twice as many responses as before. It is for flows that use the same PSNs at the same time: responses distinguish none of
// them.
func (n *note) readFewer() {
	n.idle = min(n.idle+1, maxIdle)
	n.skip = 1<<n.idle - 1
}

// awaits reports whether the flow waits for a response.
func (n *note) awaits() bool { return n.awaitPeer != 0 || n.awaitOwn != 0 }
