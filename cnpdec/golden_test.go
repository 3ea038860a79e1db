package cnpdec

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/notifications"
)

// TestGolden: every golden notification is accepted, and encodes back to the same octets. control/decode compares its fields with the listing.
func TestGolden(t *testing.T) {
	for i := range notifications.All {
		g := &notifications.All[i]
		t.Run(g.Name, func(t *testing.T) {
			frame, r := g.Bytes(), receiverOf(g)
			n, reason := r.decodeFrame(frame)
			if reason != Accepted {
				t.Fatal(reason)
			}
			if n.Kind.String() != g.Kind || n.ICRC != r.ICRC {
				t.Errorf("decoded as %v, ICRC %d", n.Kind, n.ICRC)
			}
			if got := encode(&n, frame); !bytes.Equal(got, frame[:n.End]) {
				t.Errorf("encodes to\n%s\nwant\n%s", hex.Dump(got), hex.Dump(frame))
			}
		})
	}
}

// TestFirstObjectCounts: of several objects of a type the first is taken, even an empty one.
func TestFirstObjectCounts(t *testing.T) {
	for _, first := range []string{"", "first"} {
		var l LongHaul
		for _, payload := range []string{first, "second"} {
			for _, ctype := range []uint8{packet.CTypeDevice, packet.CTypePath} {
				o := packet.Object{Class: 247, CType: ctype, Payload: []byte(payload)}
				l.Objects = append(l.Objects, put(o.Len(), o.Put)...)
			}
		}
		for _, payload := range []string{"\x00\x00\x00\x00\x00\x00\x00\x01", "\x00\x00\x00\x00\x00\x00\x00\x02"} {
			o := packet.Object{Class: 247, CType: packet.CTypeTimestamp, Payload: []byte(payload)}
			l.Objects = append(l.Objects, put(o.Len(), o.Put)...)
		}
		l.Header.Version = packet.ExtensionVersion
		r := Receiver{Code: packet.DefaultCodePoints}
		var n Notification
		reason := r.decodeLongHaul(appendLongHaul(nil, &l), &n)
		if l := n.LongHaul; reason != Accepted || l.Timestamp != 1 || string(l.Device) != first || string(l.Path) != first || l.Device == nil || l.Path == nil {
			t.Errorf("%v: device %q, path %q, want %q", reason, l.Device, l.Path, first)
		}
	}
}

// TestMappedAddresses: an IPv4-mapped IPv6 address is the same to Addr, but not the same packet.
func TestMappedAddresses(t *testing.T) {
	x := Proxy{Proxied: packet.Proxied{Version: 6, Src: address("10.0.0.1"), Dst: address("10.0.0.4"), Proto: 17}}
	x.Inner = packet.Parsed{Family: 6, Src: x.Src, Dst: x.Dst, Proto: 17}
	if !x.matches() {
		t.Error("the same version doesn't match")
	}
	if x.Inner.Family = 4; x.matches() {
		t.Error("another version matches")
	}
}

// TestExtensionBit: one frame, three receivers. A Long-haul CNP over IPv4 passes for a PPFC notification; the PPFC notifications here
// don't pass for a Long-haul CNP only as their addresses make a Notify with a parameter.
func TestExtensionBit(t *testing.T) {
	for _, c := range []struct {
		name   string
		speaks packet.Notification
		kind   packet.Notification
		want   Reason
	}{
		{"long-haul-cnp-v4", packet.LongHaulCNP, packet.LongHaulCNP, Accepted},
		{"long-haul-cnp-v4", packet.PPFC, packet.PPFC, Accepted},
		{"long-haul-cnp-v4", packet.StandardCNP, packet.StandardCNP, Accepted},
		{"long-haul-cnp-v4-objects", packet.StandardCNP, packet.StandardCNP, Accepted},
		{"long-haul-cnp-v4-objects", packet.PPFC, packet.PPFC, WrongLength},
		{"long-haul-cnp-v6-tagged", packet.PPFC, packet.PPFC, WrongLength},
		{"ppfc-v4-pause", packet.LongHaulCNP, packet.LongHaulCNP, WrongParameter},
		{"ppfc-v6-resume-tagged", packet.LongHaulCNP, packet.LongHaulCNP, WrongParameter},
		{"standard-cnp-v4", packet.LongHaulCNP, packet.StandardCNP, Accepted},
		{"fast-cnp", packet.PPFC, packet.FastCNP, Accepted},
	} {
		g, r := golden(c.name)
		r.Extension = c.speaks
		frame := g.Bytes()
		var p packet.Parsed
		var n Notification
		packet.Parse(frame, uint32(len(frame)), &p)
		if got := r.Decode(frame, &p, &n); got != c.want || n.Kind != c.kind {
			t.Errorf("%s to extension %d: %v, %v; want %v, %v", c.name, c.speaks, n.Kind, got, c.kind, c.want)
		} else if got == Accepted && !bytes.Equal(encode(&n, frame), frame) {
			t.Errorf("%s to extension %d: doesn't encode to the same octets", c.name, c.speaks)
		}
	}
}

// TestFromReceiver: a Fast CNP's source reports whether the data's receiver sent it.
func TestFromReceiver(t *testing.T) {
	g, r := golden("fast-cnp")
	frame := g.Bytes()
	if n, reason := r.decodeFrame(frame); reason != Accepted || n.FromReceiver() {
		t.Errorf("from a gateway: %v, %v", n.FromReceiver(), reason)
	}
	copy(frame[22:38], frame[58:74]) // the source becomes the address in the option
	repair(frame, &r.Code, r.ICRC)
	if n, reason := r.decodeFrame(frame); reason != Accepted || !n.FromReceiver() {
		t.Errorf("from the receiver: %v, %v", n.FromReceiver(), reason)
	}
}

// TestICRCCoverage: a receiver accepts the form of the ICRC that it is configured for, and no other.
func TestICRCCoverage(t *testing.T) {
	g, r := golden("fast-cnp")
	r.ICRC = ICRCWithoutExtensionHeaders
	checkReason(t, "as sent", &r, g.Bytes(), WrongICRC)
	g, r = golden("fast-cnp-qinq-icrc-without-extension-headers")
	r.ICRC = ICRCAsSent
	checkReason(t, "without extension headers", &r, g.Bytes(), WrongICRC)
}

// TestICRCEither: a receiver that accepts both ICRCs reports which one it was.
func TestICRCEither(t *testing.T) {
	for name, want := range map[string]ICRCCoverage{
		"fast-cnp": ICRCAsSent, "fast-cnp-qinq-icrc-without-extension-headers": ICRCWithoutExtensionHeaders, "long-haul-cnp-v4": ICRCAsSent,
	} {
		g, r := golden(name)
		r.ICRC = ICRCEither
		if n, reason := r.decodeFrame(g.Bytes()); reason != Accepted || n.ICRC != want {
			t.Errorf("%s: %v, ICRC %d, want %d", name, reason, n.ICRC, want)
		}
	}
}
