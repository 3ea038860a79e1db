package health

import (
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// classes are two hosts that send to a third, with a DSCP each; every 50th packet of the first one is lost behind here, and every so many of the second one.
func classes(dscp [2]uint8, packets, lost uint32) func(s *story) *Report {
	return func(s *story) *Report {
		var all []*Connection
		for i, n := range [2]uint32{400, packets} {
			c := s.connection(byte(i)+1, 3)
			every := [2]uint32{50, lost}[i]
			for psn := range n {
				send := func(psn uint32) {
					s.now += 10 * us
					c.Observe(0, &Packet{Time: s.now, PSN: psn, Len: 1100, Data: 1024, Opcode: packet.RCSendOnly, AckReq: true, DSCP: dscp[i]})
				}
				if send(psn); every > 0 && psn%every == every-1 {
					send(psn + 1)
					s.answer(c, 20*us, psn, 0x60)
					send(psn)
					send(psn + 1)
					s.now += 20 * us
				}
				s.answer(c, 20*us, psn, 0x1f)
			}
			all = append(all, c)
		}
		return s.report(nil, all...)
	}
}

// foreign sends from PSN 5000 on to a peer that waits for another one, for which its NAK asks.
func foreign(asked uint32) func(s *story) *Report {
	return func(s *story) *Report {
		c := s.connection(1, 2)
		s.send(c, us, 5000)
		s.send(c, us, 5001)
		s.answer(c, 20*us, asked, 0x60)
		for range 8 {
			s.send(c, 20*ms, 5000)
			s.send(c, us, 5001)
		}
		s.now += 1000 * ms
		return s.report(nil, c)
	}
}

// beyond sends the same two packets again and again to a peer that expects a later PSN, and acknowledges all before it.
func beyond(s *story) *Report {
	c := s.connection(1, 2)
	for range 8 {
		s.send(c, 20*ms, 100)
		s.send(c, us, 101)
		s.answer(c, 20*us, 4999, 0x1f)
	}
	return s.report(nil, c)
}

// halted stops with a packet, long before another connection does.
func halted(opcode packet.Opcode) func(s *story) *Report {
	return func(s *story) *Report {
		c, other := s.connection(1, 2), s.connection(1, 3)
		s.exchange(c, 0, 16, 20*us, 10*us)
		c.Observe(0, &Packet{Time: s.now, PSN: 16, Len: 1100, Data: 1024, Opcode: opcode})
		if opcode == packet.RCWriteOnly {
			s.answer(c, 20*us, 16, 0x1f)
		}
		s.exchange(other, 0, 16, 20*us, 1000*ms)
		return s.report(nil, c, other)
	}
}

// datagramsWith are those to a host that doesn't answer, with a TTL.
func datagramsWith(hops uint8) func(s *story) *Report {
	return func(s *story) *Report {
		c := s.connection(1, 2)
		for psn := range uint32(64) {
			s.now += ms
			c.Observe(0, &Packet{Time: s.now, PSN: psn, Len: 100, Data: 20, Opcode: packet.UDSendOnly, Hops: hops})
		}
		return s.report(nil, c)
	}
}

// TestSaid: what is said beside verdicts and notes, if there is a proof of it.
func TestSaid(t *testing.T) {
	for _, c := range []struct {
		name  string
		says  string
		is    bool
		story func(s *story) *Report
	}{
		{"only one DSCP loses packets", "it has DSCP 0, and what goes to 10.0.0.3 with DSCP 26 loses nothing", true, classes([2]uint8{0, 26}, 1000, 0)},
		{"both DSCPs lose packets", "loses nothing", false, classes([2]uint8{0, 26}, 1000, 100)},
		{"too few packets to know", "loses nothing", false, classes([2]uint8{0, 26}, 100, 0)},
		{"the same DSCP", "loses nothing", false, classes([2]uint8{26, 26}, 1000, 0)},
		{"a NAK of a PSN that is none of the requester's", "asks for PSN 900, which the requester hasn't", true, foreign(900)},
		{"a NAK of one that it has sent", "the requester hasn't", false, foreign(5000)},
		{"answers to what was never sent", Unexplained + ": 14 of 16 requests (87.5 %) were sent again: 14 unknown; the answers acknowledge PSNs up to 4999", true, beyond},
		{"and no clocks differ", "clocks", false, beyond},
		{"a requester stops in the midst of a message", "in the midst of a message", true, halted(packet.RCWriteFirst)},
		{"a requester stops at the end of one", "in the midst of a message", false, halted(packet.RCWriteOnly)},
		{"datagrams for one hop", "a TTL or hop limit of 1", true, datagramsWith(1)},
		{"datagrams for many", "a TTL or hop limit of 1", false, datagramsWith(64)},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.story(&story{now: ms})
			text := r.Conclusion
			for _, v := range r.Verdicts {
				text += "; " + v.Name + ": " + v.Evidence
			}
			for _, n := range r.Notes {
				text += "; " + n.Text
			}
			if strings.Contains(text, c.says) != c.is {
				t.Errorf("it says %q; %q in it: want %v", text, c.says, c.is)
			}
		})
	}
}
