package sim

import (
	"encoding/binary"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/ring"
)

// none is the index of no frame.
const none = int32(-1)

// How much of a frame is stored: up to headBytes in the frame, which the headers of data, acknowledgements and CNPs fit in; longer ones, of
// other notifications and with an IOAM trace, separately. longBytes exceeds any of them. A frame fills two cache lines.
const (
	headBytes = 104
	longBytes = 320
)

// The classes of a switch's queues, in order of priority.
const (
	classControl = iota // MAC control of the link: PFC
	classHigh           // acknowledgements and notifications, by DSCP
	classData
	classes
)

// Constants shared by hosts and switches.
const (
	highDSCP     = 48 // CS6 (RFC 2474 4.2.2): packets with this or a higher DSCP are of classHigh
	DataPriority = 3  // of PFC, for classData
)

// frame is one frame in the network.
type frame struct {
	next   int32  // the frame behind it in a queue; none for the last
	in     int32  // the port that it entered its switch by
	length uint32 // on the wire, without FCS
	hash   uint32 // of its flow, for ECMP
	to     int32  // host
	head   uint16 // stored bytes; if more than headBytes, the first four of headers are the index in store.long
	class  uint8
	ect    bool // ECN-capable and not marked yet
	// headers are the frame's first bytes.
	headers [headBytes]byte
}

// block is the memory of some frames. Blocks don't move, so that growing costs no copy.
type block [blockFrames]frame

const blockFrames = 1 << 12

// store holds the frames in the network. It grows as needed, and reuses the last freed place first.
type store struct {
	blocks []*block
	places int // in blocks, that have been taken at least once
	long   [][longBytes]byte
	unused []int32 // free places in long
	free   int32   // the first free place
	most   int
	full   bool // there was no place for a frame
}

// take returns a free place, or none if the store is full.
func (s *store) take() int32 {
	f := s.free
	if f != none {
		s.free = s.at(f).next
		return f
	}
	if s.places >= s.most {
		s.full = true
		return none
	}
	if s.places == len(s.blocks)*blockFrames {
		s.blocks = append(s.blocks, new(block))
	}
	s.places++
	return int32(s.places - 1)
}

func (s *store) at(f int32) *frame {
	return &s.blocks[uint32(f)/blockFrames][uint32(f)%blockFrames]
}

func (s *store) release(i int32) {
	f := s.at(i)
	if f.head > headBytes {
		s.unused = append(s.unused, f.long())
	}
	f.next, s.free = s.free, i
}

// bytes are the headers of a frame.
func (s *store) bytes(i int32) []byte {
	f := s.at(i)
	if f.head > headBytes {
		return s.long[f.long()][:f.head]
	}
	return f.headers[:f.head]
}

// long is the place of a frame's headers in store.long.
func (f *frame) long() int32 { return int32(binary.NativeEndian.Uint32(f.headers[:])) }

// setHead stores the headers of a frame, at most longBytes of them.
func (s *store) setHead(f *frame, head []byte) {
	head = head[:min(len(head), longBytes)]
	f.head = uint16(len(head))
	if len(head) <= headBytes {
		copy(f.headers[:], head)
		return
	}
	place := int32(len(s.long))
	if n := len(s.unused); n > 0 {
		place, s.unused = s.unused[n-1], s.unused[:n-1]
	} else {
		s.long = append(s.long, [longBytes]byte{})
	}
	copy(s.long[place][:], head)
	binary.NativeEndian.PutUint32(f.headers[:], uint32(place))
}

// put stores a frame with these headers. It returns none if the store is full.
func (s *store) put(head []byte, length int) int32 {
	i := s.take()
	if i == none {
		return none
	}
	f := s.at(i)
	s.setHead(f, head)
	f.length = uint32(length)
	f.classify(head)
	return i
}

// Offsets in an IPv6 packet behind an untagged Ethernet header.
const (
	atEtherType = 12
	atIPv6      = packet.EthernetLen
	atNext      = atIPv6 + 6
	atSource    = atIPv6 + 8
	atDest      = atIPv6 + 24
	atL4        = atIPv6 + packet.IPv6Len
)

// nowhere is the destination of a frame to an address that no host has.
const nowhere = int32(-1)

// classify sets the fields by which switches forward. Frames are IPv6 or MAC control, untagged.
func (f *frame) classify(b []byte) {
	f.next, f.to, f.ect, f.hash, f.class = none, nowhere, false, 0, classControl
	if len(b) < atL4 || binary.BigEndian.Uint16(b[atEtherType:]) != packet.EtherTypeIPv6 {
		return
	}
	class := binary.BigEndian.Uint16(b[atIPv6:]) >> 4 & 0xff // DSCP and ECN
	f.class = classData
	if class>>2 >= highDSCP {
		f.class = classHigh
	}
	f.ect = class&3 == packet.ECT0 || class&3 == packet.ECT1
	source, dest := binary.BigEndian.Uint64(b[atSource+8:]), binary.BigEndian.Uint64(b[atDest+8:])
	if binary.BigEndian.Uint64(b[atDest:]) == hostNet {
		f.to = int32(dest - 1)
	}
	ports := uint64(0)
	if b[atNext] == packet.ProtoUDP && len(b) >= atL4+4 {
		ports = uint64(binary.BigEndian.Uint32(b[atL4:]))
	}
	f.hash = uint32(mixHash(source<<32^dest^ports<<8) >> 32)
}

// mixHash mixes the bits of a flow's addresses and ports (Fibonacci hashing, twice).
func mixHash(x uint64) uint64 {
	const golden = 0x9e3779b97f4a7c15
	x *= golden
	x ^= x >> 29
	return x * golden
}

// markCE sets Congestion Experienced (RFC 3168 5).
func (s *store) markCE(f int32) {
	s.bytes(f)[atIPv6+1] |= packet.CE << 4
	s.at(f).ect = false
}

// fifo is a queue of frames.
type fifo struct {
	first, last int32
	bytes       int64
}

func (q *fifo) empty() bool { return q.first == none }

func (q *fifo) push(s *store, f int32) {
	frame := s.at(f)
	frame.next = none
	if q.first == none {
		q.first = f
	} else {
		s.at(q.last).next = f
	}
	q.last = f
	q.bytes += int64(frame.length)
}

func (q *fifo) pop(s *store) int32 {
	f := q.first
	frame := s.at(f)
	q.first = frame.next
	q.bytes -= int64(frame.length)
	return f
}

// flight holds the frames on a link, in the order of their arrival at its far end.
type flight struct {
	frames ring.Ring[flying]
	bytes  int64
}

// flying is a frame on a link, and when it arrives, ns. The times are together, as the next one is needed when a frame arrives.
type flying struct {
	at     int64
	frame  int32
	length uint32
}
