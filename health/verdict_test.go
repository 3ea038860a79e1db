package health

import (
	"slices"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// story makes connections by hand, for verdicts.
type story struct {
	now int64
	b   Builder
}

// connection is a connection between two hosts of a prefix.
func (s *story) connection(from, to byte) *Connection {
	end := func(host byte) Endpoint {
		return Endpoint{Addr: packet.AddrFrom4([]byte{10, 0, host / 10, host}), QP: uint32(host) + 16}
	}
	return &Connection{Ends: Ends{End: [2]Endpoint{end(from), end(to)}}, Paired: true}
}

// send is a request after a time, and its PSN.
func (s *story) send(c *Connection, after int64, psn uint32) { s.sized(c, after, psn, 1024) }

// sized is a request with so many bytes of payload.
func (s *story) sized(c *Connection, after int64, psn, data uint32) {
	s.now += after
	c.Observe(0, &Packet{Time: s.now, PSN: psn, Len: 76 + data, Data: data, Opcode: packet.RCSendOnly, AckReq: true})
}

// answer is an ACK or NAK.
func (s *story) answer(c *Connection, after int64, psn uint32, syndrome uint8) {
	s.now += after
	c.Observe(1, &Packet{Time: s.now, PSN: psn, Len: 66, Opcode: packet.RCAcknowledge, HasAETH: true, Syndrome: syndrome})
}

const us = ms / 1000

// exchange sends packets from a PSN on, each of which is acknowledged.
func (s *story) exchange(c *Connection, from, n uint32, rtt, gap int64) {
	for psn := from; psn < from+n; psn++ {
		s.send(c, gap, psn)
		s.answer(c, rtt, psn, 0x1f)
	}
}

func (s *story) report(pauses []Pauses, all ...*Connection) *Report {
	for _, c := range all {
		c.snapshot(s.now)
		s.b.Add(c, "")
	}
	return s.b.Report(pauses, 0)
}

// cnps sends at a rate, with a CNP at times, after each of which the gap between packets is slower for a while.
func cnps(slower int64) func(s *story) *Report {
	return func(s *story) *Report {
		c := s.connection(1, 2)
		psn, gap, until := uint32(0), 100*us, int64(0)
		for ; s.now < 2000*ms; psn++ {
			g := gap
			if s.now < until {
				g *= slower
			}
			s.exchange(c, psn, 1, 10*us, g)
			if psn%1500 == 1400 {
				c.notify(0, s.now)
				until = s.now + 30*ms
			}
			if psn%1500 > 1400 && psn%1500 < 1404 {
				c.notify(0, s.now)
			}
		}
		return s.report(nil, c)
	}
}

// receivers acknowledge after the same time but the last one.
func receivers(last int64) func(s *story) *Report {
	return func(s *story) *Report {
		var all []*Connection
		for host := byte(11); host < 16; host++ {
			rtt := 20 * us
			if host == 15 {
				rtt = last
			}
			c := s.connection(1, host)
			s.exchange(c, 0, 64, rtt, 10*us)
			all = append(all, c)
		}
		return s.report(nil, all...)
	}
}

// refusals sends packets of which the last is answered with a syndrome, and with an ACK if it is sent again after some ms.
func refusalOf(syndrome uint8, again int64) func(s *story) *Report {
	return func(s *story) *Report {
		c := s.connection(1, 2)
		s.exchange(c, 0, 64, 20*us, 10*us)
		s.send(c, 10*us, 64)
		s.answer(c, 20*us, 64, syndrome)
		if again > 0 {
			s.exchange(c, 64, 64, 20*us, again)
		}
		return s.report(nil, c)
	}
}

// silence sends the last packet a number of times; answered says whether there is an ACK in the end.
func silence(times int, every int64, answered bool) func(s *story) *Report {
	return func(s *story) *Report {
		c := s.connection(1, 2)
		s.exchange(c, 0, 16, 20*us, 10*us)
		for range times {
			s.send(c, every, 16)
		}
		if answered {
			s.answer(c, 20*us, 16, 0x1f)
			s.exchange(c, 17, 16, 20*us, 10*us)
		}
		s.now += 1000 * ms
		return s.report(nil, c)
	}
}

func paused(frames uint64) func(s *story) *Report {
	return func(s *story) *Report {
		c := s.connection(1, 2)
		s.exchange(c, 0, 64, 20*us, 10*us)
		var all []Pauses
		if frames > 0 {
			all = append(all, Pauses{From: "02:00:00:00:00:01", Frames: frames, First: 1, Last: s.now})
		}
		return s.report(all, c)
	}
}

// apart is a connection whose directions are in different records, as two workers follow them, or of which one isn't seen.
func apart(both bool) func(s *story) *Report {
	return func(s *story) *Report {
		there, back := s.connection(1, 2), s.connection(2, 1)
		for psn := range uint32(200) {
			s.send(there, 100*us, psn)
			if both {
				back.Observe(0, &Packet{Time: s.now, PSN: psn, Len: 66, Opcode: packet.RCAcknowledge, HasAETH: true, Syndrome: 0x1f})
			}
		}
		if both {
			return s.report(nil, there, back)
		}
		return s.report(nil, there)
	}
}

// marked sends packets with a CNP for each, as a queue is full of them, and after that goes on at a tenth of the rate, without CNPs for longer than a run lasts.
func marked(packets uint32) func(s *story) *Report {
	return func(s *story) *Report {
		c := s.connection(1, 2)
		for psn := range packets {
			s.exchange(c, psn, 1, us, 4*us)
			c.notify(0, s.now)
		}
		s.exchange(c, packets, 200, us, 40*us)
		c.notify(0, s.now)
		return s.report(nil, c)
	}
}

// outlived sends packets with a CNP for each, and CNPs go on to come after the last one.
func outlived(s *story) *Report {
	c := s.connection(1, 2)
	for psn := range uint32(400) {
		s.exchange(c, psn, 1, us, 4*us)
		c.notify(0, s.now)
	}
	for range 400 {
		s.now += 5 * us
		c.notify(0, s.now)
	}
	return s.report(nil, c)
}

// windows sends two packets, each with an opcode, which are acknowledged soon, and the next ones 40 ms later, so many times.
func windows(opcode packet.Opcode, times uint32) func(s *story) *Report {
	return func(s *story) *Report {
		c := s.connection(1, 2)
		for psn := uint32(0); psn < 2*times; psn += 2 {
			s.now += 40 * ms
			for n := range uint32(2) {
				c.Observe(0, &Packet{Time: s.now + int64(n), PSN: psn + n, Len: 1100, Data: 1024, Opcode: opcode, AckReq: true})
			}
			s.answer(c, 5*us, psn+1, 0x1f)
		}
		return s.report(nil, c)
	}
}

// pauses sends messages of four packets, 40 ms apart, for 12 s. Each is acknowledged at once.
func pauses(s *story) *Report {
	c := s.connection(1, 2)
	for psn := uint32(0); psn < 1200; psn += 4 {
		s.now += 40 * ms
		for n, opcode := range []packet.Opcode{packet.RCWriteFirst, packet.RCWriteMiddle, packet.RCWriteMiddle, packet.RCWriteLast} {
			c.Observe(0, &Packet{Time: s.now + int64(n), PSN: psn + uint32(n), Len: 1100, Data: 1024, Opcode: opcode, AckReq: n == 3})
		}
		s.answer(c, 5*us, psn+3, 0x1f)
	}
	return s.report(nil, c)
}

// again sends the same packets after each time-out, of which the first one passes every other time, and no answer does.
func again(s *story) *Report {
	c := s.connection(1, 2)
	for round := range uint32(6) {
		for psn := round % 2; psn < 20; psn++ {
			s.send(c, 10*us, psn)
		}
		s.now += 20 * ms
	}
	return s.report(nil, c)
}

// responses are those of READs of which the requests don't pass, for a time.
func responses(every int64) func(s *story) *Report {
	return func(s *story) *Report {
		c := s.connection(1, 2)
		for psn := range uint32(200) {
			s.now += every
			c.Observe(1, &Packet{Time: s.now, PSN: psn, Len: 1100, Data: 1024, Opcode: packet.RCReadRespMiddle})
		}
		return s.report(nil, c)
	}
}

// large sends some small packets, which are acknowledged, and then a large one again and again, to which a NAK answers once, or an RNR NAK each time; 0: nothing does.
func large(small uint32, syndrome uint8) func(s *story) *Report {
	return func(s *story) *Report {
		c := s.connection(1, 2)
		for psn := range small {
			s.sized(c, 10*us, psn, 64)
			s.answer(c, 20*us, psn, 0x1f)
		}
		s.sized(c, 10*us, small, 2048)
		s.sized(c, us, small+1, 64)
		if syndrome != 0 {
			s.answer(c, 20*us, small, syndrome)
		}
		for range 8 {
			s.sized(c, 20*ms, small, 2048)
			s.sized(c, us, small+1, 64)
			if syndrome>>5 == 1 {
				s.answer(c, 20*us, small, syndrome)
			}
		}
		s.now += 1000 * ms
		return s.report(nil, c)
	}
}

// twice sends messages of so many packets, each of which comes again at once, as from a mirror of two ports.
func twice(packets uint32) func(s *story) *Report {
	return func(s *story) *Report {
		c := s.connection(1, 2)
		for first := uint32(0); first < 4*packets; first += packets {
			for range 2 {
				for psn := first; psn < first+packets; psn++ {
					s.send(c, us/50, psn)
				}
			}
			s.answer(c, 20*us, first+packets-1, 0x1f)
			s.now += 50 * us
		}
		return s.report(nil, c)
	}
}

// limited sends two packets at a time, with four on their way at a round trip of 2 ms. After a while there is a CNP for each two.
func limited(s *story) *Report {
	c := s.connection(1, 2)
	for psn := uint32(0); psn < 4000; psn += 2 {
		s.send(c, us, psn)
		s.send(c, us, psn+1)
		if psn > 1000 {
			c.notify(0, s.now)
		}
		s.now += ms - 3*us
		if psn >= 2 {
			s.answer(c, 0, psn-1, 0x1f)
		}
		s.now += us
	}
	return s.report(nil, c)
}

// answeredLate is a packet that is acknowledged once it was sent four times.
func answeredLate(s *story) *Report {
	r := silence(4, 17_000*ms, true)(s)
	r.Verdicts = slices.DeleteFunc(r.Verdicts, func(v Verdict) bool { return v.Name == LossDownstream })
	return r
}

// pages has READs whose responder brings in the pages first.
func pages(s *story) *Report {
	c := s.connection(1, 2)
	s.exchange(c, 0, 16, 20*us, 10*us)
	for range 5 {
		s.now += 2 * ms
		c.Observe(0, &Packet{Time: s.now, PSN: 16, Len: 74, Message: 1024, Opcode: packet.RCReadRequest, AckReq: true})
		s.answer(c, 20*us, 16, 0x2e)
	}
	return s.report(nil, c)
}

// farAway has 100,000 packets on their way when a NAK asks for the eleventh.
func farAway(s *story) *Report {
	c := s.connection(1, 2)
	s.exchange(c, 0, 16, 20*us, 10*us)
	const from, n, lost = 16, 100_000, 10
	for round := range uint32(2) {
		for psn := from + lost*round; psn < from+n; psn++ {
			s.send(c, us/4, psn)
		}
		if round == 0 {
			s.answer(c, us, from+lost, 0x60)
		}
	}
	s.answer(c, 20*us, from+n-1, 0x1f)
	return s.report(nil, c)
}

// lateNAKs is seen near the responder, 300 ms from the requester, which goes back to the third of 16 packets twice.
func lateNAKs(s *story) *Report {
	c := s.connection(1, 2)
	s.exchange(c, 0, 16, 20*us, 10*us)
	for psn := uint32(16); psn < 48; psn += 16 {
		for _, from := range []uint32{psn, psn + 2} {
			s.now += 300 * ms
			for n := from; n < psn+16; n++ {
				s.send(c, us, n)
			}
			if from == psn {
				s.answer(c, 5*us, psn+2, 0x60)
			}
		}
		s.answer(c, 5*us, psn+15, 0x1f)
	}
	return s.report(nil, c)
}

// TestSaidOtherwise: what a verdict says of READs that are refused, and that a window that limits for less than 10 s is noted.
func TestSaidOtherwise(t *testing.T) {
	r := pages(&story{now: ms})
	if len(r.Verdicts) != 1 || r.Verdicts[0].Name != NotReady || !strings.Contains(r.Verdicts[0].Evidence, "on-demand paging") {
		t.Errorf("READs that wait for pages: %+v", r.Verdicts)
	}
	if r = farAway(&story{now: ms}); r.Summary.Retransmitted.Packets != 99_990 {
		t.Errorf("100,000 packets were on their way, and 99,990 are sent again: %+v", r.Summary.Totals)
	}
	if r = lateNAKs(&story{now: ms}); r.Summary.Causes["nak-sequence-error"].Packets != 2*14 || r.Summary.LostDownstream != 2 {
		t.Errorf("NAKs that are obeyed 300 ms later: %+v", r.Summary.Totals)
	}
	r = windows(packet.RCWriteMiddle, 100)(&story{now: ms})
	if len(r.Verdicts) > 0 || len(r.Notes) != 1 || r.Notes[0].Name != NoteWindow {
		t.Errorf("a window for 4 s: verdicts %+v, notes %+v; want a note", r.Verdicts, r.Notes)
	}
}

// TestEachVerdict: each verdict is given when it should be, and no other.
func TestEachVerdict(t *testing.T) {
	given := map[string]bool{WrongICRC: true, Unreachable: true} // by package replay
	for _, c := range []struct {
		name    string
		verdict string
		story   func(s *story) *Report
	}{
		{"the rate stays after CNPs", IgnoresCNP, cnps(1)},
		{"the rate falls after CNPs", "", cnps(4)},
		{"CNPs for what waited in a queue, which ends", "", marked(80)},
		{"responses without a request", Asymmetric, responses(100 * us)},
		{"responses to a request from before the capture", "", responses(us)},
		{"one receiver of five is slow", SlowReceiver, receivers(2 * ms)},
		{"all receivers are alike", "", receivers(22 * us)},
		{"pauses", PFCPauses, paused(1000)},
		{"no pauses", "", paused(0)},
		{"RNR NAK, then the packet again", NotReady, refusalOf(0x2c, ms)},
		{"NAK sequence error, then the packet again: it was lost, the receiver was ready", LossDownstream, refusalOf(0x60, ms)},
		{"no answer to six attempts", NoAnswer, silence(6, 20*ms, false)},
		{"no answer to three time-outs of 17 s", NoAnswer, silence(4, 17_000*ms, false)},
		{"an answer after three time-outs of 17 s", "", answeredLate},
		{"one attempt, answered", "", silence(1, 20*ms, true)},
		{"NAK remote access error", Refused, refusalOf(0x62, 0)},
		{"an ACK, then the next packets: nothing is refused", "", refusalOf(0x1f, 0)},
		{"one direction only", Asymmetric, apart(false)},
		{"two directions in two records", "", apart(true)},
		{"small packets pass, and no large one: something behind it was answered", BlackHole, large(4, 0x60)},
		{"many small packets passed, and then no large one", BlackHole, large(16, 0)},
		{"few small packets passed, and then nothing: the peer may be down", NoAnswer, large(4, 0)},
		{"a large packet for which no buffer was there has come", NotReady, large(4, 0x2c)},
		{"no answer to time-outs of 2.5 ms", NoAnswer, silence(8, 5*ms/2, false)},
		{"a window on a long path, seen near the responder", WindowLimit, windows(packet.RCWriteMiddle, 300)},
		{"a sender that pauses for 40 ms after each message", "", pauses},
		{"a sender that has two messages at a time", "", windows(packet.RCWriteOnly, 300)},
		{"CNPs to a sender that does not slow down, and more after its last packet", IgnoresCNP, outlived},
		{"each message of 64 packets comes twice, sooner than it can be sent again", Duplication, twice(64)},
		{"CNPs to a sender that waits for ACKs most of the time", "", limited},
		{"one direction only, in which the same packets come again and again", Unexplained, again},
		{"answers come when the time-out has long expired", ShortTimeOut, hasty},
		{"a packet is asked for that did not pass", LossUpstream, lost(before)},
		{"a packet is asked for that a queue here has dropped", GatewayDrops, lost(here)},
		{"a time-out though the ACK has passed", AckLoss, resentAnyway},
		{"packets pass behind later ones", Reordering, overtaking},
		{"every fourth packet comes twice", Duplication, doubled},
		{"packets are acknowledged that were not captured", Incomplete, skipped(nil)},
		{"packets are acknowledged that did not pass a gateway", PartialPath, skipped([]string{"wan"})},
		{"packets are marked CE, and no CNP comes", CENoCNP, markedCE},
		{"a READ is answered with packets of another path MTU", MTUDiffers, unlike},
		{"a pause without a break", PFCStorm, held},
		{"RoCE v1", RoCEv1, unrouted},
	} {
		given[c.verdict] = true
		t.Run(c.name, func(t *testing.T) {
			r := c.story(&story{now: ms})
			other := slices.ContainsFunc(r.Verdicts, func(v Verdict) bool { return v.Name != c.verdict })
			if other || c.verdict != "" && !slices.ContainsFunc(r.Verdicts, func(v Verdict) bool { return v.Name == c.verdict && v.Advice != "" }) {
				t.Errorf("got %+v, want %q", r.Verdicts, c.verdict)
			}
		})
	}
	for _, name := range Names {
		if !given[name] {
			t.Errorf("%s: it is never given", name)
		}
	}
}

// TestDatagramsWithoutAnswer: many datagrams to a host from which none comes are noted. Answers may come in another network, but not in another tenant's, who has both directions.
func TestDatagramsWithoutAnswer(t *testing.T) {
	const one, another packet.Scope = 1 << 16, 2 << 16
	type sent struct {
		n     int
		back  bool
		scope packet.Scope
	}
	for _, c := range []struct {
		name string
		sent []sent
		want int
	}{
		{"many", []sent{{n: 64}}, 1},
		{"few", []sent{{n: 63}}, 0},
		{"with an answer", []sent{{n: 64}, {n: 1, back: true}}, 0},
		{"with an answer in another network", []sent{{64, false, one}, {1, true, another}}, 0},
		{"of two tenants", []sent{{64, false, one}, {65, false, another}}, 2},
		{"beside a tenant with answers", []sent{{64, false, one}, {64, false, another}, {1, true, another}}, 1},
	} {
		var s story
		var all []*Connection
		for _, x := range c.sent {
			u := s.connection(1, 2)
			if x.back {
				u = s.connection(2, 1)
			}
			u.Scope = x.scope
			for psn := range x.n {
				s.now += ms
				u.Observe(0, &Packet{Time: s.now, PSN: uint32(psn), Len: 100, Data: 20, Opcode: packet.UDSendOnly})
			}
			all = append(all, u)
		}
		notes := s.report(nil, all...).Notes
		if len(notes) != c.want || c.want > 0 && notes[0].Name != NoteDatagrams {
			t.Errorf("%s: %+v, want %d", c.name, notes, c.want)
		}
	}
}
