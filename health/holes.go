package health

import "github.com/cnpgate/cnpgate/internal/packet"

// holes are the PSNs below next that have not passed here.
type holes struct {
	list [16]hole
	n    int
	lost uint64 // packets of holes for which there was no room, and that count as lost
	old  old    // those of which nothing is known yet
}

// old are the packets of the oldest holes, for which there is no room one by one. If they are acknowledged and nothing there was sent again, they were not seen
// here, but never lost; otherwise they count as lost.
type old struct {
	from, to uint32 // PSNs
	n        uint64
	again    bool // something there was sent again
}

// add takes a hole in. Holes come in the order of their PSNs.
func (o *old) add(h hole) {
	if o.n == 0 {
		*o = old{from: h.psn}
	}
	o.to = (h.psn + h.n) & packet.PSNMask
	o.n += uint64(h.n)
}

// repeated notes a request whose PSN was passed before.
func (o *old) repeated(psn uint32) {
	if o.n > 0 && ahead(psn, o.from) >= 0 && ahead(psn, o.to) < 0 {
		o.again = true
	}
}

type hole struct {
	psn, n uint32
	at     int64 // when the packet after it passed
	asked  bool  // a NAK has asked for it
}

func (s *holes) add(psn, n uint32, now int64) {
	if s.n == len(s.list) {
		s.old.add(s.list[0])
		copy(s.list[:], s.list[1:])
		s.n--
	}
	s.list[s.n] = hole{psn: psn & packet.PSNMask, n: n, at: now}
	s.n++
}

// find is the number of the hole that has a PSN; -1: none has.
func (s *holes) find(psn uint32) int {
	for i := s.n - 1; i >= 0; i-- {
		if d := ahead(psn, s.list[i].psn); d >= 0 && uint32(d) < s.list[i].n {
			return i
		}
	}
	return -1
}

// fill takes a PSN out of hole i. If a hole breaks in two and there is no room, nothing is known of the lower part for now.
func (s *holes) fill(i int, psn uint32) {
	o := s.list[i]
	below := uint32(ahead(psn, o.psn))
	above := o.n - below - 1
	switch {
	case below == 0 && above == 0:
		copy(s.list[i:s.n], s.list[i+1:s.n])
		s.n--
	case below == 0:
		s.list[i].psn, s.list[i].n = (psn+1)&packet.PSNMask, above
	case above == 0:
		s.list[i].n = below
	case s.n < len(s.list):
		copy(s.list[i+1:s.n+1], s.list[i:s.n])
		s.n++
		s.list[i].n = below
		s.list[i+1].psn, s.list[i+1].n = (psn+1)&packet.PSNMask, above
	default:
		s.old.add(hole{psn: o.psn, n: below})
		s.list[i].psn, s.list[i].n = (psn+1)&packet.PSNMask, above
	}
}

// acknowledged ends holes below a PSN, and returns how many packets they had: they were never lost, but not seen here.
func (s *holes) acknowledged(below uint32) (n uint64) {
	kept := 0
	for _, o := range s.list[:s.n] {
		d := ahead(below, o.psn)
		if d >= int32(o.n) {
			n += uint64(o.n)
			continue
		}
		if d > 0 {
			n += uint64(d)
			o.psn, o.n = below, o.n-uint32(d)
		}
		s.list[kept] = o
		kept++
	}
	s.n = kept
	if o := &s.old; o.n > 0 && ahead(below, o.to) >= 0 {
		if o.again {
			s.lost += o.n
		} else {
			n += o.n
		}
		*o = old{}
	}
	return n
}

func (s *holes) missing() (n uint64) {
	for _, o := range s.list[:s.n] {
		n += uint64(o.n)
	}
	return n + s.lost + s.old.n
}
