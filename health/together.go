package health

import (
	"cmp"
	"maps"
	"slices"
)

// together are sums of connections of which none has a verdict: many short ones that each lose a packet add up. They are summed by pair of hosts; what
// isn't enough for a verdict of two hosts is summed by pair of prefixes.
type together struct {
	hosts    map[direction]*several
	prefixes map[prefixes]*several
}

// several are the sum of connections, in the direction of the first one.
type several struct {
	sum Connection
	of  []int
}

const (
	mostTogether = 1 << 10 // pairs of hosts, and of prefixes, that are summed: each takes as much memory as a connection
	rarest       = 1000    // of a sum, one packet in so many is no fault
)

// add adds a connection in which something is out of the ordinary.
func (t *together) add(c *Connection, number int) {
	if !c.unusual() {
		return
	}
	if t.hosts == nil {
		t.hosts, t.prefixes = map[direction]*several{}, map[prefixes]*several{}
	}
	key := direction{c.End[0].Addr, c.End[1].Addr, c.Scope.Tenant()}
	turned := 0
	if back := (direction{key.to, key.from, key.scope}); t.hosts[back] != nil {
		key, turned = back, 1
	}
	s := t.hosts[key]
	if s == nil {
		if len(t.hosts) == mostTogether {
			return
		}
		s = &several{}
		t.hosts[key] = s
	}
	s.add(c, turned, number)
}

// unusual reports whether something was sent again, lost, late, marked or notified, or one direction is missing.
func (c *Connection) unusual() bool {
	_, oneSided := c.direction()
	for i := range c.Half {
		h, r := &c.Half[i], &c.Reaction[i]
		if h.Retransmissions().Packets+h.RNRNAKs+h.NAKs[0]+h.LostUpstream+h.LostDownstream+h.AcksLost+h.NotCaptured+h.DroppedHere[0]+h.DroppedHere[1]+h.Duplicates+h.OutOfOrder+r.CE+r.CNPs > 0 {
			return true
		}
	}
	return oneSided
}

// add adds a connection; turned: 1 if its end 0 is end 1 of the sum.
func (s *several) add(c *Connection, turned int, of ...int) {
	o := &s.sum
	if len(s.of) == 0 {
		o.Ends, o.Service, o.Paired, o.First = c.Ends, c.Service, true, c.First
	}
	s.of = append(s.of, of...)
	o.Paired = o.Paired && c.Paired
	o.First, o.Last = min(o.First, c.First), max(o.Last, c.Last)
	for i := range o.Half {
		o.Half[i].merge(&c.Half[i^turned])
		o.Reaction[i].merge(&c.Reaction[i^turned])
	}
}

// verdicts are those of the sums.
func (t *together) verdicts() (all []Verdict) {
	for _, s := range inOrder(t.hosts) {
		found := s.verdicts()
		if all = append(all, found...); len(found) > 0 {
			continue
		}
		key := prefixes{prefixOf(s.sum.End[0].Addr.Netip()), prefixOf(s.sum.End[1].Addr.Netip())}
		turned := 0
		if back := (prefixes{key.to, key.from}); t.prefixes[back] != nil {
			key, turned = back, 1
		}
		p := t.prefixes[key]
		if p == nil {
			p = &several{}
			t.prefixes[key] = p
		}
		p.add(&s.sum, turned, s.of...)
	}
	for _, p := range inOrder(t.prefixes) {
		for _, v := range p.verdicts() {
			v.Subject = prefixes{prefixOf(v.from), prefixOf(v.to)}.String()
			all = append(all, v)
		}
	}
	return all
}

// inOrder are sums in the order of their first connections.
func inOrder[K comparable](m map[K]*several) []*several {
	return slices.SortedFunc(maps.Values(m), func(a, b *several) int { return cmp.Compare(a.of[0], b.of[0]) })
}

// verdicts are those of a sum of more than one connection, of what isn't rare in it.
func (s *several) verdicts() (all []Verdict) {
	if len(s.of) < 2 {
		return nil
	}
	packets := uint64(0)
	for i := range s.sum.Half {
		packets += s.sum.Half[i].Requests.Packets + s.sum.Half[i].Responses.Packets
	}
	for i := range s.sum.Half {
		for _, v := range s.sum.judge(i) {
			if v.Weight*rarest >= packets {
				v.Connections, v.of = len(s.of), s.of
				all = append(all, v)
			}
		}
	}
	return all
}

// merge adds what another requester did.
func (h *Half) merge(o *Half) {
	h.Add(&o.Counts)
	h.flags |= o.flags & (started | oneWay | answered | blind | noRead | noOther | midway)
	h.Lead = max(h.Lead, o.Lead)
	if o.Begun != 0 && (h.Begun == 0 || o.Begun < h.Begun) {
		h.Begun = o.Begun
	}
	h.Ended = max(h.Ended, o.Ended)
	for _, p := range [...][2]*span{
		{&h.Interval, &o.Interval}, {&h.clean, &o.clean}, {&h.turn, &o.turn}, {&h.idle, &o.idle}, {&h.soon, &o.soon}, {&h.spacing, &o.spacing},
		{&h.doubts.elapsed, &o.doubts.elapsed},
	} {
		p[0].merge(*p[1])
	}
	h.doubts.rounds += o.doubts.rounds
	h.doubts.packets += o.doubts.packets
}

// merge adds how another sender reacted.
func (r *Reaction) merge(o *Reaction) {
	r.CNPs += o.CNPs
	r.Packets += o.Packets
	if r.CE == 0 || o.CE > 0 && o.FirstCE < r.FirstCE {
		r.FirstCE = o.FirstCE
	}
	r.CE += o.CE
	r.Ignored += o.Ignored
	r.Episodes += o.Episodes
	r.Obeyed += o.Obeyed
}
