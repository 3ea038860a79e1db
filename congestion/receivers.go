package congestion

import (
	"cmp"
	"slices"
)

// Receiver is the name of a receiver of data packets, whose ACKs passive samples come from: a hash of its tenant's VLAN tags or tunnel in the
// upper 16 bits, and one of that and its address in the lower ones. Two with the same name count as one.
type Receiver uint32

// Tenant is the part for the tenant.
func (r Receiver) Tenant() uint16 { return uint16(r >> 16) }

// Trust is which passive samples count, since anyone who has a receiver can acknowledge too early or too late. The zero Trust: all of them.
type Trust struct {
	Least     int64 // a sample below it is refused, ns
	Receivers int   // that must agree on a value; up to 1: none
}

// agreeing is the number of receivers that must agree.
const agreeing = 3

// Trust returns the Trust for the configured RTT (ns, 0: unknown). Without the operator's lower bound, samples must be at least half of the
// configured RTT.
func (p *RTTPolicy) Trust(configured int64) Trust {
	t := Trust{Receivers: agreeing}
	if p.Min == 0 {
		t.Least = configured / 2
	}
	return t
}

// receivers are the latest receivers with passive samples. The zero receivers has none.
type receivers [16]struct {
	name  Receiver
	seen  int64 // time of its last sample, ns; 0: free
	least windowedMin
}

// find returns the samples of a receiver that has one at the time now (ns). A new one replaces that whose last sample is the oldest.
func (r *receivers) find(name Receiver, now int64) *windowedMin {
	at := 0
	for i := range r {
		if r[i].seen != 0 && r[i].name == name {
			at = i
			break
		}
		if r[i].seen < r[at].seen {
			at = i
		}
	}
	e := &r[at]
	if e.seen == 0 || e.name != name {
		e.name, e.least = name, windowedMin{}
	}
	e.seen = max(now, 1)
	return &e.least
}

// agreed returns the value on which enough receivers agree, false if they don't. Each one's minimum of the window counts. Receivers agree if
// the largest of their values is at most a quarter above the smallest; and if receivers of several tenants have values, those who agree must
// not all be of one. The value is the median of the smallest values that agree: while most of those receivers tell the truth, it is not
// below all of theirs. With enough up to 1, it is the smallest value.
func (r *receivers) agreed(window, now int64, enough int) (ns int64, ok bool) {
	var memory [len(r)]passiveValue
	values := r.sorted(memory[:0], window, now)
	several := severalTenants(values)
	for i := range values {
		if enough <= 1 {
			return values[i].ns, true
		}
		n := i
		for n < len(values) && values[n].ns <= values[i].ns+values[i].ns/4 {
			n++
		}
		if group := values[i:n]; len(group) >= enough && severalTenants(group) == several {
			return group[(len(group)-1)/2].ns, true
		}
	}
	return 0, false
}

// passiveValue is a receiver's minimum, ns.
type passiveValue struct {
	ns     int64
	tenant uint16
}

// sorted appends the receivers' values to an empty list, the smallest first.
func (r *receivers) sorted(values []passiveValue, window, now int64) []passiveValue {
	for i := range r {
		if least, ok := r[i].least.get(window, now); ok {
			values = append(values, passiveValue{least, r[i].name.Tenant()})
		}
	}
	slices.SortFunc(values, func(a, b passiveValue) int { return cmp.Compare(a.ns, b.ns) })
	return values
}

func severalTenants(values []passiveValue) bool {
	return slices.ContainsFunc(values, func(v passiveValue) bool { return v.tenant != values[0].tenant })
}
