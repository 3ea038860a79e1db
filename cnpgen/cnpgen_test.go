package cnpgen

import (
	"bytes"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
	"pgregory.net/rapid"
)

var formats = []struct {
	name  string
	build builder
	v4    bool // also over IPv4
	own   bool // its source is the gateway, which needs an address of the version
	kind  packet.Notification
}{
	{"standard-cnp", standardCNP(100), true, false, packet.StandardCNP},
	{"fast-cnp", fastCNP, false, true, packet.FastCNP},
	{"long-haul-cnp", longHaul(LongHaulCNP, severe, nil), true, true, packet.ExtendedCNP},
	{"long-haul-cnp-icmpv6", longHaul(LongHaulCNPICMPv6, severe, nil), false, true, packet.LongHaulCNPICMPv6},
	{"ppfc", ppfc(PPFC{Port: 2, Duration: 500}), true, true, packet.ExtendedCNP},
	{"proxy-notification", toSameFamily, true, true, packet.ProxyNotification},
}

// toSameFamily notifies a proxy over the data packet's IP version.
func toSameFamily(out, frame []byte, p *packet.Parsed, g *Gateway) int {
	to := proxy6
	if p.Family == 4 {
		to = proxy4
	}
	return notifyProxy(to, 3)(out, frame, p, g)
}

func TestLongestFrame(t *testing.T) {
	frame, p := flow6.carrying(3000).tagged(0x88a8, 1, 0x8100, 2).frame()
	if n := toSameFamily(make([]byte, MaxLen), frame, &p, &testGateway); n != MaxLen {
		t.Errorf("the longest frame has %d octets, MaxLen is %d", n, MaxLen)
	}
	frame, p = flow4.carrying(3000).frame()
	if n := toSameFamily(make([]byte, MaxLen), frame, &p, &testGateway); n != 14+576 {
		t.Errorf("the longest frame over IPv4 has %d octets, want 590", n)
	}
}

// TestLongestExtension: objects may fill the longest packet, and not an octet more; whatever is longer isn't built.
func TestLongestExtension(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(out []byte, t *Target, g *Gateway, l *LongHaul, x *Extension) int
		data  dataPacket
		room  int // for payload of one object: of the IP packet, less headers, fields, extension header, object header
		whole int
	}{
		{"RoCEv2 over IPv4", LongHaulCNP, flow4, 576 - 20 - 8 - 12 - packet.LongHaulLen - 4 - 8, 14 + 576},
		{"RoCEv2 over IPv6", LongHaulCNP, flow6, 1280 - 40 - 8 - 12 - packet.LongHaulLen - 4 - 8, 14 + 1280},
		{"ICMPv6", LongHaulCNPICMPv6, flow6, 1280 - 40 - 4 - packet.LongHaulLen - 8, 14 + 1280},
	} {
		target := c.data.target()
		for _, x := range []struct {
			e    Extension
			want int
		}{
			{Extension{Device: make([]byte, c.room)}, c.whole},
			{Extension{Path: make([]byte, c.room+1)}, 0},
			{Extension{Others: []packet.Object{{Payload: make([]byte, c.room-16)}, {Payload: make([]byte, 12)}}}, c.whole},
			{Extension{Others: []packet.Object{{Payload: make([]byte, 1<<16)}}}, 0},
			{Extension{Others: make([]packet.Object, 1000)}, 0},
			{Extension{Timestamp: 1, Device: make([]byte, c.room-12)}, c.whole},
			{Extension{}, c.whole - c.room - 8}, // no objects, no Extension Header
		} {
			if n := c.build(make([]byte, MaxLen), &target, &testGateway, &LongHaul{}, &x.e); n != x.want {
				t.Errorf("%s, %d octets of objects: %d octets, want %d", c.name, x.e.len(), n, x.want)
			}
		}
	}
}

