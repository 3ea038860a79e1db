package replay

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/health/dissect"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/splitmix"
)

// A capture may have each packet at several places: of both hosts, merged; of a bond and its members; of an overlay and what is below it; with and without
// a tag. What passed is judged as one of them has it, as their order among each other depends on clocks, and each would count twice.
//
// A view is how a place shows packets: file, interface, tags and tunnel. Two views of the same packets (their addresses, identification, ports, QP, PSN and
// first headers are equal) are copies, unless they have the same headers with other VLANs or VNIs, and no router between them: these are two tenants. Within one view the second of two
// equal packets is a copy if the requester can't have sent it: it has the same identification of many, or another hop limit; or all come twice, sooner than a time-out; or packets of two sequences come by turns, as one who goes back sends
// what follows (IBTA 9.7.5.1.2), and doesn't return.

const (
	mostSampled   = 2048    // pairs of hosts whose packets are compared
	samplesEach   = 64      // packets of each of their directions
	mostSequences = 4096    // of a pair of hosts
	timesEach     = 6       // that a packet is seen
	fewSamples    = 3       // equal packets are needed to call two views copies
	allSampled    = 1 << 15 // of captures with more frames, one packet in eight is a sample at most
	clocksDiffer  = 5 * msec
	noTimeOut     = msec / 2
	leastLag      = 20_000 // ns: packets that come again sooner within a view are duplicates in the network, or of a mirror
	msec          = 1_000_000
)

// view is how a place shows packets.
type view struct {
	place int
	scope packet.Scope // packet.Scope.Tenant
	l3    uint32       // where the IP header begins
}

// sighting is one of a sampled packet.
type sighting struct {
	view int
	at   int64
	hops uint8
	id   uint16
}

// between are samples of the packets between two hosts.
type between struct {
	masks       [2]uint64
	samples     [2]map[uint64][]sighting // by direction, and hash
	requests    [2]int
	refused     int // packets by which a responder asks for others again
	interleaved bool
	decided     copied
}

// copied says which of the packets between two hosts are copies.
type copied struct {
	drops map[view]extent // while another view has the same packets
	again bool
	// inFile: the same frames are there again, with the same times to the nanosecond.
	inFile bool
	// sequences are the next PSNs of those that come first, and of the copies, by direction, QP, role and tenant.
	sequences map[uint64]sequence
	lag       [2]int64   // ns between a packet and its copy in the same view, by direction
	more      [2][]int64 // and its further copies
	kept      view
	of        view   // a view that is dropped
	apart     int64  // ns that its clock is ahead
	count     uint64 // copies, in the present pass
	all       uint64 // packets
}

type sequence struct{ first, copies uint32 }

// extent is from the first packet of a view to its last one.
type extent struct{ from, to int64 }

// copies finds copies, and then leaves them out.
type copies struct {
	coarse uint64
	pairs  map[[2]packet.Addr]*between
	views  []view
	spans  []extent // of the views
	latest int      // the view of the latest packet
	turns  []turns  // by flow, of the first pass
	any    bool     // there are copies to leave out
	recent [][8]passing
}

// passing is a packet whose copy may come.
type passing struct {
	hash uint64
	at   int64
}

// turns follow the PSNs of a flow's requests and READ responses: two sequences that come by turns?
type turns [2]struct {
	high, low       uint32
	onLow           bool
	crossings, back uint16
}

func newCopies(frames, flows int) *copies {
	c := &copies{pairs: map[[2]packet.Addr]*between{}, turns: make([]turns, flows+1)}
	if frames > allSampled {
		c.coarse = 7
	}
	return c
}

// hostsOf are the two hosts of a packet, the lower one first, and its direction.
func hostsOf(p *packet.Parsed) (key [2]packet.Addr, direction int) {
	if compareAddrs(p.Src, p.Dst) > 0 {
		return [2]packet.Addr{p.Dst, p.Src}, 1
	}
	return [2]packet.Addr{p.Src, p.Dst}, 0
}

