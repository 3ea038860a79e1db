package dataplane

import (
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/fastpath"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// parse is the first stage: it writes a record of each packet, and finds special frames. It processes runs of plain frames together.
func (b *batch) parse() {
	rx := b.frames[:min(len(b.frames), burst.MaxSize)] // as it is: for the compiler, which then knows where i ends
	for i := 0; i < len(rx); i++ {
		run := fastpath.ParsePlain(b.memory.Base, rx[i:], uint64(b.port), b.records[i:])
		if run.N > 0 {
			b.parsedRun(i, &run)
			i += run.N
		}
		if i < len(rx) {
			b.inHand = uint8(i)
			b.parseOne(i)
			b.inHand = notInHand
		}
	}
}

// parsedRun adds a run of plain frames, which begins at place first. Most runs have one traffic class; otherwise the class of each packet
// counts.
func (b *batch) parsedRun(first int, run *fastpath.Run) {
	b.bytes += run.Bytes
	records := b.records[first : first+run.N]
	b.noteClass(first)
	if run.Any>>2 != run.All>>2 {
		for i := range records {
			b.noteClass(first + i)
		}
	}
	if run.Any&packet.CE == packet.CE {
		for i := range records {
			if records[i].ECN() == packet.CE {
				b.ce |= 1 << (first + i)
			}
		}
	}
}

// noteClass compares a packet's class with that of the batch's first one.
func (b *batch) noteClass(i int) {
	class := b.classAt(i)
	if i == 0 {
		b.class = class
	}
	if class != b.class {
		b.oneClass = false
	}
}

// parseOne parses a frame that isn't plain.
func (b *batch) parseOne(i int) {
	p, r := b.headers(i), &b.records[i]
	r.Set(p)
	b.bytes += uint64(p.Len)
	b.noteClass(i)
	roce := p.Kind == packet.RoCEv2
	if roce && p.ECN == packet.CE {
		b.ce |= 1 << i
	}
	if p.Encapsulated() {
		b.tunnel |= 1 << i
		b.special |= 1 << i // the domain filter doesn't read every tunnel
	}
	switch {
	case !roce || p.Opcode == packet.CNP:
		b.special |= 1 << i
		b.flowless |= 1 << i
	case p.IPv4Mapped():
		b.flowless |= 1 << i
	default:
		setKey(flowtable.KeyOf(r), b.port, p)
	}
}

// setKey writes a packet's flow key field by field: a whole Key would be built on the stack first, which costs more than the rest of this
// function.
func setKey(k *flowtable.Key, port int, p *packet.Parsed) {
	k.Src, k.Dst, k.DestQP, k.SourceQP = p.Src, p.Dst, p.DestQP, p.SourceQP
	k.SetScope(packet.ScopeOf(uint16(port), p))
}
