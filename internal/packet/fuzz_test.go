package packet

import (
	"bytes"
	"testing"

	"github.com/cnpgate/cnpgate/internal/testkit/notifications"
	"github.com/cnpgate/cnpgate/internal/testkit/pcap"
)

// checkInvariants is what every consumer of a Parsed relies on.
func checkInvariants(t interface{ Fatalf(string, ...any) }, b []byte, frameLen uint32, p *Parsed) {
	check := func(ok bool, what string) {
		if !ok {
			t.Fatalf("%s: % x of %d octets parsed to %+v", what, b, frameLen, *p)
		}
	}
	check(p.Len == frameLen, "length")
	captured := min(uint32(len(b)), frameLen)
	l3, l4 := uint32(p.L3), uint32(p.L4)
	check(p.Tags <= MaxTags && (p.OuterTag != 0) == (p.Tags > 0) && (p.InnerTag != 0) == (p.Tags > 1), "tags")
	check(p.DSCP < 64 && p.ECN < 4, "traffic class")
	switch p.Kind {
	case Other, MACControl:
		only := Parsed{Kind: p.Kind, Tags: p.Tags, OuterTag: p.OuterTag, InnerTag: p.InnerTag, EtherType: p.EtherType, Len: frameLen}
		check(*p == only, "more than the Ethernet header")
		return
	}
	check(p.Family == 4 || p.Family == 6, "family")
	first := 14 + 4*uint32(p.Tags)
	check(l3 >= first && l3+20 <= captured && p.IPEnd <= frameLen, "IP header")
	check(p.Encapsulated() == (l3 > first) && (p.Tunnel().Kind != NoTunnel) == (l3 > first), "tunnel")
	check(p.Family == 4 || l3+40 <= captured, "IPv6 header")
	check(p.Outer == p.L3 || p.Encapsulated() && uint32(p.Outer) >= first && uint32(p.Outer)+20 <= l3, "outermost IP header")
	class := b[p.Outer+1]
	if b[p.Outer]>>4 == 6 {
		class = uint8(be.Uint16(b[p.Outer:]) >> 4)
	}
	check(class == p.DSCP<<2|p.ECN, "the outermost traffic class")
	check(p.Encapsulated() && p.Kind == RoCEv2 || p.Family == 4 == (p.EtherType == 0x0800) && p.Family == 6 == (p.EtherType == 0x86dd), "EtherType")
	check(l4 == 0 || l4 >= l3+20 && l4 <= p.IPEnd, "upper layer")
	for _, options := range []uint16{p.HopOpts, p.DstOpts} {
		check(options == 0 || p.Family == 6 && uint32(options) >= l3+40 && uint32(options)+8 <= min(captured, p.IPEnd), "options")
		check(options == 0 || l4 == 0 || uint32(options)+8 <= l4, "options before the upper layer")
	}
	check(p.DstPort == 0 && p.SrcPort == 0 || p.Proto == 17 && l4+8 <= captured && l4+8 <= p.IPEnd, "ports")
	if p.Kind != RoCEv2 {
		ip := *p
		ip.BTH, ip.Payload, ip.ICRC, ip.Opcode, ip.BTHFlags, ip.DestQP, ip.PSN, ip.SourceQP = 0, 0, 0, 0, 0, 0, 0, 0
		check(*p == ip, "RoCEv2 fields of another packet")
		return
	}
	check(p.DstPort == 4791 && uint32(p.BTH) == l4+8 && p.Ext() == int(p.BTH)+12 && int(p.Payload) >= p.Ext(), "RoCEv2 headers")
	check(uint32(p.Payload) <= captured && uint32(p.Payload) <= p.ICRC && p.ICRC+4 <= p.IPEnd, "RoCEv2 extent")
	check(p.Opcode.Known() && p.DestQP < 1<<24 && p.PSN < 1<<24 && p.SourceQP < 1<<24, "RoCEv2 fields")
}

// parseSeed is an input of FuzzParse.
type parseSeed struct {
	frame    []byte
	frameLen uint32
}

