package cnpdec

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/notifications"
)

// decodeSeed is an input of FuzzDecode.
type decodeSeed struct {
	frame     []byte
	missing   uint16 // octets that weren't captured
	extension packet.Notification
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
	all = append(all, decodeSeed{wrongExtensionChecksum(), 0, packet.StandardCNP, ICRCAsSent, false})
	g, _ := golden("long-haul-cnp-icmpv6-objects")
	const noObjects = packet.ICMPv6Len + packet.LongHaulLen + packet.ExtensionHeaderLen
	all = append(all, decodeSeed{shorten(g.Bytes(), len(g.Bytes())-icmpv6At-noObjects), 0, packet.StandardCNP, ICRCAsSent, true})
	for _, frame := range captured(t, 4) {
		all = append(all, decodeSeed{frame[:min(len(frame), 160)], uint16(max(0, len(frame)-160)), packet.LongHaulCNP, ICRCEither, false})
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
		case n.Kind == packet.FastCNP && n.Fast.Option.Trace.Data != nil:
			what += fmt.Sprintf(" trace %d", n.Fast.Option.Trace.Type)
		case n.LongHaul.Objects != nil:
			what += " objects"
		case n.Kind == packet.ProxyNotification:
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
		f.Add(s.frame, s.missing, uint8(slices.Index(extensions3[:], s.extension)), uint8(s.icrc), s.repairs)
	}
	var w workspace
	f.Fuzz(func(t *testing.T, frame []byte, missing uint16, extension, icrc uint8, repairs bool) {
		frame = bytes.Clone(frame) // the input isn't the target's to change
		w.decode(t, frame, uint32(missing), extensions3[extension%3], ICRCCoverage(icrc%3), repairs)
	})
}

// workspace is what the bodies of the fuzz targets work in, so that they allocate nothing.
type workspace struct {
	p               packet.Parsed
	n               Notification
	r               Receiver
	header          packet.FastCNPHeader
	before, in, out []byte
}

// decode is FuzzDecode of a frame, which it may repair; it returns whether the frame was accepted. What it was is in w.n.
func (w *workspace) decode(t testing.TB, frame []byte, missing uint32, extension packet.Notification, icrc ICRCCoverage, repairs bool) bool {
	r := &w.r
	*r = Receiver{Code: packet.DefaultCodePoints, Extension: extension, ICRC: icrc}
	if repairs {
		missing = 0
		repair(frame, &r.Code, r.ICRC)
	}
	w.before = append(w.before[:0], frame...)
	packet.Parse(frame, uint32(len(frame))+missing, &w.p)
	n := &w.n
	reason := r.Decode(frame, &w.p, n)
	if !bytes.Equal(frame, w.before) {
		t.Fatalf("Decode changed the frame\n%x", w.before)
	}
	if reason >= Reason(Reasons) || (reason == Accepted && n.Kind == packet.NotANotification) {
		t.Fatalf("%v of kind %v: %x", reason, n.Kind, frame)
	}
	if reason == Accepted {
		if w.out = appendEncoded(w.out, n, frame); !bytes.Equal(w.out, frame[:n.End]) {
			t.Fatalf("%+v\nencodes to\n%x, want\n%x", *n, w.out, frame[:n.End])
		}
	}
	return reason == Accepted
}

// optionLists are the lists of options of golden Fast CNPs.
func optionLists() (all [][]byte) {
	for _, name := range []string{"fast-cnp", "fast-cnp-preallocated-trace", "fast-cnp-other-layout"} {
		g, _ := golden(name)
		frame := g.Bytes()
		all = append(all, frame[v6Options+2:v6Options+8+8*int(frame[v6Options+1])])
	}
	return all
}

// FuzzOptions: a list of options of any content, as a whole Destination Options header.
func FuzzOptions(f *testing.F) {
	for _, list := range optionLists() {
		f.Add(list)
	}
	var w workspace
	f.Fuzz(func(t *testing.T, list []byte) { w.options(t, list) })
}

// options is FuzzOptions; it returns whether the list was accepted.
func (w *workspace) options(t testing.TB, list []byte) bool {
	w.in = append(w.in[:0], packet.ProtoUDP, 0)
	w.in = append(w.in, list[:min(len(list), 2046)]...)
	for len(w.in)%8 != 0 {
		w.in = append(w.in, packet.OptionPad1)
	}
	header := w.in
	header[1] = uint8(len(header)/8 - 1)
	h := &w.header
	if decodeOptions(header, &packet.DefaultCodePoints, h) != Accepted {
		return false
	}
	var b []byte
	w.out, b = extend(w.out[:0], h.Len())
	if h.Put(b); !bytes.Equal(b, header) {
		t.Fatalf("%+v\nencodes to\n%x, want\n%x", *h, b, header)
	}
	return true
}

// longHauls are the golden messages with the fields of a Long-haul CNP, from these on.
func longHauls() (all [][]byte) {
	for _, name := range []string{"long-haul-cnp-icmpv6", "long-haul-cnp-icmpv6-objects"} {
		g, _ := golden(name)
		all = append(all, g.Bytes()[icmpv6At+packet.ICMPv6Len:])
	}
	return all
}

// FuzzLongHaul: the fields of a Long-haul CNP and an extension structure of any content.
func FuzzLongHaul(f *testing.F) {
	for _, b := range longHauls() {
		f.Add(b)
	}
	var w workspace
	f.Fuzz(func(t *testing.T, b []byte) { w.longHaul(t, bytes.Clone(b)) })
}

// longHaul is FuzzLongHaul of octets that it may repair; it returns whether they were accepted.
func (w *workspace) longHaul(t testing.TB, b []byte) bool {
	if b = b[:len(b)&^3]; !longHaulLengthOK(len(b)) {
		return false
	}
	repairExtension(b[packet.LongHaulLen:])
	r, n := &w.r, &w.n
	*r, *n = Receiver{Code: packet.DefaultCodePoints}, Notification{}
	if r.decodeLongHaul(b, n) != Accepted {
		return false
	}
	if w.out = appendLongHaul(w.out[:0], &n.LongHaul); !bytes.Equal(w.out, b) {
		t.Fatalf("%+v\nencodes to\n%x, want\n%x", n.LongHaul, w.out, b)
	}
	return true
}
