package synth

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/internal/cm"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// TestFrame: packet.Parse finds in a frame what the event says, the checksums are right, and Head is the frame's beginning.
func TestFrame(t *testing.T) {
	opcodes := map[packet.Opcode]int{}
	for _, v6 := range []bool{false, true} {
		for _, tenants := range []int{0, 2} {
			c := busy(3)
			c.IPv6, c.Tenants, c.TwoTags, c.Sizes = v6, tenants, tenants > 0, [2]int{0, 9000}
			c.Managers = Managers{MRA: .3}
			c.Attack.Request, c.Attack.Managers = true, ForgedCM{All: true, Connect: true}
			tr := New(c)
			for e, ok := tr.Next(); ok; e, ok = tr.Next() {
				if opcodes[e.Packet.Opcode]++; opcodes[e.Packet.Opcode] > 500 {
					continue // more would show nothing new
				}
				checkFrame(t, &e)
			}
		}
	}
	if len(opcodes) < 50 {
		t.Errorf("only %d opcodes: %v", len(opcodes), opcodes)
	}
}

func checkFrame(t *testing.T, e *Event) {
	t.Helper()
	frame := Frame(e)
	var p packet.Parsed
	packet.Parse(frame, uint32(len(frame)), &p)
	if p != e.Packet || len(frame) != int(e.Length()) {
		t.Fatalf("frame of %d octets parses to\n%+v, event\n%+v", len(frame), p, e.Packet)
	}
	if (p.ICRC-uint32(p.Payload))%4 != 0 {
		t.Fatalf("a payload of %d octets, pad count %d", p.ICRC-uint32(p.Payload), e.Pad)
	}
	if !packet.VerifyICRC(frame, &p) || p.Family == 4 && !packet.IPv4ChecksumOK(frame, &p) {
		t.Fatalf("wrong checksum: %x", frame)
	}
	head := bytes.Repeat([]byte{0xa5}, HeadLen)
	head = head[:Head(e, head)]
	if !bytes.HasPrefix(frame, head) || len(head) < int(p.Payload) {
		t.Fatalf("Head is\n%x of frame\n%x", head, frame)
	}
	packet.Parse(head, e.Length(), &p)
	if p != e.Packet {
		t.Fatalf("head parses to\n%+v, event\n%+v", p, e.Packet)
	}
	c := captured{octets: frame, Event: Event{Packet: p}}
	c.readExtended()
	wantAETH := p.Opcode.Headers()&packet.HasAETH != 0
	if c.AckReq != e.AckReq || c.Pad != e.Pad || c.DMALength != e.DMALength || wantAETH && (c.MSN != e.MSN || c.Syndrome != e.Syndrome) {
		t.Fatalf("read from the frame: %+v\nevent: %+v", c.Event, e)
	}
	if (c.MAD == nil) != (e.MAD == nil) || e.MAD != nil && *c.MAD != *e.MAD {
		t.Fatalf("MAD in the frame\n%x\nin the event\n%x", c.MAD, e.MAD)
	}
}

