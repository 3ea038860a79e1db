package synth

import (
	"math"
	"math/bits"
)

// kind is a message's operation.
type kind uint8

// Kinds, in the order of Mix.
const (
	send kind = iota
	sendImm
	write
	writeImm
	read
	atomic
	kinds
)

// answered tells whether the message is done only when its own response has come.
func (k kind) answered() bool { return k == read || k == atomic }

// message is a posted work request, until it is acknowledged.
type message struct {
	first  uint32 // PSN; here, PSNs count on beyond 24 bits
	n      uint32 // PSNs it takes
	octets uint32
	number uint32 // of the requester, from 0
	kind   kind
}

// window is how many messages a requester may have outstanding.
const window = 16

// newMessage draws what a requester sends next.
func (t *Traffic) newMessage(l *live, s *requester) message {
	r := &l.rng
	var common rng
	if t.c.Schedule == Lockstep { // the same for all
		common = rng(mix(t.c.Seed ^ uint64(s.posted)<<8))
		r = &common
	}
	m := message{first: s.end, number: uint32(s.posted), kind: t.drawKind(l.kind, r), octets: t.drawSize(r)}
	switch {
	case m.kind == atomic:
		m.octets = 8
	case l.kind == UD:
		m.octets = min(m.octets, uint32(t.c.MTU))
	}
	m.n = 1
	if m.kind != atomic {
		m.n = max(1, (m.octets+uint32(t.c.MTU)-1)/uint32(t.c.MTU))
	}
	return m
}

func (t *Traffic) drawKind(tr Transport, r *rng) kind {
	m := t.c.Mix
	k := kind(r.weighted([]int{m.Send, m.SendImm, m.Write, m.WriteImm, m.Read, m.Atomic}))
	switch {
	case tr == UD && k != sendImm:
		return send
	case tr == UC && k.answered():
		return write
	}
	return k
}

// drawSize draws octets such that each power of two is as likely as the next.
func (t *Traffic) drawSize(r *rng) uint32 {
	lo, hi := uint64(t.c.Sizes[0]), uint64(t.c.Sizes[1])
	if lo == hi {
		return uint32(lo)
	}
	least, most := bits.Len64(lo), bits.Len64(hi)
	n := least + int(r.below(uint64(most-least+1)))
	from, to := max(lo, 1<<n>>1), min(hi, 1<<n-1)
	return uint32(from + r.below(to-from+1))
}

// nextDue tells when a requester posts the message after the present one.
func (t *Traffic) nextDue(l *live, due int64) int64 {
	period := float64(t.c.Period) * l.speed
	if t.c.Schedule == Free { // exponential intervals
		period *= -math.Log(float64(l.rng.below(1<<32)+1) / (1 << 32))
	}
	return due + int64(period)
}

// opcodeOf gives the operation of a packet, the same in all transport services but for their three high bits (IBTA table 38).
func (k kind) opcode(offset, n uint32) uint8 {
	const imm = 1
	last := offset+1 == n
	switch k {
	case read:
		return 0x0c
	case atomic:
		return 0x14
	}
	base := uint8(0x00)
	if k == write || k == writeImm {
		base = 0x06
	}
	switch {
	case n == 1:
		base += 4
	case offset == 0:
		return base
	case !last:
		return base + 1
	default:
		base += 2
	}
	if k == sendImm || k == writeImm {
		base += imm
	}
	return base
}

// readResponse gives the operation of a READ response's packet.
func readResponse(offset, n uint32) uint8 {
	switch {
	case n == 1:
		return 0x10
	case offset == 0:
		return 0x0d
	case offset+1 == n:
		return 0x0f
	}
	return 0x0e
}

// highBits are the transport service's in an opcode.
var highBits = [...]uint8{RC: 0x00, UC: 0x20, UD: 0x60, XRC: 0xa0}
