package packet

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// encapsulation puts a frame into a tunnel. It shares no code with the package under test.
type encapsulation struct {
	name  string
	kind  TunnelKind
	id    uint32
	packs func(inner []byte, in *Parsed) (payload []byte, ok bool) // of the outer IP packet, or of the frame
	outer func(payload []byte) stack                               // nil: the payload is the frame's
	vlan  bool                                                     // the frame inside keeps its VLAN tags
}

// whole is the frame inside, packet its IP packet.
func whole(inner []byte, _ *Parsed) []byte { return inner }
func bare(inner []byte, in *Parsed) []byte { return inner[in.L3:in.IPEnd] }

const (
	testVNI   = 0x123456
	testKey   = 0xfedcba98
	testLabel = 0xabcde
)

// srhOf is a Segment Routing Header with two segments, of which none is left (RFC 8754 2).
var srhOf = extHeader{43, append([]byte{4, 0, 1, 0, 0, 7}, bytes.Repeat([]byte{0xfd}, 32)...)}

func protoOf(in *Parsed) uint8 { return map[uint8]uint8{4: 4, 6: 41}[in.Family] }

func etherTypeOf(in *Parsed) string { return map[uint8]string{4: "\x08\x00", 6: "\x86\xdd"}[in.Family] }

// encapsulations are all that Parse follows, over an outer IP header of a family (4 or 6) or, of family 0, directly in a frame.
func encapsulations() (all []encapsulation) {
	add := func(name string, kind TunnelKind, id uint32, vlan bool, outer func(in *Parsed, payload []byte) stack, pack func(inner []byte, in *Parsed) []byte) {
		for _, family := range []uint8{4, 6} {
			e := encapsulation{name: fmt.Sprintf("%s over IPv%d", name, family), kind: kind, id: id, vlan: vlan}
			var seen *Parsed
			e.packs = func(inner []byte, in *Parsed) ([]byte, bool) { seen = in; return pack(inner, in), true }
			e.outer = func(payload []byte) stack { s := outer(seen, payload); s.family = family; return s }
			if s := outer(&Parsed{}, nil); len(s.ext) > 0 || s.proto == 143 {
				if family == 4 {
					continue
				}
			}
			all = append(all, e)
		}
	}
	raw := func(proto uint8, ext ...extHeader) func(*Parsed, []byte) stack {
		return func(_ *Parsed, payload []byte) stack { return stack{proto: proto, body: payload, ext: ext} }
	}
	byFamily := func(ext ...extHeader) func(*Parsed, []byte) stack {
		return func(in *Parsed, payload []byte) stack { return stack{proto: protoOf(in), body: payload, ext: ext} }
	}
	udp := func(port uint16, header string, pack func([]byte, *Parsed) []byte) func([]byte, *Parsed) []byte {
		return func(inner []byte, in *Parsed) []byte {
			body := slices.Concat([]byte(header), pack(inner, in))
			return slices.Concat([]byte("\xc1\x23"), be.AppendUint16(nil, port), be.AppendUint16(nil, uint16(8+len(body))), []byte("\x00\x00"), body)
		}
	}
	gre := func(flags, rest string, frame bool) func([]byte, *Parsed) []byte {
		return func(inner []byte, in *Parsed) []byte {
			if frame {
				return slices.Concat([]byte(flags+"\x65\x58"+rest), inner)
			}
			return slices.Concat([]byte(flags+etherTypeOf(in)+rest), bare(inner, in))
		}
	}
	add("VXLAN", VXLAN, testVNI, true, raw(17), udp(4789, "\x08\x00\x00\x00\x12\x34\x56\x00", whole))
	add("GRE", GRE, 0, false, raw(47), gre("\x00\x00", "", false))
	add("GRE with unused bits", GRE, 0, false, raw(47), gre("\x03\xf8", "", false))
	add("GRE with key", GRE, testKey, false, raw(47), gre("\x20\x00", "\xfe\xdc\xba\x98", false))
	add("GRE with checksum, key, number", GRE, testKey, false, raw(47), gre("\xb0\x00", "\x12\x34\x00\x00\xfe\xdc\xba\x98\x00\x00\x00\x01", false))
	add("NVGRE", GRE, testKey, true, raw(47), gre("\x20\x00", "\xfe\xdc\xba\x98", true))
	add("GRE of Ethernet", GRE, 0, true, raw(47), gre("\x00\x00", "", true))
	add("IP in IP", IPInIP, 0, false, byFamily(), bare)
	add("IP in IP behind another Routing header", IPInIP, 0, false, byFamily(extHeader{43, []byte{2, 0, 0, 0, 0, 0}}), bare)
	add("SRv6", SRv6, 0, false, byFamily(srhOf), bare)
	add("SRv6 behind options", SRv6, 0, false, byFamily(extHeader{0, make([]byte, 6)}, srhOf), bare)
	add("SRv6 of Ethernet", SRv6, 0, true, raw(143, srhOf), whole)
	add("SRv6 of Ethernet, one segment", SRv6, 0, true, raw(143), whole)
	for _, l := range labelStacks {
		pack := func(inner []byte, in *Parsed) []byte { return slices.Concat([]byte(l.stack+l.word), l.pack(inner, in)) }
		add("IP, "+l.name, MPLS, l.id, l.vlan, raw(137), pack)
		add("GRE, "+l.name, MPLS, l.id, l.vlan, raw(47), func(inner []byte, in *Parsed) []byte {
			return slices.Concat([]byte("\x20\x00\x88\x47\x00\x00\x00\x09"), pack(inner, in))
		})
		all = append(all, encapsulation{name: l.name, kind: MPLS, id: l.id, vlan: l.vlan,
			packs: func(inner []byte, in *Parsed) ([]byte, bool) { return pack(inner, in), true }})
	}
	return all
}

