package fleet

import (
	"maps"
	"slices"

	"github.com/cnpgate/cnpgate/fleet/wire"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/keyhash"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing"
)

// scan goes through the gateway's own flows, group by group (pairing.See): some at each look, and groups with something to do at every look.
type scan struct {
	*core
	asking *asking
	heirs  *heirs
	at     int
	seen   []pairing.Seen
	hot    map[int]bool
	hotAt  int               // the last of these that was looked at
	fresh  []int             // groups with news
	sent   []sent            // by the number of the flow's slot
	out    map[string][]byte // records of flows, by recipient
	last   struct {          // the flows of a group have two pairs of hosts
		known, wanted, lacks bool
		hosts                wire.Hosts // of the flow that was visited last
		interest             interest   // of others, in these
	}
	bytes  int // of out
	pairs  []byte
	secret [2]uint64
}

// sent is when the records of a flow were sent last, by the number of its slot, so that flows that are visited one after the other have theirs side
// by side: those for other members who want the flow, and those for successors.
type sent struct{ flow, pair lastSent }

// lastSent is when a record was sent last: bits 16-31 a hash of what it was about, 12-15 how often it was sent, 0-11 the time in seconds.
type lastSent uint32

func newScan(c *core, a *asking, h *heirs) scan {
	s := scan{core: c, asking: a, heirs: h, hot: map[int]bool{}, out: map[string][]byte{}}
	keyhash.Spread(s.secret[:], c.Seed)
	return s
}

// sentOf is that of the flow in a slot.
func (s *scan) sentOf(slot int) *sent {
	if slot >= len(s.sent) {
		s.sent = append(s.sent, make([]sent, slot+1-len(s.sent)+1024)...)
	}
	return &s.sent[slot]
}

// due reports whether a record about a flow is to be sent: it was sent fewer times than `often`, or not for a time, ns. If so it counts as sent
// now. news: it is to be sent soon again.
func (s *scan) due(l *lastSent, f *pairing.Seen, more uint64, every int64, often uint32) (send, news bool) {
	const second, times, most, tag = 1<<12 - 1, 1 << 12, 15, 1 << 16
	x := keyhash.Fold(f.Key.Src.Lo^s.secret[0], f.Key.Dst.Lo^s.secret[1])
	x = keyhash.Fold(x^(uint64(f.Key.DestQP)<<32|uint64(f.Port)), more^s.secret[1])
	now, hash, n := uint32(s.now/1e9)&second, uint32(x>>48), uint32(0)
	if uint32(*l)/tag == hash {
		if n = uint32(*l) / times % (most + 1); n >= often && (now-uint32(*l))&second < uint32(every/1e9) {
			return false, false
		}
	}
	*l = lastSent(hash*tag | min(n+1, most)*times | now)
	return true, n+1 < often
}

// look visits some groups of flows, and sends what others want to know, and what is unknown here.
func (s *scan) look() {
	if s.Pairing == nil {
		return
	}
	left := maxVisits
	s.bytes = 0
	groups := s.Pairing.Groups()
	for range groups { // first, so that news don't keep others from what they know already
		if left <= 0 {
			break
		}
		s.at = s.at%groups + 1
		if !s.hot[s.at] {
			left -= s.lookAt(s.at)
		}
		left--
	}
	left = maxHotVisits
	hot := slices.Sorted(maps.Keys(s.hot))
	first, _ := slices.BinarySearch(hot, s.hotAt+1)
	for i := range hot {
		s.hotAt = hot[(first+i)%len(hot)]
		if left -= s.lookAt(s.hotAt); left <= 0 {
			break
		}
	}
	s.tell()
	s.Peers.Sweep(s.now)
}

// news visits the groups that have got a flow, or that another member has asked about, since the last call: a queue can be full before the next look.
func (s *scan) news() {
	if s.Pairing == nil {
		return
	}
	left := maxNews
	s.fresh = s.Pairing.News(s.fresh[:0])
	for _, group := range s.fresh {
		if left > 0 {
			left -= s.lookAt(group)
		} else if len(s.hot) < maxHot {
			s.hot[group] = true
		}
	}
	if left < maxNews {
		s.tell()
	}
}

// tell sends what visits have found.
func (s *scan) tell() {
	s.asking.tell()
	for _, to := range slices.Sorted(maps.Keys(s.out)) {
		s.sendRecords(wire.Flows, to, s.out[to], wire.FlowSize)
		s.out[to] = s.out[to][:0]
	}
	s.sendRecords(wire.Pairs, "", s.pairs, wire.PairSize)
	s.pairs = s.pairs[:0]
}

