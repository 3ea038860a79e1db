package replay

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing"
)

// How the two directions of a connection were found to belong together (health.Record.PairedBy), if not by the rules for notifications.
const (
	byFit       = "ack-fit"        // the responses fit the requests of the other direction, and those of no other direction as well
	byOnlyOne   = "only-candidate" // a few responses fit, and only one direction is left that they can answer
	enoughToFit = 8                // responses; with fewer it is the only candidate, or nothing
)

const (
	joinedFlows = 1 << 18 // directions without a pair that are compared: about 1 kB each
	candidates  = 64      // directions that a direction's responses are compared with
	considered  = 4096    // directions of the opposite hosts that are looked at to find those
	later       = 1024    // and of those that begin after a direction's first responses
	kept        = 32      // requests of a direction that asked for an answer, of which the time is known
	reordered   = 64      // packets before the first one that may pass after it
	skewed      = 4096    // packets that an answer may be recorded ahead of, if the clocks of the two directions differ
	tooFar      = 1 << 16 // packets: a larger step of PSNs is another connection's
)

// joiner finds which directed flows are the two directions of a connection, by what a responder must do (IBTA 9.7.5.1): a response has the PSN of a request
// that has come before, and a requester goes back to the PSN that a NAK asks for (9.7.5.1.2). It asks neither for equal ports nor for equal VLANs, tunnels or
// labels: each of them may belong to one direction. For a diagnosis the best candidate is good enough; for a notification, which slows a sender
// down, it isn't: those are never told of these pairs.
type joiner struct {
	flows map[connectionKey]*directed
	hosts map[[2]packet.Addr]*requesters
	from  map[packet.Addr]*requesters // to any host
	left  uint64                      // directions for which there was no space
}

// requesters are the directions from one host with requests, to another one or to all, in the order of their first ones.
type requesters struct{ all []*directed }

// directed is one direction of a connection, as a requester and as a responder.
type directed struct {
	key       connectionKey
	own       [2]*requesters
	opposite  *requesters // that its responses may answer
	from      *requesters // and if there are none: those to the other addresses of its host, as it may have several
	base      uint32      // the PSN of its first request
	next      uint32      // after the highest one
	latest    uint32      // the PSN after the latest one
	requests  uint32
	asked     [kept]asked // the latest is before at
	at        uint32
	back      [4]asked // where it went back
	stuck     uint32   // where it went back the last times, plus 1
	tries     uint32   // how often
	waits     bool     // it has sent nothing new since
	responses uint32
	first     int64 // time of the first response
	high      uint32
	fits      []*fit // how it answers others
	looked    int    // those of opposite that it was compared with, or that are too many
	late      int    // those that it was compared with after its first responses
}

type asked struct {
	psn  uint32 // plus 1
	at   int64  // ns
	read bool
}

func newJoiner() *joiner {
	return &joiner{flows: map[connectionKey]*directed{}, hosts: map[[2]packet.Addr]*requesters{}, from: map[packet.Addr]*requesters{}}
}

// begin is called with the first packet of a direction without a pair. It returns nil if there are too many.
func (j *joiner) begin(key connectionKey) *directed {
	if len(j.flows) == joinedFlows {
		j.left++
		return nil
	}
	d := &directed{
		key: key, own: [2]*requesters{of(j.hosts, [2]packet.Addr{key.src, key.dst}), of(j.from, key.src)},
		opposite: of(j.hosts, [2]packet.Addr{key.dst, key.src}), from: of(j.from, key.dst),
	}
	j.flows[key] = d
	return d
}

func of[K comparable](all map[K]*requesters, key K) *requesters {
	if all[key] == nil {
		all[key] = &requesters{}
	}
	return all[key]
}

// follow notes a packet.
func (j *joiner) follow(d *directed, p *health.Packet) {
	switch p.Opcode.Role() {
	case packet.Request, packet.ReadRequest:
		d.request(p)
	case packet.Response:
		d.response(p)
	}
}

// ahead is how far PSN a is ahead of b, of 24 bits; less than 0: behind.
func ahead(a, b uint32) int { return int(int32((a-b)<<8) >> 8) }

func (d *directed) request(p *health.Packet) {
	span := uint32(1)
	if p.Opcode.Role() == packet.ReadRequest { // as many PSNs as responses, of which the smallest path MTU allows the most
		span = max((p.Message+255)/256, 1)
	}
	if d.requests++; d.requests == 1 {
		d.base, d.next = p.PSN, p.PSN
		for _, own := range d.own {
			own.all = append(own.all, d)
		}
	}
	if step := ahead(p.PSN, d.next); step < 0 && step > -tooFar {
		if p.PSN != d.latest { // the first of those that it sends again
			d.back[p.PSN%uint32(len(d.back))] = asked{psn: p.PSN + 1, at: p.Time}
			if d.stuck != p.PSN+1 {
				d.stuck, d.tries = p.PSN+1, 0
			}
			d.tries++
			d.waits = true
		}
		d.latest = (p.PSN + span) & packet.PSNMask
		return
	}
	d.next = (p.PSN + span) & packet.PSNMask
	d.latest, d.waits = d.next, false
	if p.AckReq || p.Opcode.Role() == packet.ReadRequest {
		d.asked[d.at%kept] = asked{p.PSN + 1, p.Time, p.Opcode.Role() == packet.ReadRequest}
		d.at++
	}
}