// TestEncapsulations: they have each kind of tunnel.
func TestEncapsulations(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range encapsulations() {
		seen[e.kind.String()] = true
	}
	for _, name := range TunnelNames() {
		if !seen[name] {
			t.Errorf("none in a tunnel of kind %s", name)
		}
	}
}

// TestTunnelPorts: they are the ports of the datagrams that may be tunnels, and mayCarry knows those of payloadOf.
func TestTunnelPorts(t *testing.T) {
	for port := range 1 << 16 {
		read := false
		for _, header := range []string{"\x30\xff\x00\x00\x00\x00\x00\x00\x45", "\x60\x02\x00\x00\x00\x00\x00\x00\x00"} {
			b := append(make([]byte, IPv4Len+UDPLen), header...)
			p := Parsed{Kind: IP, Family: 4, Proto: ProtoUDP, L4: IPv4Len, IPEnd: uint32(len(b)), DstPort: uint16(port)}
			read = read || anyPayload(b, &p).what != nothing
			if followed := payloadOf(b, &p).what != nothing; followed != mayCarry(&p) {
				t.Errorf("port %d: payloadOf follows it %v, mayCarry %v", port, followed, mayCarry(&p))
			}
		}
		if _, named := TunnelPorts[uint16(port)]; named != read {
			t.Errorf("port %d: named %v, read %v", port, named, read)
		}
	}
}

// labelStacks are MPLS label stacks, with a pseudowire's control word, and what follows.
var labelStacks = []struct {
	name, stack, word string
	id                uint32
	vlan              bool
	pack              func([]byte, *Parsed) []byte
}{
	{"one label", "\xab\xcd\xe1\x40", "", testLabel, false, bare},
	{"three labels", "\x00\x01\x00\x40\x00\x02\x0a\x40\xab\xcd\xe1\x40", "", testLabel, false, bare},
	{"an entropy label", "\xab\xcd\xe0\x40\x00\x00\x70\x40\x12\x34\x51\x00", "", testLabel, false, bare},
	{"an entropy label in the middle", "\x00\x00\x70\x40\x12\x34\x50\x00\xab\xcd\xe1\x40", "", testLabel, false, bare},
	{"pseudowire with control word", "\xab\xcd\xe1\x40", "\x00\x00\x00\x07", testLabel, true, whole},
	{"pseudowire without control word", "\xab\xcd\xe1\x40", "", testLabel, true, whole},
}