// parseSeeds are frames of real traffic, captured in part, what these lack, and the golden notifications.
func parseSeeds(t testing.TB) (all []parseSeed) {
	for _, path := range pcap.Real(t) {
		frames := pcap.Octets(pcap.Read(t, path))
		for _, frame := range frames[:min(len(frames), 12)] {
			all = append(all, parseSeed{frame[:min(len(frame), 128)], uint32(len(frame))})
		}
	}
	for _, s := range seedStacks {
		frame, _ := s.build()
		all = append(all, parseSeed{frame, uint32(len(frame))})
	}
	for _, e := range encapsulations() {
		inner, p := stack{family: 4, opcode: RCWriteMiddle, ecn: ECT0}.build()
		frame, _ := e.put(inner, p, stack{ecn: ECT0}, 2)
		all = append(all, parseSeed{frame, uint32(len(frame))})
	}
	refusal := linuxRefusal(t)
	all = append(all, parseSeed{refusal, uint32(len(refusal))})
	for i := range notifications.All {
		frame := notifications.All[i].Bytes()
		all = append(all, parseSeed{frame, uint32(len(frame))})
	}
	return all
}

// FuzzParse: no input panics, whatever else works on a Parsed included, and the invariants hold.
func FuzzParse(f *testing.F) {
	for _, s := range parseSeeds(f) {
		f.Add(s.frame, s.frameLen)
	}
	var p Parsed
	f.Fuzz(func(t *testing.T, b []byte, frameLen uint32) { parseBody(t, bytes.Clone(b), frameLen, &p) })
}

// parseBody is FuzzParse of a frame, which it may mark. Whatever p holds, it is overwritten.
func parseBody(t testing.TB, b []byte, frameLen uint32, p *Parsed) {
	Parse(b, frameLen, p)
	checkInvariants(t, b, frameLen, p)
	if uint64(len(b)) > uint64(frameLen) {
		b = b[:frameLen]
	}
	if Classify(b, p, &DefaultCodePoints) != NotANotification && p.Family == 0 {
		t.Fatalf("% x: a notification without IP", b)
	}
	MayHide(b, p, &DefaultCodePoints)
	SourceRouted(b, p)
	DecodeNeighborSolicitation(b, p)
	AdvertisedTarget(b, p)
	EchoRequest(b, p)
	DecodeARP(b)
	if ParameterProblem(b, p) {
		DecodeFastCNPRefusal(b, p, &DefaultCodePoints)
	}
	if p.Family == 6 && p.L4 != 0 && len(b) >= int(p.L4) {
		OptionsOK(b, p, &DefaultCodePoints)
	}
	ok := VerifyICRC(b, p)
	before := *p
	if markCE(b, p) {
		var again Parsed
		Parse(b, frameLen, &again)
		if again != *p || VerifyICRC(b, &again) != ok {
			t.Fatalf("marked %+v, which was %+v, parses to %+v", *p, before, again)
		}
	}
	if len(b) >= EthernetLen {
		var out [EthernetLen + MaxTags*VLANTagLen]byte
		ReplyEthernet(out[:], b, p)
	}
}

// seedStacks have what the captures lack.
var seedStacks = []stack{
	{family: 4, tags: []tag{{0x8100, 5}}, opcode: UDSendOnly, ecn: ECT0},
	{family: 4, options: make([]byte, 8), opcode: RD | RCWriteOnlyImm, ecn: ECT1},
	{family: 4, frag: 0x2000, opcode: RCSendOnly},
	{family: 6, tags: []tag{{0x88a8, 5}, {0x8100, 6}}, opcode: XRC | RCCmpSwap},
	{family: 6, ext: []extHeader{{0, make([]byte, 6)}, {43, make([]byte, 14)}, {60, fastCNPOption}}, opcode: CNP, payload: 16},
	{family: 6, ext: []extHeader{{44, []byte{0, 0, 1, 2, 3, 4}}, {51, make([]byte, 10)}}, opcode: CNP, bthFlags: 0x60, payload: 12},
	{family: 6, ext: []extHeader{{44, []byte{0, 1, 1, 2, 3, 4}}}, opcode: RCSendOnly},
	{family: 6, proto: 58, body: []byte{200, 0, 0, 0, 1, 2, 3, 4}},
	{family: 4, dstPort: 1022},
}
