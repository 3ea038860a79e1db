package synth

import (
	"fmt"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// checker checks a stream of packets against InfiniBand's rules of acknowledgement. It knows only what the tap sees and what was lost after
// it. It also runs over real captures, which shows that real devices follow the rules. It is independent of the generator: it has no state
// of a requester or responder, only sets of PSNs.
type checker struct {
	mtu    uint32
	strict bool // nothing gets lost or out of order before the tap: new PSNs come one after the other
	ends   map[[2]int32]*sent
	counts map[string]int
}

// sent is what the tap has seen of an end's requests, by PSN from the start PSN on.
type sent struct {
	start, high uint32 // high is one past the highest, from the start PSN
	psns        []psnState
	msn         []uint32 // for each PSN up to the first one that was not delivered: how many messages end before it
	next        int      // one past the last request
	back        int      // where the requester went back to, the last time
	said        int      // one past what the last ACK or NAK has acknowledged
	acked       int      // one past what responses that were not lost have acknowledged
}

type psnState struct {
	delivered, last, read, atomic, recvs bool
	answered                             bool // a READ's response or an ATOMIC Acknowledge was delivered
	resent                               bool // the request was sent more than once; reordered copies may pass in any order
}

func newChecker(mtu int, strict bool) *checker {
	return &checker{mtu: uint32(mtu), strict: strict, ends: map[[2]int32]*sent{}, counts: map[string]int{}}
}

// end finds an end's record, which begins at the given PSN.
func (c *checker) end(conn int32, end End, start uint32) *sent {
	key := [2]int32{conn, int32(end)}
	if c.ends[key] == nil {
		c.ends[key] = &sent{start: start, msn: []uint32{0}}
	}
	return c.ends[key]
}

// place turns a PSN into a distance from the start PSN, within half the PSN space of what was seen last.
func (s *sent) place(psn uint32) int {
	d := (psn - s.start - s.high) & 0xffffff
	return int(s.high) + int(int32(d<<8)>>8)
}

// check takes the next packet of an RC or XRC connection; start are the ends' start PSNs.
func (c *checker) check(e *Event, start [2]uint32) error {
	p := &e.Packet
	op := p.Opcode & 0x1f
	switch {
	case p.Opcode == packet.CNP:
		s := c.end(e.Conn, 1-e.From, start[1-e.From])
		c.counts["CNP"]++
		if r := c.end(e.Conn, e.From, start[e.From]); s.high == 0 && r.high == 0 {
			return fmt.Errorf("a CNP to a QP that neither sent nor was asked")
		}
		return nil
	case op <= 0x0c || op == 0x13 || op == 0x14:
		return c.request(e, c.end(e.Conn, e.From, start[e.From]))
	}
	return c.response(e, c.end(e.Conn, 1-e.From, start[1-e.From]))
}

func (c *checker) request(e *Event, s *sent) error {
	op := e.Packet.Opcode & 0x1f
	at, span := s.place(e.Packet.PSN), 1
	state := psnState{delivered: !e.Lost, last: true}
	switch {
	case op == 0x0c:
		span = int(max(1, (e.DMALength+c.mtu-1)/c.mtu))
		state.read = true
	case op >= 0x13:
		state.atomic = true
	default:
		state.recvs = op == 0x00 || op == 0x04 || op == 0x05
		state.last = op != 0x00 && op != 0x01 && op != 0x06 && op != 0x07
		if payload := e.Packet.ICRC - uint32(e.Packet.Payload); !state.last && payload != c.mtu {
			return fmt.Errorf("%v carries %d octets, the path MTU is %d", e.Packet.Opcode, payload, c.mtu)
		}
	}
	if state.last && !e.AckReq {
		return fmt.Errorf("%v without AckReq", e.Packet.Opcode)
	}
	if at < 0 {
		return fmt.Errorf("%v has PSN %d, the start PSN is %d", e.Packet.Opcode, e.Packet.PSN, s.start)
	}
	if again := at < int(s.high); c.strict && (again != e.Resent || at > int(s.high)) {
		return fmt.Errorf("%v has PSN start+%d, high is %d, resent: %v", e.Packet.Opcode, at, s.high, e.Resent)
	}
	if err := c.sequence(s, at, at+span); err != nil {
		return fmt.Errorf("%v: %w", e.Packet.Opcode, err)
	}
	c.counts["request"]++
	if e.Resent {
		c.counts["resent"]++
	}
	for int(s.high) < at+span {
		s.psns = append(s.psns, psnState{})
		s.high++
	}
	for i := at; i < at+span; i++ {
		was, is := &s.psns[i], state
		is.last = is.last && i == at+span-1
		is.delivered, is.answered, is.resent = is.delivered || was.delivered, was.answered, e.Resent || was.resent
		if was.delivered && (is.last != was.last || is.read != was.read || is.atomic != was.atomic) {
			return fmt.Errorf("PSN start+%d was %+v, becomes %+v", i, *was, is)
		}
		*was = is
	}
	return nil
}

// sequence holds requesters to go-back-N: a request follows the one before, or the requester's oldest unacknowledged PSN comes next. That
// is one that the tap has seen acknowledged at the most, and never lies before the one from last time.
func (c *checker) sequence(s *sent, at, next int) error {
	if !c.strict || at == s.next {
		s.next = next
		return nil
	}
	if at < s.back || at > s.acked {
		return fmt.Errorf("PSN start+%d comes after start+%d; acknowledged is start+%d, the requester last went back to start+%d",
			at, s.next-1, s.acked, s.back)
	}
	if at < s.next {
		c.counts["back"]++
	}
	if at < s.acked {
		c.counts["back behind the acknowledged"]++
	}
	s.next, s.back = next, at
	return nil
}

// completed counts the messages that end before a PSN, all of which must have been delivered.
func (s *sent) completed(before int) (msn uint32, err error) {
	for n := len(s.msn); n <= before; n++ {
		last := &s.psns[n-1]
		if !last.delivered {
			return 0, fmt.Errorf("PSN start+%d is acknowledged, but was not delivered", n-1)
		}
		ends := uint32(0)
		if last.last {
			ends = 1
		}
		s.msn = append(s.msn, s.msn[n-1]+ends)
	}
	return s.msn[before], nil
}

// completedAtMost counts the messages that may be complete: those before the first PSN that was not delivered.
func (s *sent) completedAtMost() uint32 {
	n := len(s.msn)
	for n <= len(s.psns) && s.psns[n-1].delivered {
		n++
	}
	msn, _ := s.completed(n - 1)
	return msn
}

func (c *checker) response(e *Event, s *sent) error {
	at, op := s.place(e.Packet.PSN), e.Packet.Opcode&0x1f
	if at < 0 || at >= int(s.high) {
		return fmt.Errorf("%v has PSN start+%d, %d were sent", e.Packet.Opcode, at, s.high)
	}
	before := at + 1
	switch {
	case op == 0x11 && e.Syndrome>>5 == 0:
		c.counts["ACK"]++
	case op == 0x11:
		before = at
		c.counts[fmt.Sprintf("NAK %d", e.Syndrome>>5)]++
		if e.Syndrome>>5 == 1 && !(s.psns[at].recvs && s.psns[at].delivered) {
			return fmt.Errorf("RNR NAK of a PSN that needs no receive buffer")
		}
		if e.Syndrome>>5 == 3 && at+1 >= int(s.high) {
			return fmt.Errorf("NAK of the last PSN that was sent: nothing can be out of sequence")
		}
	case op == 0x12:
		c.counts["atomic"]++
		if !s.psns[at].atomic {
			return fmt.Errorf("ATOMIC Acknowledge of a PSN that is no atomic's")
		}
	default:
		c.counts["read"]++
		if !s.psns[at].read {
			return fmt.Errorf("%v has PSN start+%d, which no READ Request took", e.Packet.Opcode, at)
		}
		for !s.psns[before-1].last { // the whole READ
			before++
		}
		if end := op == 0x0f || op == 0x10; end != s.psns[at].last {
			return fmt.Errorf("%v at PSN start+%d, the READ's last is start+%d", e.Packet.Opcode, at, before-1)
		}
	}
	if op != 0x11 && !e.Lost {
		s.psns[at].answered = true
	}
	if op == 0x11 {
		if c.strict && before < s.said { // an ACK of a duplicate, too, is for the latest PSN (IBTA 9.7.5.1.2)
			return fmt.Errorf("%v of start+%d after one of start+%d", e.Packet.Opcode, at, s.said-1)
		}
		s.said = before
	} else if s.psns[at].answered {
		c.counts["answered again"]++
	}
	if acked := before; !e.Lost {
		if op != 0x11 { // of a READ, the responses up to this one
			acked = at + 1
		}
		s.acked = max(s.acked, acked)
	}
	msn, err := s.completed(before)
	if err != nil {
		return fmt.Errorf("%v of start+%d: %w", e.Packet.Opcode, at, err)
	}
	latest := msn
	if op != 0x11 && s.psns[at].resent { // the answer to a duplicate has the MSN of the time
		latest = s.completedAtMost()
	}
	if op != 0x0e && (e.MSN < msn || e.MSN > latest) {
		return fmt.Errorf("%v of start+%d has MSN %d, %d messages were complete then, %d are now", e.Packet.Opcode, at, e.MSN, msn, latest)
	}
	return nil
}