// put wraps a frame with the headers in in. It returns the frame and what Parse must find.
func (e *encapsulation) put(inner []byte, in Parsed, around stack, mac byte) ([]byte, Parsed) {
	inner = bytes.Clone(inner)
	inner[0] = mac
	payload, _ := e.packs(inner, &in)
	var frame []byte
	var out Parsed
	if e.outer == nil {
		frame, out = []byte{2, 0, 0, 0, 0, 3, 2, 0, 0, 0, 0, 4}, Parsed{EtherType: 0x8847, DSCP: in.DSCP, ECN: in.ECN}
		for _, t := range around.tags {
			frame = be.AppendUint16(be.AppendUint16(frame, t.tpid), t.tci)
		}
		frame = slices.Concat(be.AppendUint16(frame, 0x8847), payload, make([]byte, around.padding))
		_, tags := stack{family: 4, tags: around.tags}.build()
		out.Tags, out.OuterTag, out.InnerTag, out.Len = tags.Tags, tags.OuterTag, tags.InnerTag, uint32(len(frame))
	} else {
		s := e.outer(payload)
		s.tags, s.dscp, s.ecn, s.padding, s.options = around.tags, around.dscp, around.ecn, around.padding, around.options
		if s.family != 4 {
			s.options = nil
		}
		frame, out = s.build()
	}
	shift := len(frame) - around.padding - len(payload) + len(payload) - len(inner)
	if !e.vlan { // the payload ends with the IP packet
		shift += len(inner) - int(in.IPEnd)
	}
	return frame, in.moved(shift, &out, e)
}

// moved is what Parse must find of a packet that lies shift octets later, in an encapsulation with these outer headers.
func (p Parsed) moved(shift int, out *Parsed, e *encapsulation) Parsed {
	for _, at := range []*uint16{&p.L3, &p.L4, &p.BTH, &p.Payload, &p.DstOpts, &p.HopOpts} {
		if *at != 0 {
			*at += uint16(shift)
		}
	}
	p.IPEnd += uint32(shift)
	p.ICRC += uint32(shift)
	p.tunnel = Tunnel{ID: e.id, Kind: e.kind, opaque: e.kind == MPLS}
	if e.vlan {
		p.tunnel.VLAN = p.OuterTag
	}
	p.Outer = p.L3
	if out.L3 != 0 {
		p.Outer = out.L3
	}
	p.tunnel.opaque = e.kind == MPLS || out.Proto == 143
	p.DSCP, p.ECN, p.Tags, p.OuterTag, p.InnerTag, p.EtherType, p.Len = out.DSCP, out.ECN, out.Tags, out.OuterTag, out.InnerTag, out.EtherType, out.Len
	return p
}

// drawAround draws what surrounds a tunnel.
func drawAround(t *rapid.T) stack {
	s := drawIP(t)
	s.options = s.options[:len(s.options)/4*4]
	return stack{tags: s.tags, dscp: s.dscp, ecn: s.ecn, padding: s.padding, options: s.options}
}

// TestTunnels: any RoCEv2 frame in any tunnel gives the same packet, further into the frame, with the traffic class of the outermost IP
// header; marking that changes nothing else and leaves its checksum right.
func TestTunnels(t *testing.T) {
	for _, e := range encapsulations() {
		t.Run(e.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				inner, in := drawRoCEv2(t).build()
				mac := rapid.SampledFrom([]byte{0x00, 0x02, 0x0e, 0x42, 0x4e, 0x60, 0x6c, 0x80, 0xfe, 0x10}).Draw(t, "first octet of the MAC address")
				frame, want := e.put(inner, in, drawAround(t), mac)
				var got Parsed
				Parse(frame, uint32(len(frame)), &got)
				if got != want {
					t.Fatalf("% x\nparsed to\n%+v, want\n%+v", frame, got, want)
				}
				if !got.Encapsulated() || got.Tunnel() != want.tunnel || Classify(frame, &got, &DefaultCodePoints) != NotANotification {
					t.Fatalf("tunnel %+v, classified as %v", got.Tunnel(), Classify(frame, &got, &DefaultCodePoints))
				}
				checkMark(t, frame, &got)
			})
		})
	}
}

