package cnpdec

import (
	"bytes"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/notifications"
)

// FuzzDecode: no frame panics, whole or captured in part, at a receiver of any sort; what is accepted encodes to the same octets.
// With repairs, checksums and ICRC are made right first, so that the decoders behind them are reached.
func FuzzDecode(f *testing.F) {
	for i := range notifications.All {
		g := &notifications.All[i]
		frame, r := g.Bytes(), receiverOf(g)
		for _, repairs := range []bool{false, true} {
			f.Add(frame, uint16(0), uint8(r.Extension), uint8(r.ICRC), repairs)
		}
		f.Add(frame, uint16(4), uint8(r.Extension), uint8(ICRCEither), false)
	}
	for _, frame := range captured(f, 4) {
		f.Add(frame[:min(len(frame), 160)], uint16(max(0, len(frame)-160)), uint8(LongHaulExtension), uint8(ICRCEither), false)
	}
	f.Fuzz(func(t *testing.T, frame []byte, missing uint16, extension, icrc uint8, repairs bool) {
		r := Receiver{Code: packet.DefaultCodePoints, Extension: Extension(extension % 3), ICRC: ICRCCoverage(icrc % 3)}
		frame = bytes.Clone(frame) // the input isn't the target's to change
		if repairs {
			missing = 0
			repair(frame, &r.Code, r.ICRC)
		}
		before := bytes.Clone(frame)
		var p packet.Parsed
		var n Notification
		packet.Parse(frame, uint32(len(frame))+uint32(missing), &p)
		reason := r.Decode(frame, &p, &n)
		if !bytes.Equal(frame, before) {
			t.Fatal("Decode changed the frame")
		}
		if reason >= Reason(Reasons) || (reason == Accepted && n.Kind == None) {
			t.Fatalf("%v of kind %v", reason, n.Kind)
		}
		if reason == Accepted {
			if got := encode(&n, frame); !bytes.Equal(got, frame[:n.End]) {
				t.Fatalf("%+v\nencodes to\n%x, want\n%x", n, got, frame[:n.End])
			}
		}
	})
}

// FuzzOptions: a list of options of any content, as a whole Destination Options header.
func FuzzOptions(f *testing.F) {
	for _, name := range []string{"fast-cnp", "fast-cnp-preallocated-trace", "fast-cnp-other-layout"} {
		g, _ := golden(name)
		frame := g.Bytes()
		f.Add(frame[v6Options+2 : v6Options+8+8*int(frame[v6Options+1])])
	}
	f.Fuzz(func(t *testing.T, list []byte) {
		list = list[:min(len(list), 2046)]
		header := append([]byte{packet.ProtoUDP, 0}, list...)
		header = append(header, make([]byte, -len(header)&7)...)
		header[1] = uint8(len(header)/8 - 1)
		var h packet.FastCNPHeader
		if decodeOptions(header, &packet.DefaultCodePoints, &h) != Accepted {
			return
		}
		if got := put(h.Len(), h.Put); !bytes.Equal(got, header) {
			t.Fatalf("%+v\nencodes to\n%x, want\n%x", h, got, header)
		}
	})
}

// FuzzLongHaul: the fields of a Long-haul CNP and an extension structure of any content.
func FuzzLongHaul(f *testing.F) {
	for _, name := range []string{"long-haul-cnp-icmpv6", "long-haul-cnp-icmpv6-objects"} {
		g, _ := golden(name)
		f.Add(g.Bytes()[icmpv6At+packet.ICMPv6Len:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if b = bytes.Clone(b[:len(b)&^3]); !longHaulLengthOK(len(b)) {
			return
		}
		repairExtension(b[packet.LongHaulLen:])
		r := Receiver{Code: packet.DefaultCodePoints}
		var n Notification
		if r.decodeLongHaul(b, &n) != Accepted {
			return
		}
		if got := encodeLongHaul(&n.LongHaul); !bytes.Equal(got, b) {
			t.Fatalf("%+v\nencodes to\n%x, want\n%x", n.LongHaul, got, b)
		}
	})
}
