package rdmanet

import "math/rand/v2"

// Segment is a part of the path in one direction, up to the capture or behind it. Packets leave it in the order in which they came, but for those that are late.
type Segment struct {
	Delay  int64   // ns
	Jitter int64   // added at random, ns
	Rate   float64 // bits/s of its bottleneck; 0: none
	MarkAt int64   // a packet that waits longer there is marked CE, ns; 0: none is
	DropAt int64   // and one that would wait longer than this is lost, ns; 0: none is
	Loss   []*Loss
	Late   *Late

	CopyOneIn float64 // one packet in so many comes twice; 0: none
	Held      []span  // times when it is paused

	busy, last int64
}

type span struct{ from, to int64 }

// Loss is a process that loses or corrupts packets.
type Loss struct {
	Data, Acks bool // which packets: those that carry data or ask for it; ACKs and NAKs
	OneIn      float64
	Burst      int // so many in a row
	Most       int // times; 0: without limit
	Over       int // only payloads of more bytes
	From       int64
	Until      int64 // ns; 0: without end
	Only       *Half // nil: of all
	Corrupts   bool

	left, times int
	ends        int64
}

const burstLasts = 100 * usec // at most

// hits reports whether a packet is lost.
func (l *Loss) hits(r *rand.Rand, p *Packet, now int64) bool {
	if now < l.From || l.Until != 0 && now >= l.Until || p.Payload <= l.Over && l.Over > 0 || l.Only != nil && p.Half != l.Only {
		return false
	}
	if p.data() && !l.Data || p.Kind == Response && !p.data() && !l.Acks || p.Kind == Notification && l.OneIn != 1 {
		return false
	}
	if l.left > 0 && now < l.ends {
		l.left--
		return true
	}
	if l.Most > 0 && l.times >= l.Most || r.Float64()*l.OneIn >= 1 {
		return false
	}
	l.times++
	l.left, l.ends = l.Burst-1, now+burstLasts
	return true
}

// Late delays some packets, so that others overtake them.
type Late struct {
	OneIn float64
	By    int64 // ns, at least half of it
}

// pass moves a packet through the segment. It returns when it leaves it; lost: it doesn't. A corrupted one does.
func (s *Segment) pass(r *rand.Rand, p *Packet, now int64, bits float64) (exit int64, lost, corrupted bool) {
	for _, h := range s.Held {
		if now >= h.from && now < h.to {
			now = h.to
		}
	}
	for _, l := range s.Loss {
		if l.hits(r, p, now) {
			if !l.Corrupts {
				return 0, true, false
			}
			corrupted = true
		}
	}
	out := now
	if s.Rate > 0 {
		start := max(now, s.busy)
		if s.MarkAt > 0 && start-now > s.MarkAt && p.Half.Conn.NIC.ECT && p.data() {
			p.CE = true
		}
		if s.DropAt > 0 && start-now > s.DropAt {
			return 0, true, false
		}
		s.busy = start + int64(bits/s.Rate*1e9)
		out = s.busy
	}
	out += s.Delay
	if s.Jitter > 0 {
		out += r.Int64N(s.Jitter)
	}
	if s.Late != nil && r.Float64()*s.Late.OneIn < 1 && p.data() {
		return out + s.Late.By/2 + r.Int64N(s.Late.By/2+1), false, corrupted
	}
	s.last = max(s.last+1, out)
	return s.last, false, corrupted
}