// sent reports whether a request with a PSN has passed, and when, if it asked for an answer and that is known.
func (d *directed) sent(psn uint32) (at *asked, ok bool) {
	if d.requests == 0 || ahead(psn, d.base) < -reordered || ahead(psn, d.next) >= 0 {
		return nil, false
	}
	for n := d.at; n > 0 && n+kept > d.at; n-- {
		if a := &d.asked[(n-1)%kept]; a.psn == psn+1 {
			return a, true
		}
	}
	return nil, true
}

// soon reports whether a request with a PSN may pass soon.
func (d *directed) soon(psn uint32) bool {
	step := ahead(psn, d.next)
	return d.requests > 0 && step >= 0 && step < skewed
}

func (d *directed) response(p *health.Packet) {
	if d.responses++; d.responses == 1 {
		d.first, d.high = p.Time, (p.PSN-1)&packet.PSNMask
	}
	before := d.high
	if ahead(p.PSN, d.high) > 0 {
		d.high = p.PSN
	}
	if d.responses == enoughToFit && len(d.opposite.all) == 0 {
		d.opposite = d.from
	}
	const searches = 64
	if len(d.fits) == 0 && (d.responses <= searches || d.responses&(d.responses-1) == 0) { // the first ones answer requests from before the capture: on a long path, many
		d.looked = 0
	}
	if begun := len(d.opposite.all) - d.looked; begun > 0 && (d.looked == 0 || d.late < later) {
		if d.looked > 0 {
			d.late += begun
		}
		d.search(p.PSN)
	}
	again := d.repeats(p, before)
	for _, f := range d.fits {
		f.response(p, before, f == again)
	}
}

// repeats is the fit of the requester that has gone back last, if a response acknowledges nothing new: what comes again is acknowledged as the latest that has come
// (IBTA 9.7.5.1.2), also if that passed before the capture.
func (d *directed) repeats(p *health.Packet, before uint32) (latest *fit) {
	for _, f := range d.fits {
		if r := f.requester; p.PSN == before && r.waits && (latest == nil || r.wentBack().at > latest.requester.wentBack().at) {
			latest = f
		}
	}
	return latest
}

// wentBack is where, and when, it went back last.
func (d *directed) wentBack() *asked { return &d.back[(d.stuck-1)%uint32(len(d.back))] }

// search finds, among the requesters that have begun since it did so last, those whose requests a response may answer.
func (d *directed) search(psn uint32) {
	all := d.opposite.all
	for n := len(all) - 1; n >= max(d.looked, len(all)-considered) && len(d.fits) < candidates; n-- {
		if _, ok := all[n].sent(psn); ok || all[n].soon(psn) {
			d.fits = append(d.fits, &fit{responder: d, requester: all[n], before: d.responses - 1})
		}
	}
	d.looked = len(all)
}

// joined is a pair: the responder's packets are taken as of the requester's VLAN or tunnel, and from the address that it asks.
type joined struct {
	requester, responder connectionKey
	by                   string
}

// pairs decides: the best fit first. Of connections that do the same at the same time, the one whose request came first is answered first.
func (j *joiner) pairs() (all []joined) {
	var fits []*fit
	for _, d := range j.flows {
		least := int64(1) << 62
		for _, f := range d.fits {
			if f.ends > 0 {
				least = min(least, f.mean())
			}
		}
		answers := slices.ContainsFunc(d.fits, func(f *fit) bool { return f.hits > 0 })
		for _, f := range d.fits {
			if f.judge(least) && !(answers && f.answersNothing()) {
				fits = append(fits, f)
			}
		}
	}
	slices.SortFunc(fits, func(a, b *fit) int {
		if c := cmp.Or(cmp.Compare(b.points, a.points), cmp.Compare(a.responder.first, b.responder.first), cmp.Compare(b.since, a.since)); c != 0 {
			return c
		}
		return cmp.Or(compareKeys(&a.requester.key, &b.requester.key), compareKeys(&a.responder.key, &b.responder.key))
	})
	taken, open := map[*directed]bool{}, map[*directed]int{}
	for _, f := range fits {
		open[f.requester]++
		open[f.responder]++
	}
	for _, f := range fits {
		if taken[f.requester] || taken[f.responder] || j.collides(f) {
			continue
		}
		by := byFit
		few := f.responder.responses-f.before < enoughToFit || f.answersNothing()
		if few {
			by = byOnlyOne
		}
		if elsewhere := f.responder.key.src != f.requester.key.dst; (few || elsewhere) && (open[f.requester] > 1 || open[f.responder] > 1) {
			continue
		}
		taken[f.requester], taken[f.responder] = true, true
		all = append(all, joined{f.requester.key, f.responder.key, by})
	}
	return all
}

