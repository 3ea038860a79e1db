package lossypath

import (
	"encoding/binary"
	"slices"

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
	begin   *transmission // of a retransmission, and of a READ response to one: the first of its episode; nil: it is the first transmission
	cause   string        // of an episode
	request bool
	visible bool // its PSN was repeated in the capture
	syn     uint8
	aeth    bool
	read    bool // a READ request, or a response to one
	// Of a request: it asks for an ACK; all PSNs before acked had come when the responder had got it; 0 answers are due if it came out of order.
	asks  bool
	came  bool // to the responder
	acked uint32
	due   bool
	// Of a READ response: the requester could use it, or got it while it waited for the one before beyond.
	used    bool
	beyond  uint32
	follows *transmission // of a NAK: the RNR NAK before it; of an episode: the same of the NAK that it obeys
	passed  bool          // the capture
}

// requester is one end's requests, as the requester itself sees them.
type requester struct {
	high        uint32 // after the highest PSN sent
	started     bool
	inMiddle    uint32 // the same in the capture
	passed      bool
	episode     *transmission
	reads       uint32 // after the highest PSN of a READ response in the capture
	anyRead     bool
	next        uint32
	naks        []nak           // that it has not obeyed
	acked       uint32          // all PSNs before it, as the requester knows
	responses   []*transmission // in the order in which they were sent
	requests    []*transmission
	expected    uint32 // by the responder
	accepts     bool   // the responder has got a request
	readNext    uint32 // the READ response that the requester expects
	anyResponse bool
	refused     *transmission // the latest RNR NAK
}

// nak is a NAK or RNR NAK that the requester got.
type nak struct {
	psn uint32
	at  int64
	rnr bool
	// Soft-RoCE sends a NAK for what follows an RNR NAK, and obeys both. The cause of both is that the receiver was not ready, which shows where the RNR NAK
	// passes.
	follows *transmission
}

// obeys is the NAK because of which the requester goes back to a PSN: one that asks for it, or if there is none, for an earlier one, so that it is the
// oldest that isn't acknowledged.
func (r *requester) obeys(psn uint32, now, timeOut int64) (found *nak) {
	for i := range r.naks {
		n := &r.naks[i]
		asked := n.psn == psn || !n.rnr && ahead(psn, n.psn) > 0 && psn == r.acked
		if asked && (n.rnr || now-n.at < timeOut/2) && (found == nil || n.rnr || n.psn == psn && found.psn != psn) {
			found = n
		}
	}
	return found
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

// sent notes a packet that a host sends. Connections are known by their UDP source port, which is the same both ways.
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
		if o.read = p.Opcode.HasPayload(); o.read {
			o.begin = o.flow.episodeOf(o.psn)
		}
		o.flow.responses = append(o.flow.responses, o)
		if o.aeth && o.syn>>5 == 1 {
			o.flow.refuse(o)
		}
		if last := o.flow.refused; o.aeth && o.syn>>5 == 3 && last != nil && last.psn == o.psn {
			o.follows = last
		}
		t.all = append(t.all, o)
		return o
	}
	o.request, o.psns, o.asks = true, 1, b[p.BTH+8]&0x80 != 0
	if o.read = p.Opcode.Role() == packet.ReadRequest; o.read {
		o.psns = max((binary.BigEndian.Uint32(b[p.Ext()+12:])+mtu-1)/mtu, 1)
	}
	r := t.of(key{host: p.Src, peer: p.Dst, port: p.SrcPort})
	o.flow, r.requests = r, append(r.requests, o)
	t.all = append(t.all, o)
	if !r.started {
		r.started, r.high, r.acked = true, p.PSN, p.PSN
	}
	if ahead(p.PSN, r.high) >= 0 {
		r.high = (p.PSN + o.psns) & packet.PSNMask
		r.episode = nil
		return o
	}
	obeys := r.obeys(p.PSN, now, t.TimeOut)
	if obeys != nil && r.episode != nil && p.PSN == r.next && obeys.at < r.episode.at {
		obeys = nil // what follows in an episode is no obedience to what came before it
	}
	if r.episode == nil || obeys != nil || p.PSN != r.next && (ahead(p.PSN, r.next) < 0 || now-r.episode.at > t.TimeOut/2) {
		r.episode = o
		o.cause = TimeOut
		switch {
		case obeys != nil && obeys.rnr:
			o.cause = RNR
		case obeys != nil:
			o.cause, o.follows = NAK, obeys.follows
		case p.Opcode.Role() == packet.ReadRequest && r.beyond(p.PSN, now-t.TimeOut/2):
			o.cause = Implied
		}
		r.naks = slices.DeleteFunc(r.naks, func(n nak) bool {
			return ahead(n.psn, p.PSN) < 0 || n.psn == p.PSN && (n.follows == nil || obeys == nil || !obeys.rnr)
		})
	}
	o.begin = r.episode
	r.next = (p.PSN + o.psns) & packet.PSNMask
	return o
}

