package dataplane_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// refusalOf is what a host that doesn't know the option of a Fast CNP answers.
func refusalOf(fast []byte) []byte {
	const head = packet.EthernetLen + packet.IPv6Len
	_, p := kindOf(testkit.Sent{Octets: fast, Length: uint32(len(fast))})
	b := append(append(bytes.Clone(fast[6:12]), fast[:6]...), 0x86, 0xdd)
	b = append(b, make([]byte, packet.IPv6Len+8)...)
	b = append(b, fast[packet.EthernetLen:]...)
	packet.PutIPv6(b[packet.EthernetLen:], uint16(len(b)-head), 0, packet.ProtoICMPv6, 64, &p.Dst, &p.Src)
	copy(b[head:], []byte{4, 2, 0, 0, 0, 0, 0, packet.IPv6Len + 2})
	binary.BigEndian.PutUint16(b[head+2:], packet.ICMPv6Checksum(p.Dst, p.Src, b[head:]))
	return b
}

// TestFastCNPRefused: a host that answers a Fast CNP with a Parameter Problem gets the next format of its endpoint for 5 minutes. The answer is consumed.
// One about a flow that wasn't notified changes nothing, and what is not about a Fast CNP of this gateway goes on.
func TestFastCNPRefused(t *testing.T) {
	const second = 1_000_000_000
	for _, c := range []struct {
		name     string
		refusal  func(fast []byte) []byte
		refused  uint64
		consumed uint64
		next     packet.Notification
	}{
		{"refused", refusalOf, 1, 1, packet.ExtendedCNP},
		{"about another QP", func(fast []byte) []byte { fast[14+40+24+8+7]++; return refusalOf(fast) }, 0, 1, packet.FastCNP},
		{"to another address", func(fast []byte) []byte { fast[14+8+15]++; return refusalOf(fast) }, 0, 0, packet.FastCNP},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := notifying(byAnything...)
			p.Ports[wan].PerFlow, p.Ports[wan].RTT = 1_000, 0
			s := newScene(t, p, func(s *testkit.Setup) { s.Rate = 1_000_000_000 })
			s.arrive(data(true, 1).Frame()) // the other QP has a flow, whose sender wasn't notified
			notify := func() testkit.Sent {
				t.Helper()
				s.fill(8, data(true, 0))
				s.Advance(10_000_000)
				s.Settle()
				s.Drain()
				for _, n := range s.Take(fabric) {
					if n.Built {
						return n
					}
				}
				t.Fatal("no notification")
				return testkit.Sent{}
			}
			first := notify()
			if kind, _ := kindOf(first); kind != packet.FastCNP {
				t.Fatalf("first a %v", kind)
			}
			s.arrive(c.refusal(bytes.Clone(first.Octets)))
			if got := s.Count(fabric, counters.FastCNPRefused); got != c.refused {
				t.Errorf("%d refusals", got)
			}
			if got := s.Count(fabric, counters.ConsumedParameterProblem); got != c.consumed {
				t.Errorf("%d frames consumed", got)
			}
			if kind, _ := kindOf(notify()); kind != c.next {
				t.Errorf("then a %v, expected a %v", kind, c.next)
			}
			s.Advance(301 * second)
			if kind, _ := kindOf(notify()); kind != packet.FastCNP {
				t.Errorf("after 5 minutes a %v", kind)
			}
			s.Close(t)
		})
	}
}

// TestFastCNPRefusedOnArrival: a Fast CNP that was sent because of a packet that came in with CE is refused like any other one.
func TestFastCNPRefusedOnArrival(t *testing.T) {
	p := notifying(byAnything...)
	p.Ports[wan].Thresholds, p.Ports[wan].OnArrival = congestion.Thresholds{KMin: 1 << 30, KMax: 1 << 31}, true
	s := newScene(t, p, func(s *testkit.Setup) { s.Rate = 1_000_000_000 })
	notify := func() testkit.Sent {
		t.Helper()
		f := data(true, 0)
		f.ECN = packet.CE
		s.Advance(1_000_000)
		s.arrive(f.Frame())
		s.Drain()
		for _, n := range s.Take(fabric) {
			if n.Built {
				return n
			}
		}
		t.Fatal("no notification")
		return testkit.Sent{}
	}
	s.arrive(refusalOf(notify().Octets))
	if got := s.Count(fabric, counters.FastCNPRefused); got != 1 {
		t.Errorf("%d refusals", got)
	}
	if kind, _ := kindOf(notify()); kind != packet.ExtendedCNP {
		t.Errorf("then a %v", kind)
	}
	s.Close(t)
}

// TestExtensionObjects: a Long-haul CNP carries the objects that the policy has, and the time of sending.
func TestExtensionObjects(t *testing.T) {
	for _, format := range []packet.Notification{packet.LongHaulCNP, packet.LongHaulCNPICMPv6} {
		p := notifying(grant("fd00:18::/32", format))
		p.Extension, p.Timestamp = &cnpgen.Extension{Device: []byte("dc-a.gw1"), Path: []byte("blue")}, true
		s := newScene(t, p, nil)
		const ahead = 1_700_000_000_000_000_000
		s.Plane.SetWallClock(ahead)
		s.fill(6, data(true, 0))
		built := s.Now
		notes := s.finish()
		if len(notes) == 0 {
			t.Fatalf("%v: no notification", format)
		}
		d := decoded(t, notes[0])
		if string(d.LongHaul.Device) != "dc-a.gw1" || string(d.LongHaul.Path) != "blue" || !d.LongHaul.HasTimestamp {
			t.Errorf("%v: device %q, path %q, timestamp %v", format, d.LongHaul.Device, d.LongHaul.Path, d.LongHaul.HasTimestamp)
		}
		if want := packet.NTPTime(built + ahead); d.LongHaul.Timestamp != want {
			t.Errorf("%v: sent at %#x, expected %#x", format, d.LongHaul.Timestamp, want)
		}
	}
}
