package cnpdec

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/notifications"
)

// decodeSeed is an input of FuzzDecode.
type decodeSeed struct {
	frame     []byte
	missing   uint16 // octets that weren't captured
	extension Extension
	icrc      ICRCCoverage
	repairs   bool
}

// decodeSeeds are the golden notifications, as they are and cut, what of them is refused, and frames of real traffic.
func decodeSeeds(t testing.TB) []decodeSeed {
	var all []decodeSeed
	for i := range notifications.All {
		g := &notifications.All[i]
		frame, r := g.Bytes(), receiverOf(g)
		for _, repairs := range []bool{false, true} {
			all = append(all, decodeSeed{frame, 0, r.Extension, r.ICRC, repairs})
		}
		all = append(all, decodeSeed{frame[:len(frame)-4], 4, r.Extension, ICRCEither, false})
	}
	for _, c := range refusals {
		g, r := golden(c.golden)
		frame := g.Bytes()
		copy(frame[c.change.at:], c.change.to)
		all = append(all, decodeSeed{frame, 0, r.Extension, r.ICRC, !c.raw})
	}
	all = append(all, decodeSeed{wrongExtensionChecksum(), 0, NoExtension, ICRCAsSent, false})
	g, _ := golden("long-haul-cnp-icmpv6-objects")
	const noObjects = packet.ICMPv6Len + packet.LongHaulLen + packet.ExtensionHeaderLen
	all = append(all, decodeSeed{shorten(g.Bytes(), len(g.Bytes())-icmpv6At-noObjects), 0, NoExtension, ICRCAsSent, true})
	for _, frame := range captured(t, 4) {
		all = append(all, decodeSeed{frame[:min(len(frame), 160)], uint16(max(0, len(frame)-160)), LongHaulExtension, ICRCEither, false})
	}
	return all
}

// TestDecodeSeeds: the seeds of FuzzDecode reach every decoder, to the end, and every reason to refuse that a frame alone can give.
func TestDecodeSeeds(t *testing.T) {
	accepted, refused := map[string]bool{}, map[Reason]bool{}
	for _, s := range decodeSeeds(t) {
		r := Receiver{Code: packet.DefaultCodePoints, Extension: s.extension, ICRC: s.icrc}
		frame := bytes.Clone(s.frame)
		if s.repairs {
			repair(frame, &r.Code, r.ICRC)
		}
		var p packet.Parsed
		var n Notification
		packet.Parse(frame, uint32(len(frame))+uint32(s.missing), &p)
		if reason := r.Decode(frame, &p, &n); reason != Accepted {
			refused[reason] = true
			continue
		}
		what := fmt.Sprintf("%v v%d", n.Kind, n.Family)
		switch {
		case n.Kind == FastCNP && n.Fast.Option.Trace.Data != nil:
			what += fmt.Sprintf(" trace %d", n.Fast.Option.Trace.Type)
		case n.LongHaul.Objects != nil:
			what += " objects"
		case n.Kind == ProxyNotification:
			what += fmt.Sprintf(" about v%d", n.Proxy.Version)
		}
		accepted[what] = true
	}
	for _, want := range []string{
		"standard-cnp v4", "standard-cnp v6", "fast-cnp v6", "fast-cnp v6 trace 0", "fast-cnp v6 trace 1", "long-haul-cnp v4", "long-haul-cnp v6",
		"long-haul-cnp v4 objects", "long-haul-cnp-icmpv6 v6", "long-haul-cnp-icmpv6 v6 objects", "ppfc v4", "ppfc v6",
		"proxy-notification v4 about v4", "proxy-notification v4 about v6", "proxy-notification v6 about v6", "pause v0", "pfc v0",
	} {
		if !accepted[want] {
			t.Errorf("no seed is accepted as %s", want)
		}
	}
	asked := map[Reason]bool{Accepted: true, UntrustedSource: true, UnknownQP: true, UnknownFlow: true} // the host's to say
	for r := range Reason(Reasons) {
		if !refused[r] && !asked[r] {
			t.Errorf("no seed is refused for %v", r)
		}
	}
}

// FuzzDecode: no frame panics, whole or captured in part, at a receiver of any sort; what is accepted encodes to the same octets.
// With repairs, checksums and ICRC are made right first, so that the decoders behind them are reached.
func FuzzDecode(f *testing.F) {
	for _, s := range decodeSeeds(f) {
		f.Add(s.frame, s.missing, uint8(s.extension), uint8(s.icrc), s.repairs)
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
