package replay

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// icmpError is a parsed ICMP error from a router, with the first octets of a datagram to a UDP port.
func icmpError(family, kind, code uint8, port uint16, mtu uint32) ([]byte, *packet.Parsed) {
	header := packet.IPv4Len
	if family == 6 {
		header = packet.IPv6Len
	}
	b := make([]byte, packet.ICMPLen+header+packet.UDPLen)
	b[0], b[1] = kind, code
	binary.BigEndian.PutUint32(b[4:], mtu)
	in := b[packet.ICMPLen:]
	p := &packet.Parsed{Kind: packet.IP, Family: family, Proto: packet.ProtoICMPv6, L4: packet.EthernetLen}
	if in[0], in[6] = 0x60, packet.ProtoUDP; family == 4 {
		in[0], in[6], in[9], p.Proto = 0x45, 0, packet.ProtoUDP, packet.ProtoICMP
	}
	binary.BigEndian.PutUint16(in[header+2:], port)
	return append(make([]byte, packet.EthernetLen), b...), p
}

// TestUnreachable: what ICMP errors say of RoCEv2 packets, and of no others.
func TestUnreachable(t *testing.T) {
	for _, c := range []struct {
		family, kind, code uint8
		port               uint16
		mtu                uint32
		says               string // "": nothing
	}{
		{4, 3, 0, 4791, 0, "no route"},
		{4, 3, 1, 4791, 0, "no route"},
		{4, 3, 3, 4791, 0, "nothing receives UDP port 4791"},
		{4, 3, 4, 4791, 1500, "an MTU of 1500"},
		{4, 3, 13, 4791, 0, "a filter"},
		{4, 11, 0, 4791, 0, "TTL"},
		{4, 11, 1, 4791, 0, ""}, // reassembly
		{4, 8, 0, 4791, 0, ""},
		{4, 3, 3, 53, 0, ""},
		{6, 1, 0, 4791, 0, "no route"},
		{6, 1, 1, 4791, 0, "a filter"},
		{6, 1, 4, 4791, 0, "nothing receives UDP port 4791"},
		{6, 2, 0, 4791, 1500, "an MTU of 1500"},
		{6, 3, 0, 4791, 0, "TTL"},
		{6, 128, 0, 4791, 0, ""},
	} {
		b, p := icmpError(c.family, c.kind, c.code, c.port, c.mtu)
		for n := range len(b) + 1 { // however much of it was captured
			var s unreachable
			s.note(b[:n], p)
			all := s.verdicts(nil)
			if c.says == "" && len(all) > 0 || len(all) > 0 && !strings.Contains(all[0].Evidence, c.says) || c.says != "" && n == len(b) && len(all) != 1 {
				t.Errorf("%+v, %d octets: %+v", c, n, all)
			}
		}
	}
}

