// Package prefix finds the longest matching prefix of an address. A Table is made once and never changes, so any number of goroutines may
// use it; a lookup allocates nothing.
//
// IPv4 and IPv6 are separate: an IPv4 address matches only IPv4 prefixes, and IPv6 prefixes inside ::ffff:0:0/96, which are equivalent. So
// ::/0 matches every IPv6 address and no IPv4 one, although packet.Addr keeps IPv4 addresses in IPv4-mapped form (RFC 4291 2.5.5.2).
//
// The prefixes divide the address space into ranges with the same longest match. A Table has the beginnings of the ranges in order, and a
// lookup is a binary search without branches that depend on the address: 14 steps for 5,000 prefixes.
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
	v4, v6 ranges
	values []T
}

// ranges are the ranges of one family. They cover all of it: the first begins at the lowest address.
type ranges struct {
	starts []packet.Addr
	values []int32 // index of the value of the range that begins there, or none
}

const none = -1

// New builds a table. If a prefix is repeated, its last value counts. Invalid prefixes are skipped.
func New[T any](entries []Entry[T]) *Table[T] {
	t := &Table[T]{values: make([]T, len(entries))}
	var v4, v6 []span
	for i, e := range entries {
		t.values[i] = e.Value
		if !e.Prefix.IsValid() {
			continue
		}
		s := spanOf(e.Prefix, int32(i))
		if s.first.Is4() { // then the prefix has 96 bits or more: the first address of a shorter one has zeros there
			v4 = append(v4, s)
		} else {
			v6 = append(v6, s)
		}
	}
	t.v4, t.v6 = cut(v4), cut(v6)
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
	r := &t.v6
	if a.Is4() {
		r = &t.v4
	}
	i := r.values[r.find(a)]
	if i == none {
		return v, false
	}
	return t.values[i], true
}

// Range is a range of addresses with the same longest prefix, or none.
type Range struct{ first, last packet.Addr }

// Has reports whether a is in the range.
func (r *Range) Has(a packet.Addr) bool { return less(a, r.first)|less(r.last, a) == 0 }

// mapped is the range of IPv4 addresses, which is in the middle of the IPv6 ones and belongs to none of their prefixes.
var mapped = Range{packet.AddrFrom4([]byte{0, 0, 0, 0}), packet.AddrFrom4([]byte{255, 255, 255, 255})}

// Around returns the range of a: Lookup returns the same for all its addresses of the family. For a nil table it is the address alone.
func (t *Table[T]) Around(a packet.Addr) Range {
	if t == nil {
		return Range{a, a}
	}
	if a.Is4() {
		r := t.v4.around(a)
		return Range{higher(r.first, mapped.first), lower(r.last, mapped.last)}
	}
	r := t.v6.around(a)
	if less(a, mapped.first) == 1 {
		r.last = lower(r.last, before(mapped.first))
	} else {
		r.first = higher(r.first, after(mapped.last))
	}
	return r
}

func (r *ranges) around(a packet.Addr) Range {
	i := r.find(a)
	last := packet.Addr{Hi: ^uint64(0), Lo: ^uint64(0)}
	if i+1 < len(r.starts) {
		last = before(r.starts[i+1])
	}
	return Range{r.starts[i], last}
}

func higher(a, b packet.Addr) packet.Addr {
	if less(a, b) == 1 {
		return b
	}
	return a
}

func lower(a, b packet.Addr) packet.Addr {
	if less(a, b) == 1 {
		return a
	}
	return b
}

// before and after are the neighbours of an address that is neither the lowest nor the highest.
func before(a packet.Addr) packet.Addr {
	lo, borrow := bits.Sub64(a.Lo, 1, 0)
	return packet.Addr{Hi: a.Hi - borrow, Lo: lo}
}

func after(a packet.Addr) packet.Addr {
	lo, carry := bits.Add64(a.Lo, 1, 0)
	return packet.Addr{Hi: a.Hi + carry, Lo: lo}
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
func cut(spans []span) ranges {
	slices.SortStableFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.first.Hi, b.first.Hi), cmp.Compare(a.first.Lo, b.first.Lo), cmp.Compare(a.bits, b.bits))
	})
	var r ranges
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
	return r
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