// collides reports whether the responder's packets would be taken for those of another direction.
func (j *joiner) collides(f *fit) bool {
	k := f.responder.key
	k.src, k.scope = f.requester.key.dst, f.requester.key.scope
	return k != f.responder.key && j.flows[k] != nil
}

func compareKeys(a, b *connectionKey) int {
	return cmp.Or(compareAddrs(a.src, b.src), compareAddrs(a.dst, b.dst), cmp.Compare(a.qp, b.qp), cmp.Compare(a.scope, b.scope))
}

func compareAddrs(a, b packet.Addr) int {
	return cmp.Or(cmp.Compare(a.Hi, b.Hi), cmp.Compare(a.Lo, b.Lo))
}

// names of what the learner pairs by.
func nameOf(e pairing.Evidence) string {
	switch e {
	case pairing.EvidenceCM:
		return "rdma-cm"
	case pairing.EvidencePort:
		return "udp-port"
	}
	return e.String()
}

// agreed are pairs of which none contradicts another.
type agreed struct {
	pairs  []pairing.QPPair
	source map[connectionKey]uint32 // source QP of a direction's packets
}

// add adds a pair. It reports false if it contradicts an earlier one.
func (a *agreed) add(p pairing.QPPair) bool {
	there := connectionKey{p.Source, p.Destination, p.DestinationQP, p.Scope}
	back := connectionKey{p.Destination, p.Source, p.SourceQP, p.Scope}
	qp, has := a.source[there]
	peer, hasPeer := a.source[back]
	if has && qp != p.SourceQP || hasPeer && peer != p.DestinationQP {
		return false
	}
	if a.source[there], a.source[back] = p.SourceQP, p.DestinationQP; !has && !hasPeer {
		a.pairs = append(a.pairs, p)
	}
	return true
}

// compare is the pass between the first and the last, for directions without a pair.
func (h *judge) compare([]byte) {
	p := h.parsed
	if p.DestQP <= packet.GSIQP || p.Opcode == packet.CNP {
		return
	}
	key := connectionKey{p.Src, p.Dst, p.DestQP, packet.ScopeOf(0, p).Named()}
	d, alone := h.unpaired[key]
	if !alone {
		return
	}
	if d == nil {
		d = h.joiner.begin(key)
		h.unpaired[key] = d
	}
	if d != nil {
		o := health.Read(h.frame.Real, p, h.now)
		h.joiner.follow(d, &o)
	}
}

// join adds the pairs that the joiner has found to those that the learner has.
func (h *judge) join(known *agreed) {
	for _, j := range h.joiner.pairs() {
		h.joins(known, &j)
	}
	h.joiner = nil
}

// joins adds a pair, unless it contradicts an earlier one.
func (h *judge) joins(known *agreed, j *joined) {
	to, from := j.requester, j.responder
	pair := pairing.QPPair{Source: to.src, Destination: to.dst, SourceQP: from.qp, DestinationQP: to.qp, InScope: true, Scope: to.scope}
	if !known.add(pair) { // another VLAN's or tunnel's direction with the same QP is moved here, too
		return
	}
	if as := (seenAs{to.dst, to.scope}); as != (seenAs{from.src, from.scope}) {
		h.moved[from] = as
		if from.src != to.dst {
			h.builder.Note(health.Note{
				Name: health.NoteAddress, Subject: health.Subject(to.src, to.dst, to.scope),
				Text: fmt.Sprintf("its answers come from another address of that host, %v: some NICs drop them; let the application use the address that its route to %v has", from.src.Netip(), to.src.Netip()),
			})
		}
		from.src, from.scope = as.src, as.scope
	}
	h.paired[to], h.paired[from] = j.by, j.by
}

// named adds the pairs of directions without one whose QPs a request for a connection and its reply name.
func (h *judge) named(known *agreed) {
	if len(h.setups.accepted) == 0 {
		return
	}
	alone := map[way]*connectionKey{}
	for k := range h.unpaired {
		if _, paired := h.paired[k]; paired {
			continue
		}
		d, key := way{k.src, k.dst, k.qp}, k
		if _, several := alone[d]; several {
			key = connectionKey{} // in several VLANs or tunnels
		}
		alone[d] = &key
	}
	for i := range h.setups.accepted {
		a := &h.setups.accepted[i]
		there, back := alone[way{a.from, a.to, a.toQP}], alone[way{a.to, a.from, a.fromQP}]
		if there != nil && back != nil && there.qp != 0 && back.qp != 0 {
			h.joins(known, &joined{*there, *back, nameOf(pairing.EvidenceCM)})
			if a.released != 0 {
				h.released[*there] = true
			}
		}
	}
}