// checkMark marks a frame in a tunnel, clears the mark, and compares with what may have changed.
func checkMark(t *rapid.T, frame []byte, p *Parsed) {
	before, was := bytes.Clone(frame), *p
	right := VerifyICRC(frame, p)
	if markCE(frame, p) != (was.ECN == ECT0 || was.ECN == ECT1) {
		t.Fatalf("ECN was %d, is %d", was.ECN, p.ECN)
	}
	outer := int(p.Outer)
	want := bytes.Clone(before)
	if was.ECN != NotECT {
		if want[outer]>>4 == 4 {
			header := want[outer : outer+int(want[outer]&15)*4]
			header[1] |= 3
			header[10], header[11] = 0, 0
			be.PutUint16(header[10:], plainChecksum(header))
		} else {
			want[outer+1] |= 0x30
		}
	}
	if !bytes.Equal(frame, want) || VerifyICRC(frame, p) != right {
		t.Fatalf("marked\n% x, want\n% x", frame, want)
	}
	var again Parsed
	if Parse(frame, uint32(len(frame)), &again); again != *p {
		t.Fatalf("marked, it parses to\n%+v, want\n%+v", again, *p)
	}
	if was.ECN == ECT0 && (!clearCE(frame, p) || !bytes.Equal(frame, before)) {
		t.Fatalf("cleared\n% x, was\n% x", frame, before)
	}
}

// TestTunnelCut: however little of an encapsulated frame is captured, or is there, Parse finds the whole packet or describes the outermost
// headers, and its other users don't fail.
func TestTunnelCut(t *testing.T) {
	inner, in := stack{family: 6, opcode: UDSendOnly, ecn: ECT0, payload: 9}.build()
	for _, e := range encapsulations() {
		frame, want := e.put(inner, in, stack{ecn: ECT0, tags: []tag{{0x8100, 7}}}, 2)
		for n := range len(frame) + 1 {
			for _, frameLen := range []uint32{uint32(len(frame)), uint32(n)} {
				var p Parsed
				parseBody(t, bytes.Clone(frame[:n]), frameLen, &p)
				Parse(frame[:n], frameLen, &p)
				complete := frameLen >= want.IPEnd && n >= int(want.Payload)
				want.Len = frameLen
				if e.outer != nil {
					complete = frameLen == uint32(len(frame)) && n >= int(want.Payload)
				}
				if p.Encapsulated() != complete || complete && p != want {
					t.Fatalf("%s: %d octets of %d parsed to\n%+v, want\n%+v, complete: %v", e.name, n, frameLen, p, want, complete)
				}
			}
		}
	}
}

// TestTwoLevels: an IP tunnel below labels, and labels in an IP tunnel, are followed; two IP tunnels and two label stacks are not.
func TestTwoLevels(t *testing.T) {
	inner, in := stack{family: 4, opcode: RCWriteMiddle, ecn: ECT1, dscp: 1}.build()
	byName := map[string]*encapsulation{}
	for _, e := range encapsulations() {
		byName[e.name] = &e
	}
	for _, c := range []struct {
		inside, outside string
		id              uint32
		kind            TunnelKind
		found           bool
	}{
		{"VXLAN over IPv4", "one label", testVNI, VXLAN, true},
		{"GRE with key over IPv6", "pseudowire with control word", testKey, GRE, true},
		{"IP in IP over IPv6", "three labels", 0, IPInIP, true},
		{"one label", "VXLAN over IPv6", testLabel, MPLS, true},
		{"pseudowire without control word", "NVGRE over IPv4", testLabel, MPLS, true},
		{"VXLAN over IPv4", "VXLAN over IPv4", 0, 0, false},
		{"IP in IP over IPv4", "GRE over IPv6", 0, 0, false},
		{"one label", "pseudowire with control word", 0, 0, false},
		{"VXLAN over IPv6", "GRE, one label over IPv4", 0, 0, false},
	} {
		middle, m := byName[c.inside].put(inner, in, stack{dscp: 2, ecn: ECT0}, 2)
		if m.EtherType == EtherTypeMPLS { // for an encapsulation of frames only
			m.IPEnd = uint32(len(middle))
		} else {
			m.L3, m.Family = EthernetLen, map[uint16]uint8{EtherTypeIPv4: 4, EtherTypeIPv6: 6}[m.EtherType]
			m.IPEnd = uint32(len(middle))
		}
		frame, _ := byName[c.outside].put(middle, m, stack{dscp: 3, ecn: CE}, 2)
		var p Parsed
		Parse(frame, uint32(len(frame)), &p)
		if p.Encapsulated() != c.found {
			t.Errorf("%s in %s: found %v, want %v: %+v", c.inside, c.outside, p.Encapsulated(), c.found, p)
			continue
		}
		outermost := slices.Index(frame, 3<<2|CE) - 1 // the octet after version and header length, over IPv4
		if byName[c.outside].outer == nil {
			outermost = slices.Index(frame, 2<<2|ECT0) - 1
		}
		tunnel := p.Tunnel()
		if c.found && (tunnel.Kind != c.kind || tunnel.ID != c.id || p.Src != in.Src || p.DestQP != in.DestQP || p.Kind != RoCEv2 || !VerifyICRC(frame, &p)) {
			t.Errorf("%s in %s: %+v, tunnel %+v", c.inside, c.outside, p, tunnel)
		}
		if c.found && frame[p.Outer]>>4 == 4 && int(p.Outer) != outermost {
			t.Errorf("%s in %s: the outermost IP header is at %d, want %d: % x", c.inside, c.outside, p.Outer, outermost, frame)
		}
		if hides := MayHide(frame, &p, &DefaultCodePoints); !hides {
			t.Errorf("%s in %s: the domain filter would pass it", c.inside, c.outside)
		}
	}
}

