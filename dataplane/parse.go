package dataplane

import (
	"unsafe"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// ecnCE is the codepoint Congestion Experienced (RFC 3168 5).
const ecnCE = 3

// parse is the first stage: it reads headers and flow keys, and finds special frames. It processes runs of plain frames together.
func (w *Worker) parse(port int, rx []burst.Frame) (b batch) {
	b.port, b.oneClass = port, true
	w.touched = packet.Touch(w.batch.Base, rx)
	keys := (*[burst.MaxSize]packet.FlowWords)(unsafe.Pointer(&w.keys))
	rx = rx[:min(len(rx), burst.MaxSize)] // as it is: for the compiler, which then knows where i ends
	b.frames = rx
	for i := 0; i < len(rx); i++ {
		run := packet.ParsePlain(w.batch.Base, rx[i:], uint64(port), w.parsed[i:], keys[b.keys:])
		if run.N > 0 {
			w.parsedRun(&b, i, &run)
			i += run.N
		}
		if i < len(rx) {
			w.inHand = uint8(i)
			w.parseOne(&b, i)
			w.inHand = notInHand
		}
	}
	return b
}

// parsedRun adds a run of plain frames, which begins at place first. Most runs have one traffic class; otherwise the class of each packet
// counts.
func (w *Worker) parsedRun(b *batch, first int, run *packet.Run) {
	b.bytes += run.Octets
	b.keys += run.N
	parsed := w.parsed[first : first+run.N]
	w.noteClass(b, first, &parsed[0])
	if run.Any>>2 != run.All>>2 {
		for i := range parsed {
			w.noteClass(b, first+i, &parsed[i])
		}
	}
	if run.Any&ecnCE == ecnCE {
		for i := range parsed {
			if parsed[i].ECN == ecnCE {
				b.ce |= 1 << (first + i)
			}
		}
	}
}

// noteClass compares a packet's class with that of the batch's first one.
func (w *Worker) noteClass(b *batch, i int, p *packet.Parsed) {
	class := w.classOf(b.port, p)
	if i == 0 {
		b.class = class
	}
	if class != b.class {
		b.oneClass = false
	}
}

// parseOne parses a frame that isn't plain.
func (w *Worker) parseOne(b *batch, i int) {
	f, p := b.frames[i], &w.parsed[i]
	packet.Parse(w.batch.Bytes(f), f.Len, p)
	b.bytes += uint64(f.Len)
	w.noteClass(b, i, p)
	roce := p.Kind == packet.RoCEv2
	if roce && p.ECN == ecnCE {
		b.ce |= 1 << i
	}
	if p.Encapsulated() {
		b.tunnel |= 1 << i
		b.special |= 1 << i // the domain filter doesn't read every tunnel
	}
	if !roce || p.Opcode == packet.CNP {
		b.special |= 1 << i
		b.flowless |= 1 << i
		return
	}
	if impostor(p) {
		b.flowless |= 1 << i
		return
	}
	setKey(&w.keys[b.keys], b.port, p)
	b.keys++
}

// impostor reports whether an IPv6 packet has an IPv4-mapped address, which no packet may have on the wire (RFC 4038 4.2): its flow would
// be confused with the IPv4 flow of the same addresses.
func impostor(p *packet.Parsed) bool { return p.Family == 6 && (p.Src.Is4() || p.Dst.Is4()) }

// ParsePlain writes keys as they lie in memory.
var _ [unsafe.Sizeof(flowtable.Key{})]byte = [unsafe.Sizeof(packet.FlowWords{})]byte{}

// setKey writes a packet's flow key field by field: a whole Key would be built on the stack first, which costs more than the rest of this
// function.
func setKey(k *flowtable.Key, port int, p *packet.Parsed) {
	k.Src, k.Dst, k.DestQP, k.SourceQP = p.Src, p.Dst, p.DestQP, p.SourceQP
	k.SetPlace(uint16(port), p)
}