// TestMADsLikeCaptured builds the MADs of a real RDMA-CM exchange from what was chosen in it, and wants each octet the same; of IPv6, of
// which no field differs, of the whole frame.
func TestMADsLikeCaptured(t *testing.T) {
	for _, name := range []string{"cm_rping_v4", "cm_rping_v6"} {
		frames, conns := readCapture(t, name)
		frames = slices.DeleteFunc(frames, func(c captured) bool { return c.MAD == nil })
		var got []packet.CMAttribute
		req, rep := frames[0].MAD[packet.MADHeaderLen:], frames[1].MAD[packet.MADHeaderLen:]
		for _, f := range frames {
			attr := attrOf(f.MAD)
			got = append(got, attr)
			ids := [2]uint32{binary.BigEndian.Uint32(req), binary.BigEndian.Uint32(rep)}
			psns := [2]uint32{binary.BigEndian.Uint32(req[44:]) >> 8, binary.BigEndian.Uint32(rep[20:]) >> 8}
			source := binary.BigEndian.Uint16(req[142:])
			service := binary.BigEndian.Uint16(req[14:])
			m := message(attr, f.Packet.Src, f.Packet.Dst)
			m.LocalComm, m.RemoteComm, m.QPN, m.PSN = ids[f.From], ids[1-f.From], conns[0].QP[f.From], psns[f.From]
			m.TransactionID, m.MTU, m.ResponderResources, m.InitiatorDepth = cm.Transaction(ids[Fabric]), 5, 1, 1
			m.GUID = [2]uint64{0xfffe180002, 0xfffe180001}[f.From]
			m.ServiceID, m.SourcePort, m.FlowLabel = packet.ServiceID(packet.ProtoTCP, service), source, cm.FlowLabel(source, service)
			if attr == packet.CMDREQ {
				m.QPN = conns[0].QP[WAN]
			}
			e := f.Event
			if e.MAD = datagram(&m); *e.MAD != *f.MAD {
				t.Errorf("%s: MAD 0x%x is\n%x, captured\n%x", name, attr, *e.MAD, *f.MAD)
			}
			frame := Frame(&e)
			from, to := int(e.Packet.L4), int(e.Packet.ICRC)
			if e.Packet.Family == 6 {
				from, to = int(e.Packet.L3), len(frame)
			}
			if !bytes.Equal(frame[from:to], f.octets[from:to]) {
				t.Errorf("%s: frame of MAD 0x%x is\n%x, captured\n%x", name, attr, frame[from:], f.octets[from:])
			}
		}
		if want := []packet.CMAttribute{packet.CMREQ, packet.CMREP, packet.CMRTU, packet.CMDREQ, packet.CMDREP}; !slices.Equal(got, want) {
			t.Errorf("%s: MADs %x, want %x", name, got, want)
		}
	}
}

// TestMADFields reads from MADs that no capture has, and from those of UC and XRC, what a reader would want, at IBTA's offsets.
func TestMADFields(t *testing.T) {
	m := message(packet.CMSIDRREQ, packet.AddrFrom4([]byte{1, 2, 3, 4}), packet.AddrFrom4([]byte{5, 6, 7, 8}))
	m.LocalComm, m.RemoteComm, m.QPN, m.Answers, m.Reason = 0x01020304, 0x05060708, 0xabcdef, 2, packet.CMConsumerReject
	m.ServiceID, m.SourcePort, m.ResponderResources = packet.ServiceID(packet.ProtoUDP, 0x1122), 0x3344, 0
	at := func(attr packet.CMAttribute, offset int, want ...byte) {
		t.Helper()
		m.Attribute = attr
		if got := datagram(&m)[packet.MADHeaderLen+offset:][:len(want)]; !bytes.Equal(got, want) {
			t.Errorf("attribute 0x%x: octets %x at %d, want %x", attr, got, offset, want)
		}
	}
	at(packet.CMSIDRREQ, 0, 1, 2, 3, 4, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 1, 17, 0x11, 0x22, 0, 4<<4, 0x33, 0x44)
	at(packet.CMSIDRREQ, 32, 1, 2, 3, 4)
	at(packet.CMSIDRREQ, 48, 5, 6, 7, 8)
	at(packet.CMSIDRREP, 0, 1, 2, 3, 4, 0, 0, 0, 0, 0xab, 0xcd, 0xef, 0, 0, 0, 0, 0, 1, 17, 0x11, 0x22, 0x11, 0x11, 0x11, 0x11)
	at(packet.CMREJ, 0, 1, 2, 3, 4, 5, 6, 7, 8, 2<<6, 0, 0, 28)
	at(packet.CMMRA, 0, 1, 2, 3, 4, 5, 6, 7, 8, 2<<6, 20<<3, 0, 0)
	at(packet.CMLAP, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0xab, 0xcd, 0xef, 0)
	at(packet.CMLAP, 24, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 5, 6, 7, 8)
	at(packet.CMAPR, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0)
	m.Transport, m.Extended = packet.CMExtended, packet.CMXRC
	at(packet.CMREQ, 32, 0xab, 0xcd, 0xef, 0)
	at(packet.CMREQ, 43, 20<<3|3<<1)
	at(packet.CMREQ, 51, 15<<4|1)
}