// TestNoTunnel: what looks like a tunnel, and what isn't RoCEv2 inside, is described by its outermost headers.
func TestNoTunnel(t *testing.T) {
	roce := built(stack{family: 4, opcode: RCWriteMiddle})
	packet := packetOf(stack{family: 4, opcode: RCWriteMiddle})
	over := func(proto uint8, header string, body []byte) []byte {
		return built(stack{family: 4, proto: proto, body: append([]byte(header), body...)})
	}
	over6 := func(proto uint8, body []byte) []byte { return built(stack{family: 6, proto: proto, body: body}) }
	longStack := bytes.Repeat([]byte("\x00\x01\x00\x40"), maxLabels)
	for name, frame := range map[string][]byte{
		"VXLAN without the flag of a VNI":     over(17, "\xc1\x23\x12\xb5\x00\x00\x00\x00\x00\x00\x00\x00\x12\x34\x56\x00", roce),
		"VXLAN of another port":               over(17, "\xc1\x23\x12\xb6\x00\x00\x00\x00\x08\x00\x00\x00\x12\x34\x56\x00", roce),
		"VXLAN of DNS":                        vxlan(built(stack{family: 4, dstPort: 53})),
		"VXLAN of nothing":                    over(17, "\xc1\x23\x12\xb5\x00\x10\x00\x00\x08\x00\x00\x00\x12\x34\x56\x00", nil),
		"GRE with routing":                    over(47, "\x40\x00\x08\x00", packet),
		"GRE of version 1":                    over(47, "\x00\x01\x08\x00", packet),
		"GRE of PPP":                          over(47, "\x00\x00\x88\x0b", packet),
		"GRE, the key cut":                    over(47, "\x20\x00\x08\x00", nil),
		"GRE, the number cut":                 over(47, "\x10\x00\x08\x00\x00", nil),
		"Ethernet in IPv4":                    over(143, "", roce),
		"a fragment of IP in IP":              built(stack{family: 4, frag: 0x2000, proto: 4, body: packet}),
		"IP in IP longer than the outer one":  over(4, "", packet[:len(packet)-1]),
		"IP in IP, a fragment inside":         over(4, "", packetOf(stack{family: 4, frag: 0x2000, opcode: RCWriteMiddle})),
		"IP of version 5 in IP":               over(4, "\x55", packet[1:]),
		"MPLS without a bottom":               linkFrame(0x8847, string(longStack)+string(packet)),
		"MPLS with too many labels":           linkFrame(0x8847, string(longStack)+"\x00\x01\x01\x40"+string(packet)),
		"MPLS of nothing":                     linkFrame(0x8847, "\x00\x01\x01\x40"),
		"MPLS cut":                            linkFrame(0x8847, "\x00\x01\x00\x40\x00\x01\x01"),
		"MPLS of DNS":                         linkFrame(0x8847, "\x00\x01\x01\x40"+string(dns4)),
		"MPLS of an associated channel":       linkFrame(0x8847, "\x00\x01\x01\x40\x10\x00\x00\x21"+string(packet)),
		"MPLS of a frame in one":              linkFrame(0x8847, "\x00\x01\x01\x40\x10\x00\x00\x21"+string(roce)),
		"RoCEv2 itself":                       roce,
		"RoCEv2 of a fragment in SRv6":        over6(41, packetOf(fragment6(17, 0))),
		"an IPv6 packet after a Mobility one": over6(135, []byte{41, 0}),
	} {
		var p, outer Parsed
		Parse(frame, uint32(len(frame)), &p)
		outer.Len = uint32(len(frame))
		parseFrame(frame, 0, len(frame), &outer)
		if p != outer || p.Encapsulated() || p.Tunnel() != (Tunnel{}) {
			t.Errorf("%s: parsed to\n%+v, want\n%+v", name, p, outer)
		}
	}
}