// passed notes that a packet is captured.
func (t *Truth) passed(o *transmission) {
	r := o.flow
	o.passed = true
	if o.read && !o.request {
		if !r.anyRead || ahead(o.psn, r.reads) >= 0 {
			r.anyRead, r.reads = true, (o.psn+1)&packet.PSNMask
			return
		}
		o.visible = o.begin != nil
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
	if o.flow == nil {
		return
	}
	r := o.flow
	switch {
	case o.request:
		r.get(o)
	case o.aeth && o.syn>>5 == 3 && o.syn&31 == 0:
		r.naks = append(r.naks, nak{o.psn, now, false, o.follows})
	case o.aeth && o.syn>>5 == 1:
		r.naks = append(r.naks, nak{o.psn, now, true, nil})
	default:
		if o.read {
			if o.used = !r.anyResponse || o.psn == r.readNext; o.used {
				r.anyResponse, r.readNext = true, (o.psn+1)&packet.PSNMask
			} else if ahead(o.psn, r.readNext) > 0 {
				o.beyond = r.readNext + 1
			}
		}
		if acked := (o.psn + 1) & packet.PSNMask; ahead(acked, r.acked) > 0 {
			r.acked = acked
		}
	}
}

// beyond reports whether the requester got a READ response out of order after a time, while it waited for the one with a PSN. That one may have come since:
// the requester had begun to ask for it.
func (r *requester) beyond(psn uint32, after int64) bool {
	for _, o := range slices.Backward(r.responses) {
		if o.arrives < after && o.arrives != never {
			return false
		}
		if o.beyond == psn+1 {
			return true
		}
	}
	return false
}

// episodeOf is the first request of the episode that asked for a READ response, by the latest request for it that the responder has got; nil: no episode did.
func (r *requester) episodeOf(psn uint32) *transmission {
	for _, o := range slices.Backward(r.requests) {
		if d := ahead(psn, o.psn); o.read && o.came && d >= 0 && d < int32(o.psns) {
			return o.begin
		}
	}
	return nil
}

// get notes a request that the responder has got. It answers those that it has had before, and of the others those that ask for it.
func (r *requester) get(o *transmission) {
	o.came = true
	if !r.accepts {
		r.accepts, r.expected = true, o.psn
	}
	switch d := ahead(o.psn, r.expected); {
	case d == 0:
		r.expected = (o.psn + o.psns) & packet.PSNMask
		o.due = o.asks || o.read
	case d < 0:
		o.due = true
	}
	o.acked = r.expected
}

// refuse notes an RNR NAK: the responder has not accepted a request, nor those behind it.
func (r *requester) refuse(rnr *transmission) {
	psn := rnr.psn
	r.refused = rnr
	if ahead(r.expected, psn) <= 0 {
		return
	}
	r.expected = psn
	for _, o := range r.requests {
		if ahead(o.acked, psn) > 0 {
			o.due = false
		}
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

// causeOf is the cause of an episode. A time-out was spurious if the requester got an answer to what it had sent before. Of a READ that is the response
// with the PSN that it asks for.
func (t *Truth) causeOf(o *transmission) string {
	if o.follows != nil && o.follows.passed {
		return RNR
	}
	if o.cause != TimeOut {
		return o.cause
	}
	due := 0
	for _, q := range o.flow.requests {
		if q == o {
			break
		}
		if o.read {
			if q.due && q.read && ahead(o.psn, q.psn) >= 0 && ahead(o.psn, q.psn) < int32(q.psns) {
				due++
			}
		} else if q.due && ahead(q.acked, o.psn) > 0 {
			due++
		}
	}
	for _, a := range o.flow.responses {
		if due == 0 {
			break
		}
		if o.read && a.psn == o.psn && a.read || !o.read && ahead(a.psn, o.psn) >= 0 && a.syn>>5 == 0 {
			if a.arrives != never && (!o.read || a.used) {
				return Spurious
			}
			due--
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