// hashOf is the same for all copies of a packet, also where a snapshot is short.
func hashOf(b []byte, p *packet.Parsed) uint64 {
	const transport = packet.BTHLen + 4
	h := splitmix.Mix(uint64(p.DestQP)<<32|uint64(p.PSN)) ^ uint64(p.SrcPort)<<16 ^ uint64(idOf(b, p))
	at := int(p.BTH)
	h = splitmix.Mix(h ^ uint64(p.Opcode)<<40)
	if at+transport <= len(b) {
		h = splitmix.Mix(h ^ uint64(b[at+8])<<32 ^ uint64(binary.BigEndian.Uint32(b[at+packet.BTHLen:])))
	}
	return h
}

func idOf(b []byte, p *packet.Parsed) uint16 {
	if p.Family == 4 && int(p.L3)+6 <= len(b) {
		return binary.BigEndian.Uint16(b[p.L3+4:])
	}
	return 0
}

func viewOf(place int, p *packet.Parsed) view {
	return view{place, packet.ScopeOf(0, p).Tenant(), uint32(p.L3)}
}

// sample notes a packet of the first pass, in the frame of a number. Turns are followed in an eighth of the frames: they show soon.
func (c *copies) sample(f *dissect.Packet, place int, flow flowtable.Index, number int, now int64) {
	p := f.Parsed
	if p.Opcode == packet.CNP || p.DestQP <= packet.GSIQP {
		return
	}
	c.span(viewOf(place, p), now)
	const window, one = 1 << 14, 8
	crossed := number/window%one == 0 && flow != flowtable.None && c.turns[flow].note(p)
	quick := splitmix.Mix(uint64(p.DestQP)<<32 | uint64(p.PSN))
	if quick&c.coarse != 0 && !crossed {
		return
	}
	key, direction := hostsOf(p)
	o := c.pairs[key]
	if o == nil {
		if len(c.pairs) == mostSampled {
			return
		}
		o = &between{samples: [2]map[uint64][]sighting{{}, {}}}
		c.pairs[key] = o
	}
	o.interleaved = o.interleaved || crossed
	switch r := p.Opcode.Role(); {
	case r == packet.Request || r == packet.ReadRequest:
		o.requests[direction]++
	case refuses(f.Real, p):
		o.refused++
	}
	if quick>>8&o.masks[direction] != 0 {
		return
	}
	all, hash := o.samples[direction], hashOf(f.Real, p)&^0xffffff|quick>>8&0xffffff // so that a mask can be applied later
	seen := all[hash]
	if len(seen) < timesEach {
		hops := health.Read(f.Real, p, now).Hops
		all[hash] = append(seen, sighting{c.latest, now, hops, idOf(f.Real, p)})
	}
	for len(all) > samplesEach {
		mask := o.masks[direction]<<1 | 1
		o.masks[direction] = mask
		maps.DeleteFunc(all, func(h uint64, _ []sighting) bool { return h&mask != 0 })
	}
}

// refuses reports whether a packet is a NAK, or an RNR NAK (IBTA 9.7.5.1.3).
func refuses(b []byte, p *packet.Parsed) bool {
	at := int(p.BTH) + packet.BTHLen
	return p.Opcode.Role() == packet.Response && !p.Opcode.HasPayload() && at < len(b) && b[at]&0x20 != 0
}

// span notes when a view has a packet.
func (c *copies) span(v view, now int64) {
	if len(c.views) == 0 || c.views[c.latest] != v {
		if c.latest = slices.Index(c.views, v); c.latest < 0 {
			if c.latest = len(c.views); c.latest == 1<<10 {
				c.latest--
			} else {
				c.views, c.spans = append(c.views, v), append(c.spans, extent{now, now})
			}
		}
	}
	c.spans[c.latest].to = now
}