func TestCannotBeBuilt(t *testing.T) {
	cnp := flow6
	cnp.opcode = packet.CNP
	cnp.payload = make([]byte, 16)
	no4, no6 := testGateway, testGateway
	no4.HasIPv4, no6.HasIPv6 = false, false
	for _, f := range formats {
		frame4, p4 := flow4.frame()
		frame6, p6 := flow6.frame()
		frameCNP, pCNP := cnp.frame()
		need := f.build(make([]byte, MaxLen), frame6, &p6, &testGateway)
		notRoCE := p6
		notRoCE.Kind = packet.IP
		for _, c := range []struct {
			name  string
			room  int
			frame []byte
			p     packet.Parsed
			g     Gateway
			can   bool
		}{
			{"IPv6", need, frame6, p6, testGateway, true},
			{"IPv6 without an IPv4 address", need, frame6, p6, no4, true},
			{"IPv4", MaxLen, frame4, p4, testGateway, f.v4},
			{"IPv4 without an IPv6 address", MaxLen, frame4, p4, no6, f.v4},
			{"IPv4 without an IPv4 address", MaxLen, frame4, p4, no4, f.v4 && !f.own},
			{"IPv6 without an IPv6 address", need, frame6, p6, no6, !f.own},
			{"one octet short", need - 1, frame6, p6, testGateway, false},
			{"no buffer", 0, frame6, p6, testGateway, false},
			{"a CNP is not answered", MaxLen, frameCNP, pCNP, testGateway, false},
			{"not RoCEv2", MaxLen, frame6, notRoCE, testGateway, false},
			{"a frame without its header", MaxLen, frame6[:13], p6, testGateway, false},
			{"a frame never parsed", MaxLen, nil, packet.Parsed{}, testGateway, false},
		} {
			out := make([]byte, c.room)
			if n := f.build(out, c.frame, &c.p, &c.g); (n > 0) != c.can {
				t.Errorf("%s, %s: length %d", f.name, c.name, n)
			} else if !c.can && !bytes.Equal(out, make([]byte, c.room)) {
				t.Errorf("%s, %s: wrote to the buffer", f.name, c.name)
			}
		}
	}
}

