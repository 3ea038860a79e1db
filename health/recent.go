package health

// recent are the latest requests.
type recent struct {
	list [32]sent
	at   uint32
}

type sent struct {
	psn  uint32 // plus 1; 0: none
	id   uint16
	data uint16
	asks bool // for an ACK
	read bool
	// headers are the bytes between the BTH and the payload.
	headers uint8
	time    int64
}

// add notes a request.
func (r *recent) add(p *Packet) {
	r.list[r.at%uint32(len(r.list))] = sent{p.PSN + 1, p.ID, clamp(p.Data), p.AckReq, returnsData(p.Opcode), headersOf(p), p.Time}
	r.at++
}

// headersOf is 0 for packets without a payload: a READ's size is that of its responses.
func headersOf(p *Packet) uint8 {
	if p.Data == 0 {
		return 0
	}
	return uint8(p.Opcode.HeadersLen())
}

func clamp(bytes uint32) uint16 { return uint16(min(bytes, 1<<16-1)) }

// find is the latest transmission of a PSN, nil if it isn't there.
func (r *recent) find(psn uint32) *sent {
	for i := uint32(1); i <= uint32(len(r.list)); i++ {
		if s := &r.list[(r.at-i)%uint32(len(r.list))]; s.psn == psn+1 {
			return s
		}
	}
	return nil
}

// asked reports whether a READ that has a PSN was sent between two times, ns.
func (r *recent) asked(psn uint32, from, to int64) bool {
	for i := r.at - min(r.at, uint32(len(r.list))); i != r.at; i++ {
		s, next := &r.list[i%uint32(len(r.list))], &r.list[(i+1)%uint32(len(r.list))]
		if s.read && s.time >= from && s.time <= to && ahead(psn, s.psn-1) >= 0 && (i+1 == r.at || ahead(next.psn-1, psn) > 0 || ahead(next.psn, s.psn) <= 0) {
			return true
		}
	}
	return false
}

// since reports whether a request with a PSN, or one before it, is in the list: then all that followed are.
func (r *recent) since(psn uint32) bool {
	for i := range r.list {
		if s := &r.list[i]; s.psn != 0 && ahead(s.psn-1, psn) <= 0 {
			return true
		}
	}
	return false
}

// between reports whether no request began with a PSN, but one before it did: those in the list are all that were sent since.
func (r *recent) between(psn uint32) bool {
	before := false
	if r.find(psn) != nil {
		return false
	}
	for i := r.at - min(r.at, uint32(len(r.list))); i != r.at; i++ {
		switch d := ahead(r.list[i%uint32(len(r.list))].psn-1, psn); {
		case d < 0:
			before = true
		case before:
			return true
		}
	}
	return before
}

// ids says whether the sender numbers its packets in the IPv4 identification. If so, it tells a late packet from one that was sent again.
type ids struct {
	latest uint16
	score  int8 // how often the next packet had a higher one, less the exceptions
}

const (
	idStep   = 4096 // other packets between the same hosts take numbers, too
	idNear   = 16
	idScore  = 8
	idAtOnce = idScore / 2 // two near ones suffice
)

func (d *ids) next(id uint16) {
	switch step := id - d.latest; {
	case id == 0, step == 0, step >= idStep:
		late := d.older(id)
		if d.score = max(d.score-2, -idScore); late {
			return
		}
	case step <= idNear:
		d.score = min(d.score+idAtOnce, 2*idScore)
	default:
		d.score = min(d.score+1, 2*idScore)
	}
	d.latest = id
}

func (d *ids) known(id uint16) bool { return id != 0 && d.score >= idScore }

// older reports whether a packet was sent before the latest one. One that is farther behind is new: other packets have taken the numbers between.
func (d *ids) older(id uint16) bool { return d.known(id) && id != d.latest && d.latest-id < idStep }

// again notes the number of a packet that was sent again.
func (d *ids) again(id uint16) {
	if d.known(id) && int16(id-d.latest) > 0 {
		d.latest = id
	}
}

// probes are requests whose answers are timed.
type probes struct {
	list [8]probe
	n    int
}

type probe struct {
	psn  uint32
	read bool
	time int64
}

func (s *probes) add(p *Packet, read bool) {
	if s.n < len(s.list) {
		s.list[s.n] = probe{p.PSN, read, p.Time}
		s.n++
	}
}

// drop removes probes from a PSN on, as they were sent again: an answer may be to either.
func (s *probes) drop(from uint32) {
	kept := 0
	for _, o := range s.list[:s.n] {
		if ahead(o.psn, from) < 0 {
			s.list[kept] = o
			kept++
		}
	}
	s.n = kept
}

// answer removes those that an answer acknowledges, and returns the one that it names.
func (s *probes) answer(psn uint32) (found probe, ok bool) {
	kept := 0
	for _, o := range s.list[:s.n] {
		d := ahead(o.psn, psn)
		if d == 0 {
			found, ok = o, true
		}
		if d > 0 {
			s.list[kept] = o
			kept++
		}
	}
	s.n = kept
	return found, ok
}

// answers is what the responder has acknowledged, and when.
type answers struct {
	acked  uint32 // all PSNs before it
	at     int64  // time of the latest response that acknowledged more
	latest int64  // and of any that acknowledges
	marks  [16]mark
	next   uint32
	known  bool
}

type mark struct {
	acked uint32
	n     uint32 // responses that had come before
	at    int64
}

func (a *answers) begin(psn uint32) { a.acked, a.known = psn, true }

// add notes an answer. Those that come within a moment are one mark.
func (a *answers) add(acked uint32, now, moment int64, n uint32) {
	a.acked, a.at = acked, now
	if m := &a.marks[(a.next-1)%uint32(len(a.marks))]; m.at != 0 && now-m.at < moment {
		m.acked = acked
		return
	}
	a.marks[a.next%uint32(len(a.marks))] = mark{acked, n, now}
	a.next++
}

// since is when a PSN was first acknowledged; ok is false if that is too long ago to know.
func (a *answers) since(psn uint32) (at int64, ok bool) {
	m := a.mark(psn)
	if m == nil {
		return 0, false
	}
	return m.at, true
}

// before is the answer that acknowledges all before a PSN, and no more; nil: there was none, or it isn't known.
func (a *answers) before(psn uint32) *mark {
	for i := range a.marks {
		if m := &a.marks[i]; m.at != 0 && m.acked == psn {
			return m
		}
	}
	return nil
}

// mark is the first answer to a PSN; nil if that is too long ago to know.
func (a *answers) mark(psn uint32) (found *mark) {
	for i := uint32(1); i <= uint32(len(a.marks)); i++ {
		m := &a.marks[(a.next-i)%uint32(len(a.marks))]
		if m.at == 0 || ahead(m.acked, psn) <= 0 {
			return found
		}
		found = m
	}
	return nil
}
