package dataplane

import (
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// mask is a set of frames of a batch: bit i is frame i.
type mask uint64

// first returns the mask of the first n frames.
func first(n int) mask { return 1<<n - 1 }

// batch has the frames that one port received in a burst, while they pass through the stages. The records, flow and parsed of common belong to it.
type batch struct {
	port   int
	frames []burst.Frame
	bytes  uint64 // of all frames

	whole    mask // parsed as a whole, not only into the record
	flowless mask // no packet of a flow
	ce       mask // RoCEv2 packets that arrived with CE
	special  mask // may be a notification or MAC control, or hide one: classify checks them
	tunnel   mask // packets in a tunnel
	gone     mask // consumed or dropped: the next stages skip them

	byFastCNP mask // packets that caused a Fast CNP: they are not marked

	class    int  // the first frame's
	oneClass bool // all frames' class
}

// frame is a frame's bytes and headers. The frame is the one in hand from then on.
func (c *common) frame(b *batch, i int) ([]byte, *packet.Parsed) {
	c.inHand = uint8(i)
	return c.batch.Bytes(b.frames[i]), c.headers(b, i)
}

// headers are all headers of a frame. Those of a plain frame are parsed when they are first needed: most packets' never are.
func (c *common) headers(b *batch, i int) *packet.Parsed {
	p := &c.parsed[i]
	if b.whole>>i&1 == 0 {
		b.whole |= 1 << i
		f := b.frames[i]
		packet.Parse(c.batch.Bytes(f), f.Len, p)
	}
	return p
}

// classOf returns a packet's class in the queue of its egress port.
func (c *common) classOf(port int, p *packet.Record) int {
	return int(c.policy.Ports[c.ports[port].Peer].Queue.ClassOf[p.TOS>>2])
}
