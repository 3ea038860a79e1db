package dataplane

import (
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// mask is a set of frames of a batch: bit i is frame i.
type mask uint64

// first returns the mask of the first n frames.
func first(n int) mask { return 1<<n - 1 }

// notInHand is a place in a batch that isn't known.
const notInHand = burst.MaxSize

// batch has the frames that one port received in a burst, while they pass through the stages. Each stage reads what those before it wrote.
type batch struct {
	memory *burst.Batch // of the frames
	port   int
	frames []burst.Frame
	bytes  uint64 // of all frames
	inHand uint8  // place of the packet that a stage handles now, or notInHand

	whole    mask // parsed as a whole, not only into the record
	flowless mask // no packet of a flow
	ce       mask // RoCEv2 packets that arrived with CE
	special  mask // may be a notification or MAC control, or hide one: classify checks them
	tunnel   mask // packets in a tunnel
	gone     mask // consumed or dropped: the next stages skip them

	byFastCNP mask // packets that caused a Fast CNP: they are not marked

	classOf  *[64]uint8 // of the egress queue, by DSCP
	class    int        // the first frame's
	oneClass bool       // all frames' class

	// By place.
	records [burst.MaxSize]packet.Record
	flow    [burst.MaxSize]flowtable.Ref
	parsed  [burst.MaxSize]packet.Parsed // of the packets in whole, see headers
}

// begin begins the batch of the frames that a port has received, with the classes of the queue that they enter, by DSCP.
func (b *batch) begin(port int, rx []burst.Frame, classOf *[64]uint8) {
	b.port, b.frames, b.bytes, b.inHand, b.oneClass, b.classOf = port, rx, 0, notInHand, true, classOf
	b.whole, b.flowless, b.ce, b.special, b.tunnel, b.gone, b.byFastCNP = 0, 0, 0, 0, 0, 0, 0
}

// data is a frame's bytes.
func (b *batch) data(i int) []byte { return b.memory.Bytes(b.frames[i]) }

// classAt is a packet's class in the queue of its egress port.
func (b *batch) classAt(i int) int { return int(b.classOf[b.records[i].TOS>>2&63]) }

// toGroup reports whether a packet goes to a group's MAC address.
func (b *batch) toGroup(i int) bool { return b.data(i)[0]&1 != 0 }

// frame is a frame's bytes and headers. The frame is the one in hand from then on.
func (b *batch) frame(i int) ([]byte, *packet.Parsed) {
	b.inHand = uint8(i)
	return b.data(i), b.headers(i)
}

// headers are all headers of a frame. Those of a plain frame are parsed when they are first needed: most packets' never are.
func (b *batch) headers(i int) *packet.Parsed {
	p := &b.parsed[i]
	if b.whole>>i&1 == 0 {
		b.whole |= 1 << i
		packet.Parse(b.data(i), b.frames[i].Len, p)
	}
	return p
}
