package frames

import (
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/fastpath"
	"github.com/cnpgate/cnpgate/internal/packet"
)

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
	if run.Any>>2 != run.All>>2 {
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
	p, r := b.Headers(i), &b.Records[i]
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