// lookAt visits a group, and returns the number of its flows.
func (s *scan) lookAt(group int) int {
	var ok bool
	if s.seen, ok = s.Pairing.See(group, s.seen[:0]); !ok {
		return 1
	}
	hot := false
	s.last.known = false
	for i := range s.seen {
		if s.visit(&s.seen[i]) {
			hot = true
		}
	}
	if !hot {
		delete(s.hot, group)
	} else if len(s.hot) < maxHot {
		s.hot[group] = true
	}
	return len(s.seen)
}

// visit does what is due about an own flow, and reports whether there will be more soon.
func (s *scan) visit(f *pairing.Seen) (hot bool) {
	h := wire.Hosts{From: f.Key.Src, To: f.Key.Dst, Scope: f.Key.Scope().Named()}
	if l := &s.last; !l.known || h != l.hosts {
		l.known, l.wanted, l.lacks, l.hosts, l.interest = true, false, false, h, s.asking.others[h]
	}
	confirmed := f.Answer.State() == pairing.Confirmed
	own := confirmed && f.Answer.Evidence() != pairing.EvidencePeer
	switch e := f.Answer.Evidence(); {
	case own && (e == pairing.EvidenceCM || e == pairing.EvidencePort || e == pairing.EvidencePSN):
		if send, _ := s.due(&s.sentOf(f.Slot).pair, f, uint64(f.Answer.SourceQP()), pairAgain, 1); send {
			s.pairs = pairOf(&h, f).Append(s.pairs)
		}
	case !own && f.Steady:
		if !confirmed && s.heirs.inherit(&h, f) {
			confirmed = true
		}
		if !s.last.wanted || !confirmed && !s.last.lacks {
			opposite := s.Pairing.Opposite(&f.Key, 0)
			s.asking.want(&opposite, !confirmed)
			s.last.wanted, s.last.lacks = true, s.last.lacks || !confirmed
		}
		hot = !confirmed
	}
	return s.supply(&h, f) || hot
}

// supply sends a flow to those who want it, and reports whether somebody does who may not have confirmed its peer flow yet.
func (s *scan) supply(h *wire.Hosts, f *pairing.Seen) (news bool) {
	if !f.Steady {
		return false
	}
	wanted := false
	for i := range s.last.interest.who {
		wanted = wanted || s.last.interest.who[i].until >= s.now
	}
	if !wanted || s.bytes >= maxFlowBytes {
		return false
	}
	every, often := repeat(f)
	send, news := s.due(&s.sentOf(f.Slot).flow, f, uint64(s.last.interest.changes), every, often)
	if !send {
		return false
	}
	r := wire.Flow{Hosts: *h, QP: f.Key.DestQP, Port: f.Port, Flags: flags(f), First: f.First, High: f.High, Acked: f.Acked}
	for i := range s.last.interest.who {
		if w := &s.last.interest.who[i]; w.until >= s.now {
			s.out[w.name] = r.Append(s.out[w.name])
			s.bytes += wire.FlowSize
		}
	}
	return news
}

// repeat is how often a flow is sent at once, as news, and when it is sent again after that. It must have time to be confirmed; while its own
// peer flow isn't known here, it isn't known there either.
func repeat(f *pairing.Seen) (every int64, often uint32) {
	const reports, fewer, later = 8, 4, 8e9
	switch {
	case f.Answer.State() != pairing.Confirmed:
		return later, reports
	case f.Answer.Evidence() == pairing.EvidencePeer:
		return keepAgain, fewer
	}
	return keepAgain, 1 // it has its peer flow here
}

func flags(f *pairing.Seen) (b uint8) {
	for _, bit := range [...]struct {
		set bool
		bit uint8
	}{{f.Requests, wire.Requests}, {f.Responses, wire.Responses}, {f.Unreliable, wire.Unreliable}, {f.Steady, wire.Steady}} {
		if bit.set {
			b |= bit.bit
		}
	}
	return b
}

// takeFlow shows a flow of another gateway to the learner, if this gateway wants it.
func (s *scan) takeFlow(f *wire.Flow) {
	w, ok := s.asking.own[f.Hosts]
	switch {
	case s.Peers == nil || f.Flags&wire.Steady == 0:
		return
	case !ok || w.several:
		s.stats.NotUnique++
		return
	}
	r := pairing.Remote{
		Key: flowtable.Key{Src: f.From, Dst: f.To, DestQP: f.QP}, Port: f.Port, Unreliable: f.Flags&wire.Unreliable != 0,
		Requests: f.Flags&wire.Requests != 0, Responses: f.Flags&wire.Responses != 0, First: f.First, High: f.High, Acked: f.Acked,
	}
	r.Key.SetScope(packet.Scope(w.scope))
	s.stats.Shown[s.Peers.Show(&r, s.now)]++
}