// TestSetups: which requests for connections have a verdict.
func TestSetups(t *testing.T) {
	a, b := packet.AddrFrom4([]byte{10, 1, 0, 1}), packet.AddrFrom4([]byte{10, 2, 0, 1})
	req := func(comm uint32) packet.CM {
		return packet.CM{Attribute: packet.CMREQ, LocalComm: comm, ServiceID: packet.ServiceID(packet.ProtoTCP, 4420)}
	}
	answer := func(kind packet.CMAttribute, to uint32, reason uint16) packet.CM {
		return packet.CM{Attribute: kind, LocalComm: 900, RemoteComm: to, Reason: reason}
	}
	rej, rep, mra := answer(packet.CMREJ, 7, 8), answer(packet.CMREP, 7, 0), answer(packet.CMMRA, 7, 0)
	own := func(kind packet.CMAttribute) packet.CM { // of the requester, about the reply
		return packet.CM{Attribute: kind, LocalComm: 7, RemoteComm: 900, Reason: packet.CMConsumerReject, Answers: packet.CMAnswersREP}
	}
	forgotten := own(packet.CMREJ)
	forgotten.Reason = packet.CMInvalidCommID
	const theirs = 50   // of the peer, which asks, too
	const tenant2 = 200 // in another VLAN
	for _, c := range []struct {
		name     string
		messages []packet.CM
		want     []string
	}{
		{"accepted", []packet.CM{req(7), rep}, nil},
		{"accepted at the second attempt", []packet.CM{req(7), req(7), rep}, nil},
		{"asked three times", []packet.CM{req(7), req(7), req(7)}, []string{health.NoAnswer}},
		{"three connections, of which the answers don't pass here", []packet.CM{req(7), req(8), req(9)}, nil},
		{"accepted late", []packet.CM{req(7), req(7), req(7), rep}, nil},
		{"accepted late, and in time", []packet.CM{req(7), req(7), req(7), rep, own(packet.CMRTU)}, []string{health.NoteLate}},
		{"it will be answered", []packet.CM{req(7), req(7), req(7), mra}, nil},
		{"rejected", []packet.CM{req(7), rej}, []string{health.Refused}},
		{"rejected, and another tenant's is accepted", []packet.CM{req(7), rej, req(tenant2), answer(packet.CMREP, tenant2, 0)}, []string{health.Refused}},
		{"rejected, then accepted", []packet.CM{req(7), rej, req(8), answer(packet.CMREP, 8, 0)}, nil},
		{"the reply is rejected", []packet.CM{req(7), rep, own(packet.CMREJ)}, []string{health.Refused}},
		{"the reply is rejected, then one is accepted", []packet.CM{req(7), rep, own(packet.CMREJ), req(7), rep, own(packet.CMRTU)}, nil},
		{"replies are lost behind", []packet.CM{req(7), rep, req(7), rep, req(7), rep}, []string{health.AckLoss}},
		{"one reply is lost behind", []packet.CM{req(7), req(7), rep, req(7), rep}, nil},
		{"replies are lost behind, and one isn't", []packet.CM{req(7), rep, req(7), rep, req(7), rep, own(packet.CMRTU)}, nil},
		{"replies are lost behind, and one takes its time", []packet.CM{req(7), rep, req(7), rep, req(7), rep, own(packet.CMMRA)}, nil},
		{"RTUs are lost behind", []packet.CM{req(7), rep, own(packet.CMRTU), rep, own(packet.CMRTU), rep}, []string{health.AckLoss}},
		{"one RTU is lost behind", []packet.CM{req(7), rep, own(packet.CMRTU), rep, own(packet.CMRTU)}, nil},
		{"RTUs are lost before, or the requester is gone", []packet.CM{req(7), rep, rep, rep}, []string{health.NoAnswer}},
		{"RTUs are lost before, then one passes", []packet.CM{req(7), rep, rep, rep, own(packet.CMRTU)}, nil},
		{"RTUs are lost behind, and another connection is set up", []packet.CM{req(7), rep, own(packet.CMRTU), rep, rep, req(8), answer(packet.CMREP, 8, 0)}, nil},
		{"a reply to another one of several", []packet.CM{req(7), req(8), rep, req(8), req(8), req(8)}, []string{health.NoAnswer}},
		{"an answer to another one", []packet.CM{req(7), answer(packet.CMREJ, 8, 8)}, nil},
		{"one of two is rejected", []packet.CM{req(7), req(8), rej, answer(packet.CMREP, 8, 0)}, []string{health.Refused}},
		{"one of two is rejected, and asked for again", []packet.CM{req(7), req(8), rej, answer(packet.CMREP, 8, 0), req(9), answer(packet.CMREP, 9, 0)}, nil},
		{"both ask, and one is rejected", []packet.CM{req(7), req(theirs), answer(packet.CMREJ, 7, packet.CMConsumerReject), answer(packet.CMREP, theirs, 0)}, nil},
		{"both ask, and one is rejected as nobody listens", []packet.CM{req(7), req(theirs), rej, answer(packet.CMREP, theirs, 0)}, []string{health.Refused}},
		{"both ask, and both are rejected", []packet.CM{
			req(7), req(theirs), answer(packet.CMREJ, 7, packet.CMConsumerReject), answer(packet.CMREJ, theirs, packet.CMConsumerReject),
		}, []string{health.Refused, health.Refused}},
		{"rejected three times, then accepted", []packet.CM{req(7), rej, req(7), rej, req(7), rej, req(7), rep}, []string{health.NoteRejected}},
		{"a reply that comes too late", []packet.CM{req(7), req(7), req(7), rep, forgotten}, []string{health.NoAnswer}},
		{"replies that come too late", []packet.CM{req(7), req(7), req(7), rep, rep, rep}, []string{health.NoAnswer}},
		{"a release that nobody answers", []packet.CM{req(7), rep, own(packet.CMRTU), own(packet.CMDREQ), own(packet.CMDREQ), own(packet.CMDREQ)}, []string{health.NoAnswer}},
		{"a release that is answered at last", []packet.CM{own(packet.CMDREQ), own(packet.CMDREQ), own(packet.CMDREQ), answer(packet.CMDREP, 7, 0)}, nil},
		{"two releases, of which the answers don't pass here", []packet.CM{own(packet.CMDREQ), own(packet.CMDREQ)}, nil},
	} {
		var s setups
		for _, m := range c.messages {
			mad := make([]byte, packet.MADLen)
			m.Put(mad)
			p := &packet.Parsed{Kind: packet.RoCEv2, Opcode: packet.UDSendOnly, DestQP: packet.GSIQP, SourceQP: packet.GSIQP, Src: a, Dst: b}
			if answers := m.Attribute != packet.CMREQ && m.RemoteComm != 900; answers != (m.LocalComm == theirs || m.RemoteComm == theirs) {
				p.Src, p.Dst = b, a
			}
			if m.LocalComm == tenant2 {
				p.OuterTag = packet.MakeTag(packet.EtherTypeCTag, 9)
			}
			s.note(mad[:packet.MADLen/2], p, 0) // what a capture with -s 192 has of it
		}
		var names []string
		for _, v := range s.verdicts() {
			names = append(names, v.Name)
		}
		for _, n := range s.notes() {
			names = append(names, n.Name)
		}
		if !slices.Equal(names, c.want) {
			t.Errorf("%s: %v, want %v", c.name, names, c.want)
		}
	}
}