// TestLongHaulFields: values beyond their ranges saturate, or are left out.
func TestLongHaulFields(t *testing.T) {
	for _, c := range []struct {
		name    string
		l, want LongHaul
	}{
		{"Notify has no parameter", LongHaul{Level: 1, Action: Notify, Parameter: 30, SourceQP: 5}, LongHaul{Level: 1, SourceQP: 5}},
		{"the longest pause", LongHaul{Action: Pause, Parameter: 0xffff}, LongHaul{Action: Pause, Parameter: 0xffff}},
		{"at most 100 percent off", LongHaul{Action: RateReduce, Parameter: 101}, LongHaul{Action: RateReduce, Parameter: 100}},
		{"at most 100 percent back", LongHaul{Action: Resume, Parameter: 999}, LongHaul{Action: Resume, Parameter: 100}},
		{"unconditional resume", LongHaul{Action: Resume}, LongHaul{Action: Resume}},
		{"a QP has 24 bits", LongHaul{SourceQP: 0xff123456}, LongHaul{SourceQP: 0x123456}},
		{"largest metric", LongHaul{MetricType: 2, MetricValue: 0xffffff}, LongHaul{MetricType: 2, MetricValue: 0xffffff}},
		{"a larger one saturates", LongHaul{MetricType: 1, MetricValue: 1 << 24}, LongHaul{MetricType: 1, MetricValue: 0xffffff}},
		{"an action has two bits", LongHaul{Action: 0xfe}, LongHaul{Action: RateReduce}},
		{"reserved bits stay 0", LongHaul{Action: Pause, Reserved: 0xff}, LongHaul{Action: Pause}},
		{"at most 100 percent marked", LongHaul{MetricType: 3, MetricValue: 101}, LongHaul{MetricType: 3, MetricValue: 100}},
	} {
		b := bytes.Repeat([]byte{0xa5}, packet.LongHaulLen)
		putExtended(b, &c.l, nil, 247)
		if got := packet.DecodeLongHaul(b); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}

func checkNotification(t *rapid.T, out, frame []byte, data *packet.Parsed, g *Gateway, kind packet.Notification, sourceQP uint32) {
	var p packet.Parsed
	packet.Parse(out, uint32(len(out)), &p)
	from := g.IPv4
	if data.Family == 6 {
		from = g.IPv6
	}
	to := data.Src
	class, destQP := kind, data.DestQP
	switch kind {
	case packet.StandardCNP:
		from, destQP = data.Dst, sourceQP
	case packet.LongHaulCNP:
		class, destQP = packet.ExtendedCNP, sourceQP
	case packet.PPFC:
		class = packet.ExtendedCNP
	case packet.ProxyNotification:
		if to = proxy4; data.Family == 6 {
			to = proxy6
		}
	}
	if p.Src != from || p.Dst != to || p.Family != data.Family || int(p.IPEnd) != len(out) {
		t.Fatalf("%v: IPv%d from %v to %v, ends at %d of %d", kind, p.Family, p.Src.Netip(), p.Dst.Netip(), p.IPEnd, len(out))
	}
	if p.DSCP != g.DSCP || p.ECN != packet.NotECT {
		t.Fatalf("%v: DSCP %d, ECN %d", kind, p.DSCP, p.ECN)
	}
	l2 := 14 + 4*int(data.Tags)
	if !bytes.Equal(out[:6], frame[6:12]) || !bytes.Equal(out[6:12], frame[:6]) || !bytes.Equal(out[12:l2], frame[12:l2]) {
		t.Fatalf("%v: Ethernet header % x answers % x", kind, out[:l2], frame[:l2])
	}
	if got := packet.Classify(out, &p, &g.Code); got != class {
		t.Fatalf("%v: classified as %v", kind, got)
	}
	ip, upper := out[p.L3:], int(p.L4-p.L3)
	if p.Family == 4 && plainSum(ip[:20]) != 0xffff {
		t.Fatalf("%v: IPv4 checksum of % x", kind, ip[:20])
	}
	if kind == packet.LongHaulCNPICMPv6 {
		if plainSum(ip[8:40], []byte{0, 0, byte(len(ip[40:]) >> 8), byte(len(ip[40:])), 0, 0, 0, 58}, ip[40:]) != 0xffff {
			t.Fatalf("%v: ICMPv6 checksum of % x", kind, ip)
		}
		return
	}
	if kind == packet.ProxyNotification {
		checkProxied(t, ip, upper, frame, data)
		return
	}
	if p.Kind != packet.RoCEv2 || p.Opcode != packet.CNP || p.DestQP != destQP || p.SrcPort != data.SrcPort || p.PSN != 0 {
		t.Fatalf("%v: parsed as %+v", kind, p)
	}
	pKey := frame[data.BTH+2 : data.BTH+4]
	if !g.FlowPKey || pKey[0]&0x7f|pKey[1] == 0 {
		pKey = []byte{0xff, 0xff}
	}
	if got := out[p.BTH+2 : p.BTH+4]; !bytes.Equal(got, pKey) {
		t.Fatalf("%v: P_Key % x, want % x", kind, got, pKey)
	}
	if got, want := [4]byte(ip[len(ip)-4:]), plainICRC(ip, upper, g.ICRCExtensionHeaders); got != want {
		t.Fatalf("%v: ICRC % x, want % x", kind, got, want)
	}
}

// checkProxied checks a notification to a proxy behind its IP header: UDP, five-tuple, and how much of the data packet there is.
func checkProxied(t *rapid.T, ip []byte, udp int, frame []byte, data *packet.Parsed) {
	addrs, longest := ip[12:20], 576
	if ip[0]>>4 == 6 {
		addrs, longest = ip[8:40], 1280
	}
	datagram := ip[udp:]
	whole := append(bytes.Clone(datagram), make([]byte, len(datagram)%2)...)
	if plainSum(addrs, []byte{0, 17, byte(len(datagram) >> 8), byte(len(datagram))}, whole) != 0xffff {
		t.Fatalf("UDP checksum of % x", ip)
	}
	fields := 16
	if data.Family == 6 {
		fields = 40
	}
	invoking := datagram[8+fields:]
	all := frame[data.L3:data.IPEnd]
	if !bytes.Equal(invoking, all[:len(invoking)]) || len(invoking) < len(all) && len(ip) != longest || len(ip) > longest {
		t.Fatalf("%d octets of %d in an IP packet of %d", len(invoking), len(all), len(ip))
	}
}

func drawGateway(t *rapid.T) Gateway {
	return Gateway{
		IPv4: drawAddr4(t, "gateway's IPv4"), IPv6: drawAddr6(t, "gateway's IPv6"), HasIPv4: true, HasIPv6: true,
		DSCP: rapid.Uint8Range(0, 63).Draw(t, "DSCP"), Code: packet.DefaultCodePoints,
		ICRCExtensionHeaders: rapid.Bool().Draw(t, "ICRC extension headers"), FlowPKey: rapid.Bool().Draw(t, "the flow's P_Key"),
	}
}

func drawDataPacket(t *rapid.T) dataPacket {
	d := dataPacket{
		v6:      rapid.Bool().Draw(t, "v6"),
		srcPort: rapid.Uint16().Draw(t, "source port"),
		opcode: rapid.SampledFrom([]packet.Opcode{packet.RCSendFirst, packet.RCWriteMiddle, packet.RCReadRespMiddle,
			packet.UC | packet.RCSendLast, packet.UDSendOnly}).Draw(t, "opcode"),
		pKey:    rapid.OneOf(rapid.Uint16Range(1, 0xffff), rapid.SampledFrom([]uint16{0x7fff, 0x8000, 0xffff})).Draw(t, "P_Key"),
		destQP:  rapid.Uint32Range(0, 0xffffff).Draw(t, "destination QP"),
		payload: count(rapid.SampledFrom([]int{64, 65, 300, 470, 500, 1200, 1500}).Draw(t, "payload")),
	}
	for range rapid.IntRange(0, packet.MaxTags).Draw(t, "tags") {
		tpid := rapid.SampledFrom([][]byte{{0x81, 0}, {0x88, 0xa8}, {0x91, 0}}).Draw(t, "TPID")
		d.tags = append(append(d.tags, tpid...), rapid.SliceOfN(rapid.Byte(), 2, 2).Draw(t, "TCI")...)
	}
	if !d.v6 {
		d.src, d.dst = drawAddr4(t, "source"), drawAddr4(t, "destination")
		d.options = make([]byte, 4*rapid.IntRange(0, 10).Draw(t, "option words"))
		return d
	}
	d.src, d.dst = drawAddr6(t, "source"), drawAddr6(t, "destination")
	for range rapid.IntRange(0, 3).Draw(t, "extension headers") {
		d.extensions = append(d.extensions, extension{header: packet.ProtoDestOpts, length: rapid.IntRange(1, 4).Draw(t, "length")})
	}
	return d
}

// drawAddr4 draws a unicast address, as senders, receivers and gateways have.
func drawAddr4(t *rapid.T, label string) packet.Addr {
	return packet.AddrFrom4(append([]byte{rapid.ByteRange(1, 126).Draw(t, label)}, rapid.SliceOfN(rapid.Byte(), 3, 3).Draw(t, label)...))
}

func drawAddr6(t *rapid.T, label string) packet.Addr {
	return packet.Addr{Hi: rapid.Uint64Range(1, 0xfeffffff_ffffffff).Draw(t, label), Lo: rapid.Uint64().Draw(t, label)}
}

func TestNoAllocations(t *testing.T) {
	out := make([]byte, MaxLen)
	for i := range goldens {
		c := &goldens[i]
		frame, p := c.data.frame()
		gw := c.gateway()
		if n := testing.AllocsPerRun(100, func() { c.build(out, frame, &p, &gw) }); n != 0 {
			t.Errorf("%s: %v allocations", c.name, n)
		}
	}
}

// TestShortLongHaulCNP: a Long-haul CNP without an extension is the one with an empty extension, in any buffer.
func TestShortLongHaulCNP(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		target, g := flow4.target(), testGateway
		target.Tags = uint8(rapid.IntRange(0, 3).Draw(t, "tags"))
		copy(target.Link[:], rapid.SliceOfN(rapid.Byte(), LinkLen, LinkLen).Draw(t, "link"))
		target.Src.Lo = target.Src.Lo&^0xffffffff | uint64(rapid.Uint32().Draw(t, "sender"))
		target.SrcPort, target.PKey = rapid.Uint16().Draw(t, "port"), rapid.Uint16().Draw(t, "P_Key")
		target.Encapsulated = rapid.IntRange(0, 9).Draw(t, "in a tunnel") == 0
		g.DSCP, g.FlowPKey = uint8(rapid.IntRange(0, 63).Draw(t, "DSCP")), rapid.Bool().Draw(t, "flow's P_Key")
		g.HasIPv4 = rapid.IntRange(0, 9).Draw(t, "no address") != 0
		l := drawLongHaul(t)
		size := rapid.IntRange(0, 120).Draw(t, "space")
		short, whole := bytes.Repeat([]byte{0xa5}, size), bytes.Repeat([]byte{0xa5}, size)
		n := LongHaulCNP(short, &target, &g, &l, nil)
		if want := LongHaulCNP(whole, &target, &g, &l, &Extension{}); n != want || !bytes.Equal(short, whole) {
			t.Fatalf("%d octets, want %d:\n% x\n% x", n, want, short, whole)
		}
	})
}
