package dataplane_test

import (
	"testing"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// sick is a connection through a gateway that follows it: every tenth burst, the responder refuses its second half, which is sent again.
type sick struct {
	*testkit.Rig
	data, ack, cnp                        []byte
	psn                                   uint32
	rounds, requests, responses, sentCNPs uint64
	resent, copied                        uint64
	copy                                  *dataplane.HealthCopy
	request                               *dataplane.Snapshot
}

const sickBurst = 8

func newSick(t *testing.T) *sick {
	t.Helper()
	s := &sick{psn: packet.PSNMask - 100, copy: &dataplane.HealthCopy{Connections: make([]health.Connection, 0, 4)}}
	s.request = &dataplane.Snapshot{Health: s.copy}
	s.Rig = testkit.New(t, testkit.Setup{Static: knownQPs(t), Forget: true, Change: func(c *dataplane.Config) { c.Followed = 16 }})
	s.data = testkit.RoCE{Src: sender4, Dst: receiver4, Opcode: packet.RCSendOnly, DestQP: 100, Size: 500}.Frame()
	s.ack = testkit.RoCE{Src: receiver4, Dst: sender4, Opcode: packet.RCAcknowledge, DestQP: sourceQP}.Frame()
	s.cnp = testkit.RoCE{Src: receiver4, Dst: sender4, Opcode: packet.CNP, DestQP: sourceQP, Size: 74}.Frame()
	s.Inject(t, fabric, other(sender4, receiver4, packet.ProtoTCP, 100))
	s.Settle()
	s.Advance(2e9) // it begins with a wait after the first frame
	return s
}

// send passes a packet on: the octet is an ACK's syndrome.
func (s *sick) send(t *testing.T, port int, frame []byte, psn uint32, syndrome byte) {
	const bth = packet.EthernetLen + packet.IPv4Len + packet.UDPLen
	frame[bth+9], frame[bth+10], frame[bth+11] = byte(psn>>16), byte(psn>>8), byte(psn)
	if port == wan {
		frame[bth+packet.BTHLen] = syndrome
		s.responses++
	} else {
		s.requests++
	}
	s.Inject(t, port, frame)
}

func (s *sick) round(t *testing.T) {
	s.snapshot()
	s.rounds++
	for n := range uint32(sickBurst) {
		s.send(t, fabric, s.data, s.psn+n, 0)
	}
	s.step()
	if s.rounds%10 == 0 {
		s.send(t, wan, s.ack, s.psn+sickBurst/2, 3<<5)
		s.step()
		for n := uint32(sickBurst / 2); n < sickBurst; n++ {
			s.send(t, fabric, s.data, s.psn+n, 0)
			s.resent++
		}
		s.Inject(t, wan, s.cnp)
		s.sentCNPs++
		s.step()
	}
	s.send(t, wan, s.ack, s.psn+sickBurst-1, 0)
	s.step()
	s.psn += sickBurst
}

func (s *sick) step() {
	s.Advance(30_000)
	s.Plane.Worker(0).Step()
}

// snapshot asks for copies all the while.
func (s *sick) snapshot() {
	w := s.Plane.Worker(0)
	if w.Asked(s.request) {
		return
	}
	s.copied += uint64(len(s.copy.Connections))
	s.copy.Connections, s.copy.At, s.copy.End = s.copy.Connections[:0], 0, false
	w.Ask(s.request)
}

// TestFollowedConnection: a worker that follows a connection and copies it allocates nothing for a packet, passes every frame, and counts each one once.
func TestFollowedConnection(t *testing.T) {
	s := newSick(t)
	for range 20 {
		s.round(t)
	}
	if n := testing.AllocsPerRun(1000, func() { s.round(t) }); n != 0 {
		t.Errorf("%v allocations a round", n)
	}
	for !s.copy.End {
		s.step()
	}
	s.snapshot()
	for !s.copy.End {
		s.step()
	}
	if s.copied == 0 || len(s.copy.Connections) != 1 {
		t.Fatalf("%d copies, at the end of %d connections", s.copied, len(s.copy.Connections))
	}
	c := &s.copy.Connections[0]
	h := &c.Half[0]
	if h.Requests.Packets != s.requests || h.Responses.Packets != s.responses || c.Reaction[0].CNPs != s.sentCNPs {
		t.Errorf("%d requests, %d responses, %d CNPs; want %d, %d, %d", h.Requests.Packets, h.Responses.Packets, c.Reaction[0].CNPs, s.requests, s.responses, s.sentCNPs)
	}
	if got := h.Retransmitted[health.NAKSequence].Packets; got != s.resent || h.Retransmissions().Packets != s.resent {
		t.Errorf("%d packets were sent again for a NAK, %d in all; want %d", got, h.Retransmissions().Packets, s.resent)
	}
	if h.LostDownstream != s.rounds/10 || h.LostUpstream != 0 || h.Messages[health.Send] != s.requests-s.resent {
		t.Errorf("lost %d and %d, %d messages; want %d, 0, %d", h.LostDownstream, h.LostUpstream, h.Messages[health.Send], s.rounds/10, s.requests-s.resent)
	}
	s.Drain()
	s.Close(t)
}
