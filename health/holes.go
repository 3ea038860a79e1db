package health

import "github.com/cnpgate/cnpgate/internal/packet"

// holes are the PSNs below next that have not passed here.
type holes struct {
	list [16]hole
	n    int
	// Packets of holes that didn't fit, and the PSN after the last one. Whether they were lost can be said only once they are acknowledged or
	// sent again.
	more uint64
	end  uint32
}

type hole struct {
	psn, n uint32
	at     int64 // when the packet after it passed
	start  bool  // it may have passed before the first packet that was followed
}

func (s *holes) add(psn, n uint32, now int64, start bool) {
	if s.n == len(s.list) {
		s.forget(s.list[0])
		copy(s.list[:], s.list[1:])
		s.n--
	}
	s.list[s.n] = hole{psn: psn & packet.PSNMask, n: n, at: now, start: start}
	s.n++
}

// forget keeps only the number of a hole's packets.
func (s *holes) forget(o hole) {
	s.more, s.end = s.more+uint64(o.n), (o.psn+o.n)&packet.PSNMask
}

// forgotten takes a packet of a hole that was forgotten, if there may be one with this PSN.
func (s *holes) forgotten(psn uint32) bool {
	if s.more == 0 || ahead(psn, s.end) >= 0 {
		return false
	}
	s.more--
	return true
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

// comes takes a request of so many PSNs whose first one was passed, and reports whether that was missing until now, and since when; 0: it isn't known.
func (s *holes) comes(psn, psns uint32, r *recent) (missing bool, since int64) {
	if i := s.find(psn); i >= 0 {
		since = s.list[i].at
		s.fill(i, psn, psns)
		return true, since
	}
	return r.find(psn) == nil && s.forgotten(psn), 0
}

// has reports whether a PSN is missing. One that is among the latest requests isn't.
func (s *holes) has(psn uint32, r *recent) bool {
	return s.find(psn) >= 0 || s.more > 0 && ahead(psn, s.end) < 0 && r.find(psn) == nil
}

// between reports whether a PSN from one on is missing, before another.
func (s *holes) between(from, to uint32) bool {
	for _, o := range s.list[:s.n] {
		if ahead(o.psn+o.n, from) > 0 && ahead(o.psn, to) < 0 {
			return true
		}
	}
	return false
}

// fill takes PSNs from one on out of hole i, as far as they are in it. If a hole breaks in two and the list is full, the lower part counts as lost.
func (s *holes) fill(i int, psn, psns uint32) {
	if i == s.n { // it was forgotten
		return
	}
	o := s.list[i]
	below := uint32(ahead(psn, o.psn))
	psns = min(psns, o.n-below)
	above, end := o.n-below-psns, (psn+psns)&packet.PSNMask
	switch {
	case below == 0 && above == 0:
		copy(s.list[i:s.n], s.list[i+1:s.n])
		s.n--
	case below == 0:
		s.list[i].psn, s.list[i].n = end, above
	case above == 0:
		s.list[i].n = below
	case s.n < len(s.list):
		copy(s.list[i+1:s.n+1], s.list[i:s.n])
		s.n++
		s.list[i].n = below
		s.list[i+1].psn, s.list[i+1].n = end, above
	default:
		s.forget(hole{psn: o.psn, n: below})
		s.list[i].psn, s.list[i].n = end, above
	}
}

// acknowledged ends holes below a PSN, and returns how many packets they had: they were never lost, but not seen here.
func (s *holes) acknowledged(below uint32) (n uint64) {
	if left := uint64(max(ahead(s.end, below), 0)); s.more > left { // at most so many are not below it
		n, s.more = s.more-left, left
	}
	kept := 0
	for _, o := range s.list[:s.n] {
		d := ahead(below, o.psn)
		if d >= int32(o.n) {
			if !o.start {
				n += uint64(o.n)
			}
			continue
		}
		if d > 0 {
			if !o.start {
				n += uint64(d)
			}
			o.psn, o.n = below, o.n-uint32(d)
		}
		s.list[kept] = o
		kept++
	}
	s.n = kept
	return n
}

func (s *holes) missing() (n uint64) {
	for _, o := range s.list[:s.n] {
		n += uint64(o.n)
	}
	return n + s.more
}

// endRead says by the last response to a READ which PSN follows it: those from there to the next request are missing. s are those of which that was unsure.
func (s *holes) endRead(h *Half, psn uint32) {
	if d := ahead(psn, h.next); h.loose > 0 && d >= 0 && uint32(d) <= h.loose { // none has followed yet
		h.repeat.ends(h.next, psn)
		h.next, h.loose = psn, 0
	}
	if i := s.find(psn); i >= 0 {
		o := s.list[i]
		h.holes.add(psn, o.n-uint32(ahead(psn, o.psn)), o.at, o.start)
		s.fill(i, o.psn, o.n)
	}
}