// TestTunnelOfNotification: a notification in a tunnel isn't one here, and the domain filter judges it as before: a standard CNP passes in
// the tunnels that it reads.
func TestTunnelOfNotification(t *testing.T) {
	standard, s := stack{family: 6, opcode: CNP, payload: 16}.build()
	fast, f := stack{family: 6, opcode: CNP, payload: 16, ext: []extHeader{{60, fastCNPOption}}}.build()
	extended, x := stack{family: 4, opcode: CNP, payload: 12, bthFlags: ExtensionBit}.build()
	broken, k := stack{family: 6, opcode: CNP, payload: 16, ext: []extHeader{{60, []byte("\x1e\x05\x00\x00\x00\x00")}}}.build()
	for _, e := range encapsulations() {
		for _, c := range []struct {
			name  string
			frame []byte
			p     Parsed
			hides bool
		}{{"standard CNP", standard, s, false}, {"Fast CNP", fast, f, true}, {"CNP with the E bit", extended, x, true}, {"CNP with broken options", broken, k, true}} {
			frame, want := e.put(c.frame, c.p, stack{}, 2)
			hides, note := mayHideFrame(frame)
			if note != NotANotification || hides != (c.hides || want.tunnel.opaque) {
				t.Errorf("%s in %s: may hide %v, classified as %v", c.name, e.name, hides, note)
			}
		}
	}
}

// scapyTunnel is a line of testdata/tunnels.jsonl, which testdata/tunnels.py explains.
type scapyTunnel struct {
	Name, Frame, Kind, Src, Dst string
	ID, PSN                     uint32
	DestQP                      uint32 `json:"dest_qp"`
	SrcPort                     uint16 `json:"src_port"`
	VLAN, L3, Outer             uint16
	Class                       uint8
}

// TestScapyTunnels: Parse finds in tunnels that scapy built what scapy put there.
func TestScapyTunnels(t *testing.T) {
	file, err := os.Open(filepath.Join("testdata", "tunnels.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	seen := map[string]int{}
	for d := json.NewDecoder(file); ; {
		var want scapyTunnel
		if err := d.Decode(&want); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		frame, err := hex.DecodeString(want.Frame)
		if err != nil {
			t.Fatal(err)
		}
		var p Parsed
		Parse(frame, uint32(len(frame)), &p)
		tunnel := p.Tunnel()
		got := scapyTunnel{
			want.Name, want.Frame, tunnel.Kind.String(), p.Src.Netip().String(), p.Dst.Netip().String(),
			tunnel.ID, p.PSN, p.DestQP, p.SrcPort, tunnel.VLAN.VID(), p.L3, p.Outer, p.DSCP<<2 | p.ECN,
		}
		if got != want || p.Kind != RoCEv2 || p.Family == 4 && !VerifyICRC(frame, &p) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
		seen[want.Kind]++
	}
	for _, kind := range tunnelNames[1:] {
		if seen[kind] == 0 {
			t.Errorf("no frame in a tunnel of kind %s: found %v", kind, seen)
		}
	}
}
