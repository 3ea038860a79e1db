package health

import (
	"slices"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// The places where a packet is lost.
const (
	before = iota
	here
)

// lost asks for every 20th packet, which was lost somewhere, and sends it and the next one again.
func lost(where int) func(s *story) *Report {
	return func(s *story) *Report {
		c := s.connection(1, 2)
		for psn := uint32(0); psn < 400; psn++ {
			if psn%20 != 10 {
				s.exchange(c, psn, 1, 20*us, 10*us)
				continue
			}
			if where == here {
				s.send(c, 10*us, psn)
				c.Half[0].DroppedHere[0]++
				c.Half[0].own.add(psn, s.now)
			}
			s.send(c, us, psn+1)
			s.answer(c, 20*us, psn, 0x60)
			s.exchange(c, psn, 2, 20*us, us)
			psn++
		}
		return s.report(nil, c)
	}
}

// resentAnyway are ACKs that pass, and after which the packet is sent again.
func resentAnyway(s *story) *Report {
	c := s.connection(1, 2)
	for psn := uint32(0); psn < 200; psn++ {
		s.exchange(c, psn, 1, 20*us, 10*us)
		if psn%20 == 19 {
			s.exchange(c, psn, 1, 20*us, 20*ms)
		}
	}
	return s.report(nil, c)
}

// hasty sends four packets, and all of them again after half of a round trip.
func hasty(s *story) *Report {
	c := s.connection(1, 2)
	s.exchange(c, 0, 16, 2*ms, 10*us)
	for psn := uint32(16); psn < 80; psn += 4 {
		for range 2 {
			for n := range uint32(4) {
				s.send(c, us, psn+n)
			}
			s.now += ms
		}
		s.answer(c, 0, psn+3, 0x1f)
		s.answer(c, ms, psn+3, 0x1f)
	}
	return s.report(nil, c)
}

// overtaking are datagrams of a connection without answers, some behind the next one.
func overtaking(s *story) *Report {
	c := s.connection(1, 2)
	for psn := uint32(0); psn < 200; psn += 2 {
		pair := []uint32{psn, psn + 1}
		if psn%20 == 10 {
			slices.Reverse(pair)
		}
		for _, n := range pair {
			s.now += 10 * us
			c.Observe(0, &Packet{Time: s.now, PSN: n, Len: 1100, Data: 1024, Opcode: packet.UC | packet.RCSendOnly})
		}
	}
	return s.report(nil, c)
}

// doubled has every fourth packet twice.
func doubled(s *story) *Report {
	c := s.connection(1, 2)
	for psn := range uint32(64) {
		s.send(c, 10*us, psn)
		if psn%4 == 0 {
			s.send(c, us/10, psn)
		}
		s.answer(c, 20*us, psn, 0x1f)
	}
	return s.report(nil, c)
}

// skipped are packets that are acknowledged and didn't pass. in: the ports of a gateway, or nil.
func skipped(in []string) func(s *story) *Report {
	return func(s *story) *Report {
		c := s.connection(1, 2)
		for psn := range uint32(200) {
			if psn%20 == 10 {
				continue
			}
			s.send(c, 10*us, psn)
			s.answer(c, 20*us, psn, 0x1f)
		}
		s.b.Ports = in
		return s.report(nil, c)
	}
}

// markedCE are packets with a congestion mark, acknowledged, for long enough that a CNP would have come.
func markedCE(s *story) *Report {
	c := s.connection(1, 2)
	for psn := range uint32(200) {
		s.now += 100 * us
		c.Observe(0, &Packet{Time: s.now, PSN: psn, Len: 1100, Data: 1024, Opcode: packet.RCSendOnly, AckReq: true, CE: true})
		s.answer(c, 20*us, psn, 0x1f)
	}
	return s.report(nil, c)
}

// unlike writes with packets of 1,024 bytes, and its READ is answered with packets of 4,096.
func unlike(s *story) *Report {
	c := s.connection(1, 2)
	s.exchange(c, 0, 16, 20*us, 10*us)
	for n, o := range []packet.Opcode{packet.RCWriteFirst, packet.RCWriteMiddle, packet.RCWriteLast} {
		s.now += us
		c.Observe(0, &Packet{Time: s.now, PSN: 16 + uint32(n), Len: 1100, Data: 1024, Opcode: o, AckReq: n == 2})
	}
	s.answer(c, 20*us, 18, 0x1f)
	c.Observe(0, &Packet{Time: s.now + us, PSN: 19, Len: 74, Message: 8192, Opcode: packet.RCReadRequest})
	c.Observe(1, &Packet{Time: s.now + 20*us, PSN: 19, Len: 4170, Data: 4096, Opcode: packet.RCReadRespFirst, HasAETH: true, Syndrome: 0x1f})
	s.now += 21 * us
	return s.report(nil, c)
}

// held is a pause without a break.
func held(s *story) *Report {
	c := s.connection(1, 2)
	s.exchange(c, 0, 64, 20*us, 10*us)
	return s.report([]Pauses{{From: "02:00:00:00:00:01", Frames: 100, First: 1, Last: s.now, Priorities: []Paused{{Priority: 3, Time: storm, Longest: storm}}}}, c)
}

// unrouted are frames of RoCE v1.
func unrouted(s *story) *Report {
	s.b.Frames = &Frames{Unread: []Unread{{Reason: ReasonRoCEv1, Frames: 3, First: 1, RDMA: true}}}
	return s.report(nil)
}
