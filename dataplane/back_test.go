package dataplane_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/prefix"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// inGREKey puts a frame into GRE.
func inGREKey(frame []byte, key uint32) []byte {
	return inGRE(testkit.VXLAN(frame, 1, packet.ECT0, false), key)
}

// TestNotifiesByTheOtherDirection: a sender whose packets come with a label is notified by a CNP with its own QP, which has before its IP header
// what the receiver's ACKs have: their labels, MAC addresses and tags. It isn't notified where those are behind an IP tunnel's headers.
func TestNotifiesByTheOtherDirection(t *testing.T) {
	plain := func(frame []byte, _ uint32) []byte { return frame }
	for _, c := range []struct {
		name        string
		there, back func(frame []byte, id uint32) []byte
		notified    bool
	}{
		{"labels", testkit.MPLS, testkit.MPLS, true},
		{"pseudowires", testkit.Pseudowire, testkit.Pseudowire, true},
		{"a pseudowire, and a label", testkit.Pseudowire, testkit.MPLS, true},
		{"VXLAN", inVXLAN, func(frame []byte, _ uint32) []byte { return inVXLAN(frame, 77) }, false},
		{"keys of GRE", inGREKey, inGREKey, false},
		{"no tunnel", plain, plain, true},
	} {
		for _, v6 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, IPv6 %v", c.name, v6), func(t *testing.T) {
				p := notifying([]prefix.Entry[congestion.Preference]{grant("::/0", packet.StandardCNP), grant("0.0.0.0/0", packet.StandardCNP)}...)
				p.Who.Enabled[packet.StandardCNP] = true
				s := &scene{testkit.New(t, testkit.Setup{Policy: p}), t}
				f, ack := inner(v6), inner(v6)
				f.SrcPort = packet.SourcePort(sourceQP, f.DestQP)
				ack.Src, ack.Dst, ack.SrcPort, ack.DestQP, ack.Opcode, ack.Size = f.Dst, f.Src, f.SrcPort, sourceQP, packet.RCAcknowledge, 0
				s.arrive(c.there(f.Frame(), 77))
				s.Drain()
				answer := c.back(ack.Frame(), 78)
				answer[5] = 0x99
				s.arriveAt(wan, answer)
				s.Drain()
				s.Take(fabric)
				var came [][]byte
				for range 6 {
					came = append(came, c.there(f.Frame(), 77))
				}
				s.arrive(came...)
				if !c.notified {
					if n := s.suppressed(fabric)["encapsulated"]; n == 0 {
						t.Errorf("suppressed: %v", s.suppressed(fabric))
					}
				}
				notes := s.finish()
				if c.notified != (len(notes) > 0) {
					t.Fatalf("%d notifications, suppressed %v", len(notes), s.suppressed(fabric))
				}
				for _, n := range notes {
					var cnp, in, by packet.Parsed
					packet.Parse(n.Octets, uint32(len(n.Octets)), &cnp)
					packet.Parse(came[0], uint32(len(came[0])), &in)
					packet.Parse(answer, uint32(len(answer)), &by)
					if cnp.Kind != packet.RoCEv2 || cnp.Opcode != packet.CNP || cnp.Src != in.Dst || cnp.Dst != in.Src || cnp.DestQP != sourceQP {
						t.Errorf("the CNP is %+v", cnp)
					}
					want := answer[:by.L3]
					if c.name == "no tunnel" {
						want = append(append(bytes.Clone(came[0][6:12]), came[0][:6]...), came[0][12:in.L3]...)
					}
					if !bytes.Equal(n.Octets[:cnp.L3], want) {
						t.Errorf("before its IP header it has\n% x, the other direction\n% x", n.Octets[:cnp.L3], want)
					}
				}
			})
		}
	}
}

// TestNotifiesInTheOtherVLAN: once some connections have proved that the directions have two VLANs, a CNP is in that of the receiver's ACKs; before, no
// CNP names a QP.
func TestNotifiesInTheOtherVLAN(t *testing.T) {
	p := notifying(grant("0.0.0.0/0", packet.StandardCNP))
	p.Who.Enabled[packet.StandardCNP] = true
	s := &scene{testkit.New(t, testkit.Setup{Policy: p}), t}
	const connections, psns = 8, 80
	for psn := uint32(0); psn < psns; psn += 4 {
		for i := range uint32(connections) {
			f, ack := inner(false), inner(false)
			f.DestQP, f.SrcPort = 100+i, packet.SourcePort(sourceQP+i, 100+i)
			ack.Src, ack.Dst, ack.SrcPort, ack.DestQP, ack.Opcode, ack.Size = f.Dst, f.Src, f.SrcPort, sourceQP+i, packet.RCAcknowledge, 0
			for f.PSN = psn; f.PSN < psn+4; f.PSN++ {
				s.arrive(vlan(f.Frame(), 10))
				s.Drain()
			}
			ack.PSN = psn + 3
			s.arriveAt(wan, vlan(ack.Frame(), 20))
			s.Drain()
		}
	}
	s.Take(wan)
	s.Take(fabric)
	f := inner(false)
	f.SrcPort, f.PSN = packet.SourcePort(sourceQP, f.DestQP), psns
	for range 6 {
		s.arrive(vlan(f.Frame(), 10))
	}
	notes := s.finish()
	if len(notes) == 0 {
		t.Fatalf("no CNP; suppressed %v", s.suppressed(fabric))
	}
	for _, n := range notes {
		if _, cnp := kindOf(n); cnp.OuterTag.VID() != 20 || cnp.Dst != address(f.Src) || cnp.DestQP != sourceQP {
			t.Errorf("the CNP is %+v", cnp)
		}
	}
}
