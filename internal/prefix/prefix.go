// Package prefix finds the longest matching prefix of an address. A Table is made once and never changes, so any number of goroutines may
// use it; a lookup allocates nothing.
//
// IPv4 and IPv6 are separate: an IPv4 address matches only IPv4 prefixes, and IPv6 prefixes inside ::ffff:0:0/96, which are equivalent. So
// ::/0 matches every IPv6 address and no IPv4 one, although packet.Addr keeps IPv4 addresses in IPv4-mapped form (RFC 4291 2.5.5.2).
//
// The prefixes divide the address space into ranges with the same longest match; so does ::ffff:0:0/96, where without a longer prefix there is no match.
// A Table has the beginnings of the ranges in order, and a lookup is a binary search without branches that depend on the address: 14 steps for 5,000 prefixes.
package prefix

import (
	"cmp"
	"math/bits"
	"net/netip"
	"slices"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// Entry is a prefix and its value. Address bits after the prefix length don't count.
type Entry[T any] struct {
	Prefix netip.Prefix
	Value  T
}

// Table maps addresses to the values of their longest prefixes. A nil one matches nothing.
type Table[T any] struct {
	ranges
	of []T
}

// ranges cover all addresses: the first begins at the lowest one.
type ranges struct {
	starts []packet.Addr
	values []int32 // index of the value of the range that begins there, or none
}

const none = -1

// New builds a table. If a prefix is repeated, its last value counts. Invalid prefixes are skipped.
func New[T any](entries []Entry[T]) *Table[T] {
	t := &Table[T]{of: make([]T, len(entries))}
	spans := []span{spanOf(netip.PrefixFrom(netip.IPv4Unspecified(), 0), none)}
	for i, e := range entries {
		if t.of[i] = e.Value; e.Prefix.IsValid() {
			spans = append(spans, spanOf(e.Prefix, int32(i)))
		}
	}
	t.cut(spans)
	return t
}

// Set is a table of prefixes without values.
func Set(prefixes []netip.Prefix) *Table[struct{}] {
	entries := make([]Entry[struct{}], len(prefixes))
	for i, p := range prefixes {
		entries[i].Prefix = p
	}
	return New(entries)
}

// Lookup returns the value of the longest matching prefix of a, and whether there is one.
func (t *Table[T]) Lookup(a packet.Addr) (v T, ok bool) {
	if t == nil {
		return v, false
	}
	i := t.values[t.find(a)]
	if i == none {
		return v, false
	}
	return t.of[i], true
}

// Range is a range of addresses with the same longest prefix, or none.
type Range struct{ first, last packet.Addr }

// Has reports whether a is in the range.
func (r *Range) Has(a packet.Addr) bool { return less(a, r.first)|less(r.last, a) == 0 }

// Around returns the range of a: Lookup returns the same for all its addresses. For a nil table it is the address alone.
func (t *Table[T]) Around(a packet.Addr) Range {
	if t == nil {
		return Range{a, a}
	}
	i, last := t.find(a), packet.Addr{Hi: ^uint64(0), Lo: ^uint64(0)}
	if i+1 < len(t.starts) {
		next := t.starts[i+1]
		lo, borrow := bits.Sub64(next.Lo, 1, 0)
		last = packet.Addr{Hi: next.Hi - borrow, Lo: lo}
	}
	return Range{t.starts[i], last}
}

// find returns the index of a's range.
func (r *ranges) find(a packet.Addr) int {
	i := 0
	for n := len(r.starts); n > 1; {
		half := n / 2
		i += half &^ -less(a, r.starts[i+half])
		n -= half
	}
	return i
}

// less is 1 if a is below b, otherwise 0.
func less(a, b packet.Addr) int {
	_, borrow := bits.Sub64(a.Lo, b.Lo, 0)
	_, borrow = bits.Sub64(a.Hi, b.Hi, borrow)
	return int(borrow)
}

// span is a prefix as a range of 128-bit addresses.
type span struct {
	first, last packet.Addr
	bits        int // prefix length of 128
	value       int32
}

func spanOf(p netip.Prefix, value int32) span {
	n := p.Bits()
	if p.Addr().Is4() {
		n += 96
	}
	a := packet.AddrFrom(p.Addr())
	hi, lo := ^uint64(0)>>min(n, 64), ^uint64(0)>>max(n-64, 0) // the bits behind the prefix; a shift by 64 gives 0
	return span{packet.Addr{Hi: a.Hi &^ hi, Lo: a.Lo &^ lo}, packet.Addr{Hi: a.Hi | hi, Lo: a.Lo | lo}, n, value}
}

// cut makes the ranges. Prefixes are nested or disjoint. So in the order of their first addresses, shorter ones first, a stack holds the
// prefixes around the current position.
func (r *ranges) cut(spans []span) {
	slices.SortStableFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.first.Hi, b.first.Hi), cmp.Compare(a.first.Lo, b.first.Lo), cmp.Compare(a.bits, b.bits))
	})
	r.begin(packet.Addr{}, none)
	var stack []span
	for _, s := range spans {
		stack = r.leave(stack, s.first)
		r.begin(s.first, s.value)
		stack = append(stack, s)
	}
	for len(stack) > 0 {
		stack = r.pop(stack)
	}
}

// leave pops the prefixes that end before a.
func (r *ranges) leave(stack []span, a packet.Addr) []span {
	for len(stack) > 0 && less(stack[len(stack)-1].last, a) == 1 {
		stack = r.pop(stack)
	}
	return stack
}

// pop ends the innermost prefix; the next range belongs to the one around it.
func (r *ranges) pop(stack []span) []span {
	top := stack[len(stack)-1]
	stack = stack[:len(stack)-1]
	around := int32(none)
	if len(stack) > 0 {
		around = stack[len(stack)-1].value
	}
	lo, carry := bits.Add64(top.last.Lo, 1, 0)
	hi, carry := bits.Add64(top.last.Hi, 0, carry)
	if carry == 0 { // otherwise it ends with the last address
		r.begin(packet.Addr{Hi: hi, Lo: lo}, around)
	}
	return stack
}

// begin starts a range, in place of one that starts at the same address.
func (r *ranges) begin(a packet.Addr, value int32) {
	if n := len(r.starts); n > 0 && r.starts[n-1] == a {
		r.values[n-1] = value
		return
	}
	r.starts = append(r.starts, a)
	r.values = append(r.values, value)
}
