package pairing

import (
	"unsafe"

	"sync/atomic"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

const (
	psnMask    = 1<<24 - 1
	psnHalf    = 1 << 23
	coarse     = 16         // a flow publishes its highest PSN once in so many PSNs
	margin     = 2 * coarse // PSNs beyond the published highest one that a response may be to
	backMargin = 3 * coarse // PSNs that an acknowledgement may be behind the highest one: they overtake each other
)

// track is what the worker reads and writes for each packet of a flow: half a cache line. Most packets say nothing new about source QPs, and
// the track is all that Routine needs to see that. So packets are counted here, too.
type track struct {
	packets uint32 // packets and bytes that are not in the flow's total yet
	bytes   uint32
	known   uint32 // the flow's answer when a packet was last observed, with knownBit; 0 before the first
	last    uint32 // PSN of the last request; with unsettled, see there
	acked   uint32 // highest PSN that a confirmed flow's responses answered, with ackedBit; 0: observe the next response
	slot    uint32 // the flow's place, 0 for none
	port    uint16 // UDP source port
	due     uint16 // number of the packet, modulo 2^16, that is to be observed in any case
	flags   uint8  // and the transport service in bits 5-7
	pace    uint8  // exponent of two of the pause between judgements, or between attempts to get a place
	_       [2]byte
}

var _ [lineSize / 2]byte = [unsafe.Sizeof(track{})]byte{}

// Bits of track.flags.
const (
	sends      = 1 << iota // has sent a request
	unreliable             // UC: nothing is acknowledged
	sure                   // its source QP has been confirmed in this record
	flagBits   = 5
)

const (
	knownBit  = 1 << 31
	unsettled = 1 << 31 // in last: the flow has sent no request yet, or a READ has taken PSNs beyond this one
	ackedBit  = 1 << 31 // in acked
	noHurry   = 1 << 14 // at least one packet in so many is observed
	// carried is the part of packets or bytes that goes to the total at a time. On top of it noHurry packets of longFrame bytes fit into 32
	// bits.
	carried   = 1 << 31
	longFrame = 1 << 16
)

// known is what a track keeps of an answer. It equals the low half of the flow's state, which has its live bit where knownBit is.
func known(a Answer) uint32 { return uint32(a) | knownBit }

// total is what doesn't fit into a track. It is about the flow whose generation it has, so a flow that begins need not clear it, and the
// memory of small flows stays untouched.
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

// left is how many packets there are until one is due to be observed; 0 or less if the last one was, or one before it.
func (t *track) left() int16 { return int16(t.due - uint16(t.packets)) }

// wait makes the n-th packet from now on due; 0 is the one at hand.
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

// total is the flow's total; it is cleared first if it was an earlier flow's.
func (l *Learner) total(x flowtable.Index) *total {
	sum, g := &l.totals[x], l.table.State(x).Generation()
	if sum.generation != g {
		*sum = total{generation: g}
	}
	return sum
}

// Traffic is a flow's counts.
type Traffic struct {
	Packets   uint64
	Bytes     uint64 // of frames without FCS
	Transport uint8  // opcode >> 5, IBTA 9.2.1
}

// Traffic is what was counted of a flow.
func (l *Learner) Traffic(x flowtable.Index) Traffic {
	t := &l.tracks[x]
	sum := Traffic{Packets: uint64(t.packets), Bytes: uint64(t.bytes), Transport: t.flags >> flagBits}
	if high := &l.totals[x]; high.generation == l.table.State(x).Generation() {
		sum.Packets += high.packets
		sum.Bytes += high.bytes
	}
	return sum
}

// Touch reads a word of each flow's track, so that the tracks are on their way from memory when Routine needs them.
func (l *Learner) Touch(flows []flowtable.Index) {
	for _, x := range flows {
		atomic.LoadUint32(&l.trackOf(x).known)
	}
}

func (l *Learner) trackOf(x flowtable.Index) *track {
	return (*track)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(l.tracks)), uint64(x)*uint64(unsafe.Sizeof(track{}))))
}

const maxBurst = 64

// Routine goes over packets, beginning at number from. It counts those that say nothing new, which are most packets of confirmed flows, and
// stops at the first one that may say something. It returns that packet's number, or len(flows) if there is none. flows[k] is the flow of
// the packet parsed[of[k]], as Lookup has found it. The caller shows the packet to Observe before it calls Routine again.
//
// A request with the PSN of the last one says nothing new. If the flow is confirmed, nor does a request that is a few PSNs ahead of the last
// one, or a response that is near the highest one.
func (l *Learner) Routine(flows []flowtable.Index, of []uint8, parsed *[maxBurst]packet.Parsed, from int) int {
	of = of[:len(flows)]
	table, tracks := l.table, unsafe.Pointer(unsafe.SliceData(l.tracks))
	for n := from; n < len(flows); n++ {
		x, p := flows[n], &parsed[of[n]%maxBurst]
		t, s := (*track)(unsafe.Add(tracks, uint64(x)*uint64(unsafe.Sizeof(track{})))), uint32(table.State(x))
		if s != t.known || t.left() <= 1 || p.Len >= longFrame {
			return n
		}
		role, psn := p.Opcode.Role(), p.PSN
		if p.SrcPort != t.port && role != packet.NoRole {
			return n
		}
		switch role {
		case packet.Request:
			if psn == t.last {
				break
			}
			// Both in the same block of coarse PSNs; with unsettled in last they never are.
			if psn-t.last >= coarse || (psn^t.last) >= coarse || !Answer(s&^knownBit).Usable() {
				return n
			}
			t.last = psn
		case packet.Response:
			if t.acked&ackedBit == 0 || (psn-t.acked+backMargin+1)&psnMask > backMargin+coarse {
				return n
			}
		case packet.NoRole:
			if p.DestQP == packet.GSIQP {
				return n
			}
		default:
			return n
		}
		t.count(p.Len)
	}
	return len(flows)
}