// note follows a packet, and reports whether two sequences come by turns.
func (t *turns) note(p *packet.Parsed) bool {
	role := p.Opcode.Role()
	s := &t[0]
	switch {
	case role == packet.Response && p.Opcode.HasPayload():
		s = &t[1]
	case role != packet.Request:
		return false
	}
	const enough = 16
	switch psn := p.PSN; {
	case ahead(psn, s.high) >= 0 || s.high == 0:
		if s.onLow && s.low != s.high && s.crossings < enough {
			s.crossings++
		}
		s.high, s.onLow = (psn+1)&packet.PSNMask, false
	case psn == s.low:
		s.low, s.onLow = (psn+1)&packet.PSNMask, true
	default:
		s.low, s.onLow = (psn+1)&packet.PSNMask, true
		s.back++
		s.crossings -= min(s.crossings, 1)
	}
	return s.crossings == enough
}

// known reports whether decide has been called.
func (c *copies) known() bool { return c.turns == nil }

// decide says what is copied, and reports whether anything is.
func (c *copies) decide() bool {
	for _, o := range c.pairs {
		c.any = o.decide(c.views, c.spans) || c.any
	}
	c.turns = nil
	return c.any
}

// begin begins a pass.
func (c *copies) begin() {
	if clear(c.recent); c.recent == nil && c.any {
		for _, o := range c.pairs {
			if o.decided.again && c.recent == nil {
				c.recent = make([][8]passing, 1<<16) // 8 MB: half a million packets
			}
		}
	}
	for _, o := range c.pairs {
		o.decided.count, o.decided.all, o.decided.sequences = 0, 0, map[uint64]sequence{}
	}
}

// is reports whether a packet is a copy; now is by the clock of the first pass.
func (c *copies) is(f *dissect.Packet, place int, now int64) bool {
	key, direction := hostsOf(f.Parsed)
	o := c.pairs[key]
	if o == nil {
		return false
	}
	d := &o.decided
	d.all++
	also, dropped := d.drops[viewOf(place, f.Parsed)]
	if dropped && also.from <= now && now <= also.to || d.again && c.came(d, f, direction, now) {
		d.count++
		return true
	}
	return false
}

// came reports whether the same packet came a lag before, or was lost before it came to the place whose packets come first. If those of one direction are
// less behind, that place is behind the other one: what was lost between is missing there, and continues the sequence of the copies.
func (c *copies) came(d *copied, f *dissect.Packet, direction int, now int64) bool {
	p := f.Parsed
	tenant := splitmix.Mix(uint64(packet.ScopeOf(0, p).Tenant()))
	came := c.matches(hashOf(f.Real, p)^tenant, now, d.lag[direction], d.more[direction])
	if p.Opcode == packet.CNP || d.lag[direction] >= d.lag[1-direction] {
		return came
	}
	key := (uint64(p.Opcode.Role())<<32 | uint64(p.DestQP)<<1 | uint64(direction)) ^ tenant
	s := d.sequences[key]
	if came = came || p.PSN == s.copies && ahead(p.PSN, s.first) < 0; came {
		s.copies = (p.PSN + 1) & packet.PSNMask
	} else {
		s.first = (p.PSN + 1) & packet.PSNMask
	}
	if len(d.sequences) < mostSequences {
		d.sequences[key] = s
	}
	return came
}

// matches reports whether the same packet came one of the lags before. If not, its copies may.
func (c *copies) matches(hash uint64, now, lag int64, more []int64) bool {
	all := &c.recent[hash%uint64(len(c.recent))]
	oldest := 0
	for i := range all {
		s := &all[i]
		if s.at < all[oldest].at {
			oldest = i
		}
		if s.hash != hash || s.at == 0 {
			continue
		}
		for _, l := range append([]int64{lag}, more...) {
			if off := now - s.at - l; max(off, -off) <= tolerance(l) {
				return true
			}
		}
	}
	all[oldest] = passing{hash, now}
	return false
}
