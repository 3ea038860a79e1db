package lossypath

import (
	"encoding/binary"
	"fmt"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// Causes of retransmission, by the names of package health.
const (
	NAK      = "nak-sequence-error"
	RNR      = "rnr-nak"
	Implied  = "implied-nak"
	TimeOut  = "time-out"
	Spurious = "spurious"
)

const mtu = 1024 // of all connections

const never = int64(1) << 62

// transmission is one packet on the path.
type transmission struct {
	at      int64
	arrives int64
	psn     uint32
	psns    uint32  // of a request: how many PSNs it takes
	lost    [2]bool // before the capture, and behind it
	flow    *requester
	begin   *transmission // of a retransmission: the first of its episode; nil: it is the first transmission
	cause   string        // of an episode
	request bool
	visible bool // its PSN was repeated in the capture
	syn     uint8
	aeth    bool
	read    bool // a READ request, or a response to one
}

// requester is one end's requests, as the requester itself sees them.
type requester struct {
	high     uint32 // after the highest PSN sent
	started  bool
	inMiddle uint32 // the same in the capture
	passed   bool
	episode  *transmission
	latest   *transmission // the first of the latest episode
	reads    uint32        // after the highest PSN of a READ response in the capture
	anyRead  bool
	next     uint32
	nak      struct {
		psn uint32
		at  int64
		rnr bool
	}
	lastResponse int64
	answers      []answer
	requests     []*transmission
}

// answer is an ACK that the requester gets.
type answer struct {
	acked         uint32
	response      uint32 // the PSN of a response to a READ, plus 1
	sent, arrives int64
}

// Truth knows all that happened.
type Truth struct {
	TimeOut int64 // ns: a requester that goes back later than half of this after a NAK does so because it timed out
	flows   map[key]*requester
	all     []*transmission
}

type key struct {
	host packet.Addr
	peer packet.Addr
	port uint16
	qp   uint32
}

func ahead(a, b uint32) int32 { return int32((a-b)<<8) >> 8 }

// of is the requester of a request's flow. A response belongs to the requester that it goes to: the caller pairs QPs with Pair.
func (t *Truth) of(k key) *requester {
	if t.flows == nil {
		t.flows = map[key]*requester{}
	}
	r := t.flows[k]
	if r == nil {
		r = &requester{}
		t.flows[k] = r
	}
	return r
}

// sent notes a packet that a host sends. Connections are told apart by their UDP source port, which is the same both ways.
func (t *Truth) sent(now int64, b []byte, p *packet.Parsed) *transmission {
	o := &transmission{at: now, psn: p.PSN}
	if p.Kind != packet.RoCEv2 || p.Opcode.Role() == packet.NoRole {
		return o
	}
	if p.Opcode.Role() == packet.Response {
		o.flow = t.of(key{host: p.Dst, peer: p.Src, port: p.SrcPort})
		if o.aeth = p.Opcode.Headers()&packet.HasAETH != 0; o.aeth {
			o.syn = b[p.Ext()]
		}
		o.read = p.Opcode.HasPayload()
		t.all = append(t.all, o)
		return o
	}
	o.request, o.psns = true, 1
	if o.read = p.Opcode.Role() == packet.ReadRequest; o.read {
		o.psns = max((binary.BigEndian.Uint32(b[p.Ext()+12:])+mtu-1)/mtu, 1)
	}
	r := t.of(key{host: p.Src, peer: p.Dst, port: p.SrcPort})
	o.flow, r.requests = r, append(r.requests, o)
	t.all = append(t.all, o)
	if !r.started {
		r.started, r.high = true, p.PSN
	}
	if ahead(p.PSN, r.high) >= 0 {
		r.high = (p.PSN + o.psns) & packet.PSNMask
		r.episode = nil
		return o
	}
	obeys := r.nak.at != 0 && ahead(p.PSN, r.nak.psn) == 0 && (r.nak.rnr || now-r.nak.at < t.TimeOut/2)
	if r.episode == nil || obeys || p.PSN != r.next && (ahead(p.PSN, r.next) < 0 || now-r.episode.at > t.TimeOut/2) {
		r.episode = o
		o.cause = TimeOut
		switch {
		case obeys && r.nak.rnr:
			o.cause = RNR
		case obeys:
			o.cause = NAK
		case p.Opcode.Role() == packet.ReadRequest && r.lastResponse != 0 && now-r.lastResponse < t.TimeOut/2:
			o.cause = Implied
		}
		r.nak.at = 0
	}
	o.begin, r.latest = r.episode, r.episode
	r.next = (p.PSN + o.psns) & packet.PSNMask
	return o
}

// passed notes that a packet is captured.
func (t *Truth) passed(o *transmission) {
	r := o.flow
	if o.read && !o.request {
		if !r.anyRead || ahead(o.psn, r.reads) >= 0 {
			r.anyRead, r.reads = true, (o.psn+1)&packet.PSNMask
		} else if o.begin = r.latest; o.begin != nil {
			o.visible = true
		}
		return
	}
	if !o.request {
		return
	}
	if !r.passed || ahead(o.psn, r.inMiddle) >= 0 {
		r.passed, r.inMiddle = true, (o.psn+o.psns)&packet.PSNMask
		return
	}
	o.visible = o.begin != nil
}

// arrived notes that a packet comes to the host at the end.
func (t *Truth) arrived(o *transmission, now int64) {
	if o.flow == nil || o.request {
		return
	}
	r := o.flow
	switch {
	case o.aeth && o.syn>>5 == 3 && o.syn&31 == 0:
		if r.nak.at == 0 || !r.nak.rnr || r.nak.psn != o.psn { // an RNR NAK for it prevails: the requester has to wait
			r.nak.psn, r.nak.at, r.nak.rnr = o.psn, now, false
		}
		r.answers = append(r.answers, answer{o.psn, 0, o.at, now})
	case o.aeth && o.syn>>5 == 1:
		r.nak.psn, r.nak.at, r.nak.rnr = o.psn, now, true
	default:
		a := answer{acked: (o.psn + 1) & packet.PSNMask, sent: o.at, arrives: now}
		if o.read {
			r.lastResponse, a.response = now, o.psn+1
		}
		r.answers = append(r.answers, a)
	}
}

// Causes are the packets in the capture that were sent again, by cause.
func (t *Truth) Causes() map[string]uint64 {
	out := map[string]uint64{}
	for _, o := range t.all {
		if o.visible {
			out[t.causeOf(o.begin)]++
		}
	}
	return out
}

// causeOf is the cause of an episode. A time-out was spurious if the requester got an answer that was sent before anything arrived of what it sent
// from this time-out on. The answer to a READ is the response with the PSN that it asks for.
func (t *Truth) causeOf(o *transmission) string {
	if o.cause != TimeOut {
		return o.cause
	}
	arrives := o.arrives
	for _, later := range o.flow.requests {
		if later.at >= o.at {
			arrives = min(arrives, later.arrives)
		}
	}
	for _, a := range o.flow.answers {
		if o.read && a.response == o.psn+1 || !o.read && ahead(a.acked, o.psn) > 0 {
			if a.sent < arrives {
				return Spurious
			}
			return TimeOut
		}
	}
	return TimeOut
}

// Lost are the requests that were lost before and behind the capture.
func (t *Truth) Lost() (before, behind uint64) {
	for _, o := range t.all {
		if o.request && o.lost[0] {
			before++
		}
		if o.request && o.lost[1] {
			behind++
		}
	}
	return before, behind
}

// Dump is for debugging.
func (t *Truth) Dump() string {
	s := ""
	for _, o := range t.all {
		dir, what := "<", ""
		if o.request {
			dir = ">"
		}
		if o.begin != nil {
			what = t.causeOf(o.begin)
			if o.begin == o {
				what += "*"
			}
			if !o.visible {
				what += " (invisible)"
			}
		}
		l := ""
		if o.lost[0] {
			l = " LOST-BEFORE"
		}
		if o.lost[1] {
			l = " LOST-BEHIND"
		}
		syn := ""
		if o.aeth {
			syn = fmt.Sprintf(" syn=%x", o.syn)
		}
		read := ""
		if o.read {
			read = " rd"
		}
		s += fmt.Sprintf("%.3f %s %p %d%s%s%s %s\n", float64(o.at)/1e6, dir, o.flow, o.psn, syn, read, l, what)
	}
	return s
}
