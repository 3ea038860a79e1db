// Package frames has the frames of one burst, while they pass through the stages of a worker: what each stage has found out about them, and
// masks that say which of them it is about.
package frames

import (
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/fastpath"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// Mask is a set of frames of a batch: bit i is frame i.
type Mask uint64

// First returns the mask of the first n frames.
func First(n int) Mask { return 1<<n - 1 }

// NotInHand is a place in a batch that isn't known.
const NotInHand = burst.MaxSize

// Batch has the frames that one port received in a burst, while they pass through the stages. Each stage reads what those before it wrote.
type Batch struct {
	Memory *burst.Batch // of the frames
	Port   int
	Frames []burst.Frame
	Bytes  uint64 // of all frames
	InHand uint8  // place of the packet that a stage handles now, or notInHand

	Whole    Mask // parsed as a whole, not only into the record
	Flowless Mask // no packet of a flow
	CE       Mask // RoCEv2 packets that arrived with CE
	Special  Mask // may be a notification or MAC control, or hide one: classify checks them
	Tunnel   Mask // packets in a tunnel
	Gone     Mask // consumed or dropped: the next stages skip them

	ByFastCNP Mask // packets that caused a Fast CNP: they are not marked

	classOf  *[64]uint8 // of the egress queue, by DSCP
	classes  int        // of the egress queue
	Class    int        // the first frame's
	OneClass bool       // all frames' class

	// By place.
	Records [burst.MaxSize]packet.Record
	Flow    [burst.MaxSize]flowtable.Ref
	parsed  [burst.MaxSize]packet.Parsed // of the packets in whole, see headers
}

// Begin begins the batch of the frames that a port has received, with the number of classes of the queue that they enter, and the class of each DSCP.
func (b *Batch) Begin(port int, rx []burst.Frame, classes int, classOf *[64]uint8) {
	b.Port, b.Frames, b.Bytes, b.InHand, b.OneClass, b.classes, b.classOf = port, rx, 0, NotInHand, true, classes, classOf
	b.Whole, b.Flowless, b.CE, b.Special, b.Tunnel, b.Gone, b.ByFastCNP = 0, 0, 0, 0, 0, 0, 0
}

// Data is a frame's bytes.
func (b *Batch) Data(i int) []byte { return b.Memory.Bytes(b.Frames[i]) }

// ClassAt is a packet's class in the queue of its egress port.
func (b *Batch) ClassAt(i int) int { return int(b.classOf[b.Records[i].TOS>>2&63]) }

// ToGroup reports whether a packet goes to a group's MAC address.
func (b *Batch) ToGroup(i int) bool { return b.Data(i)[0]&1 != 0 }

// Frame is a frame's bytes and headers. The frame is the one in hand from then on.
func (b *Batch) Frame(i int) ([]byte, *packet.Parsed) {
	b.InHand = uint8(i)
	return b.Data(i), b.Headers(i)
}

// Headers are all headers of a frame, as they were when it arrived. Those of a plain frame are made from its record when they are first needed: most
// packets' never are.
func (b *Batch) Headers(i int) *packet.Parsed {
	p := &b.parsed[i]
	if b.Whole>>i&1 == 0 {
		b.Whole |= 1 << i
		p.SetPlain(b.Data(i), &b.Records[i])
	}
	return p
}

// Parse is the first stage: it writes a record of each packet, and finds special frames. It processes runs of plain frames together.
func (b *Batch) Parse() {
	rx := b.Frames[:min(len(b.Frames), burst.MaxSize)] // as it is: for the compiler, which then knows where i ends
	for i := 0; i < len(rx); i++ {
		run := fastpath.ParsePlain(b.Memory.Base, rx[i:], uint64(b.Port), b.Records[i:])
		if run.N > 0 {
			b.parsedRun(i, &run)
			i += run.N
		}
		if i < len(rx) {
			b.InHand = uint8(i)
			b.parseOne(i)
			b.InHand = NotInHand
		}
	}
}

// parsedRun adds a run of plain frames, which begins at place first. Most runs have one traffic class; otherwise the class of each packet
// counts.
func (b *Batch) parsedRun(first int, run *fastpath.Run) {
	b.Bytes += run.Bytes
	records := b.Records[first : first+run.N]
	b.noteClass(first)
	if b.classes > 1 && run.Any>>2 != run.All>>2 {
		for i := range records {
			b.noteClass(first + i)
		}
	}
	if run.Any&packet.CE == packet.CE {
		for i := range records {
			if records[i].ECN() == packet.CE {
				b.CE |= 1 << (first + i)
			}
		}
	}
	if run.Opcodes&uint8(packet.CNP) == uint8(packet.CNP) {
		for i := range records {
			if records[i].Opcode == packet.CNP {
				b.parsedCNP(first + i)
			}
		}
	}
}

// parsedCNP notes that a plain frame is a CNP, which belongs to no flow.
func (b *Batch) parsedCNP(i int) {
	b.Headers(i)
	b.Records[i].Flow = packet.NoFlow
	b.Special |= 1 << i
	b.Flowless |= 1 << i
}

// noteClass compares a packet's class with that of the batch's first one.
func (b *Batch) noteClass(i int) {
	class := b.ClassAt(i)
	if i == 0 {
		b.Class = class
	}
	if class != b.Class {
		b.OneClass = false
	}
}

// parseOne parses a frame that isn't plain.
func (b *Batch) parseOne(i int) {
	p, r := &b.parsed[i], &b.Records[i]
	b.Whole |= 1 << i
	packet.Parse(b.Data(i), b.Frames[i].Len, p)
	r.Set(p)
	b.Bytes += uint64(p.Len)
	b.noteClass(i)
	roce := p.Kind == packet.RoCEv2
	if roce && p.ECN == packet.CE {
		b.CE |= 1 << i
	}
	if p.Encapsulated() {
		b.Tunnel |= 1 << i
		b.Special |= 1 << i // the domain filter doesn't read every tunnel
	}
	switch {
	case !roce || p.Opcode == packet.CNP:
		b.Special |= 1 << i
		b.Flowless |= 1 << i
	case p.IPv4Mapped():
		b.Flowless |= 1 << i
	default:
		SetKey(flowtable.KeyOf(r), b.Port, p)
	}
}

// SetKey writes a packet's flow key field by field: a whole Key would be built on the stack first, which costs more than the rest of this
// function.
func SetKey(k *flowtable.Key, port int, p *packet.Parsed) {
	k.Src, k.Dst, k.DestQP, k.SourceQP = p.Src, p.Dst, p.DestQP, p.SourceQP
	k.SetScope(packet.ScopeOf(uint16(port), p))
}