// TestGone: a QP is gone from when its end releases the connection until it serves another one.
func TestGone(t *testing.T) {
	const release, again = 20e6, 30e6
	a, b := packet.AddrFrom4([]byte{10, 1, 0, 1}), packet.AddrFrom4([]byte{10, 2, 0, 1})
	var s setups
	for _, m := range []struct {
		now  int64
		from packet.Addr
		packet.CM
	}{
		{1, a, packet.CM{Attribute: packet.CMREQ, LocalComm: 7, QPN: 5}},
		{2, b, packet.CM{Attribute: packet.CMREP, LocalComm: 900, RemoteComm: 7, QPN: 6}},
		{release, a, packet.CM{Attribute: packet.CMDREQ, LocalComm: 7, RemoteComm: 900, QPN: 6}},
		{release + 1, b, packet.CM{Attribute: packet.CMDREP, LocalComm: 900, RemoteComm: 7}},
		{again - 1, a, packet.CM{Attribute: packet.CMREQ, LocalComm: 8, QPN: 5}},
		{again, b, packet.CM{Attribute: packet.CMREP, LocalComm: 901, RemoteComm: 8, QPN: 9}},
	} {
		mad := make([]byte, packet.MADLen)
		m.Put(mad)
		p := &packet.Parsed{Kind: packet.RoCEv2, Opcode: packet.UDSendOnly, DestQP: packet.GSIQP, SourceQP: packet.GSIQP, Src: m.from, Dst: b}
		if m.from == b {
			p.Dst = a
		}
		s.note(mad, p, m.now)
	}
	gone := s.gone()
	if want := []span{{release + recorded, again}}; len(gone) != 1 || !slices.Equal(gone[way{b, a, 5}], want) {
		t.Errorf("%+v, want %v of QP 5", gone, want)
	}
}
