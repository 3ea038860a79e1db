package pairing

import (
	"unsafe"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing/store"
)

const (
	psnMask    = store.PSNMask
	psnHalf    = 1 << 23
	coarse     = 16         // a flow publishes its highest PSN once in this many PSNs
	margin     = 2 * coarse // maximum distance of a response beyond the published highest PSN
	backMargin = 3 * coarse // maximum distance of an acknowledgement behind the highest one: they overtake each other
)

// track is the state that the worker reads and writes for each packet of a flow: half a cache line. Most packets give no new evidence about
// source QPs, and Routine needs only the track to see that. So packets are counted here, too.
type track struct {
	packets uint32 // packets and bytes that are not in the flow's total yet
	bytes   uint32
	known   uint32 // the flow's answer when a packet was last observed, with knownBit; 0 before the first
	last    uint32 // PSN of the last request; with inexact, see there
	acked   uint32 // highest PSN that a confirmed flow's responses are to, with ackedBit; 0: observe the next response
	slot    uint32 // the flow's slot, 0 for none
	port    uint16 // UDP source port
	due     uint16 // number of the packet, modulo 2^16, that must be observed
	flags   uint8  // and the transport service in bits 5-7
	pace    uint8  // exponent of two of the pause between judgements, or between attempts to get a slot
	_       [2]byte
}

var _ [flowtable.BesideSize]byte = [unsafe.Sizeof(track{})]byte{}

// Bits of track.flags.
const (
	sends      = 1 << iota // has sent a request
	unreliable             // UC: nothing is acknowledged
	sure                   // its source QP has been confirmed in this flow record
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

// tally counts a packet, and moves the high part of the track's counts to the total. The counts can't overflow before that: at least one
// packet in noHurry is observed, and so is each frame of longFrame bytes or more.
func (l *Learner) tally(x flowtable.Index, bytes uint32) {
	t := &l.tracks[x]
	if bytes >= longFrame {
		l.total(x).bytes += uint64(bytes)
		bytes = 0
	}
	if t.count(bytes); (t.packets|t.bytes)&carried == 0 {
		return
	}
	sum := l.total(x)
	sum.packets += uint64(t.packets & carried)
	sum.bytes += uint64(t.bytes & carried)
	t.packets &^= carried
	t.bytes &^= carried
}

// total returns the flow's total, cleared first if it was an earlier flow's.
func (l *Learner) total(x flowtable.Index) *total {
	sum, g := &l.totals[x], l.table.State(x).Generation()
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
}

// Traffic returns a flow's counts.
func (l *Learner) Traffic(x flowtable.Index) Traffic {
	t := &l.tracks[x]
	sum := Traffic{Packets: uint64(t.packets), Bytes: uint64(t.bytes), Transport: t.flags >> flagBits}
	if high := &l.totals[x]; high.generation == l.table.State(x).Generation() {
		sum.Packets += high.packets
		sum.Bytes += high.bytes
	}
	return sum
}

// Bytes returns the bytes of a flow's frames, as Traffic does.
func (l *Learner) Bytes(x flowtable.Index) uint64 {
	bytes := uint64(l.trackOf(x).bytes)
	if high := &l.totals[x]; high.generation == l.table.State(x).Generation() {
		bytes += high.bytes
	}
	return bytes
}

func (l *Learner) trackOf(x flowtable.Index) *track {
	return (*track)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(l.tracks)), uint64(x)*uint64(unsafe.Sizeof(track{}))))
}

// LastRequest is the PSN of the flow's last request; ok is false before its first one, and after a READ until the next one, whose PSN is not
// known to be the highest that the flow has used.
func (l *Learner) LastRequest(x flowtable.Index) (psn uint32, ok bool) {
	last := l.trackOf(x).last
	return last & psnMask, last&inexact == 0
}
