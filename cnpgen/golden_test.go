package cnpgen

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/notifications"
)

// golden is one of the golden notifications and what it is built from.
type golden struct {
	name  string
	data  dataPacket
	code  func(g *Gateway) // changes the gateway, nil: none
	build builder
}

func (g *golden) gateway() Gateway {
	gw := testGateway
	if g.code != nil {
		g.code(&gw)
	}
	return gw
}

var testGateway = Gateway{
	IPv4: addr("10.0.0.254"), IPv6: addr("2001:db8:a::fe"), HasIPv4: true, HasIPv6: true, DSCP: 48,
	Code: packet.DefaultCodePoints, ICRCExtensionHeaders: true,
}

// The flow of draft-tian 7: source QP 100, destination QP 200. Its IPv6 twin goes from one data centre's prefix to the other's.
var (
	flow4 = dataPacket{src: addr("10.0.0.1"), dst: addr("10.0.0.4"), srcPort: 52769, destQP: 200}
	flow6 = dataPacket{src: addr("2001:db8:a::1"), dst: addr("2001:db8:b::4"), srcPort: 52769, destQP: 200}
)

// contentOf is the content of a golden Long-haul CNP.
func contentOf(name string) LongHaul {
	for _, l := range notifications.Find(name).Lines() {
		if l.Name == "long_haul_cnp.level" {
			return packet.DecodeLongHaul(notifications.Find(name).Bytes()[l.Offset:])
		}
	}
	panic(name + " is no Long-haul CNP")
}

var severe = contentOf("long-haul-cnp-v4")

var proxy4, proxy6 = addr("10.0.0.253"), addr("2001:db8:a::fd")

// count is n octets that count up from 0.
func count(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

func hexOf(n int) string { return hex.EncodeToString(count(n)) }

func mustHex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

var goldens = []golden{
	{"standard-cnp-v4", flow4, nil, standardCNP(100)},
	{"standard-cnp-v6-tagged", flow6.tagged(0x8100, 0x6064), nil, standardCNP(100)},
	{"fast-cnp", flow6, nil, fastCNP},
	{"fast-cnp-qinq-icrc-without-extension-headers", flow6.tagged(0x88a8, 0x600a, 0x8100, 0x6064),
		func(g *Gateway) { g.ICRCExtensionHeaders = false }, fastCNP},
	{"fast-cnp-preallocated-trace", flow6.traced(0x31, 0,
		"00011002c0000000"+"0000000000000000"+"3e00000700010002"), nil, fastCNP},
	{"fast-cnp-incremental-trace", flow6.tagged(0x8100, 0x6064).traced(0x11, 1,
		"0000088080000000"+"3d000009"+"3e000008"+"3f000007"), nil, fastCNP},
	{"fast-cnp-longest-trace", flow6.tagged(0x88a8, 0x600a, 0x8100, 0x6064).traced(0x31, 0,
		"00011800e0000000"+hexOf(228)), nil, fastCNP},
	{"fast-cnp", flow6.traced(0x31, 0, "00011800e0000000"+hexOf(232)), nil, fastCNP}, // too long: option 1
	{"long-haul-cnp-v4", flow4, nil, longHaul(LongHaulCNP, contentOf("long-haul-cnp-v4"), nil)},
	{"long-haul-cnp-v6-tagged", flow6.tagged(0x8100, 0x6064), nil, longHaul(LongHaulCNP, contentOf("long-haul-cnp-v6-tagged"), nil)},
	{"long-haul-cnp-v4-notify-ecn-rate", flow4, nil, longHaul(LongHaulCNP, contentOf("long-haul-cnp-v4-notify-ecn-rate"), nil)},
	{"long-haul-cnp-v6-pause-growth", flow6, nil, longHaul(LongHaulCNP, contentOf("long-haul-cnp-v6-pause-growth"), nil)},
	{"long-haul-cnp-v4-objects", flow4, nil, longHaul(LongHaulCNP, contentOf("long-haul-cnp-v4-objects"), &Extension{Timestamp: 0xec3f5a80_80000000, Device: []byte("gwü-1"), Path: count(9)})},
	{"long-haul-cnp-icmpv6", flow6, nil, longHaul(LongHaulCNPICMPv6, contentOf("long-haul-cnp-icmpv6"), nil)},
	{"long-haul-cnp-icmpv6-qinq-undisclosed", flow6.tagged(0x9100, 0xefff, 0x8100, 0x0001), nil, longHaul(LongHaulCNPICMPv6, contentOf("long-haul-cnp-icmpv6-qinq-undisclosed"), nil)},
	{"long-haul-cnp-icmpv6-objects", flow6, nil, longHaul(LongHaulCNPICMPv6, contentOf("long-haul-cnp-icmpv6-objects"), &Extension{Timestamp: 0xec3f5a80_00000000, Device: []byte("A"), Others: []packet.Object{
		{Class: 247, CType: 254, Payload: []byte{0xbe, 0xef}}, {Class: 2, CType: 1, Payload: []byte{10, 0, 0, 1}}}})},
	{"ppfc-v4-pause", flow4, nil, ppfc(PPFC{Port: 2, Duration: 500})},
	{"ppfc-v6-resume-tagged", flow6.tagged(0x8100, 0x6064), nil, ppfc(PPFC{Resume: true, Port: 2, Duration: 500})},
	{"proxy-notification-v4", flow4.carrying(16), nil, notifyProxy(proxy4, 5)},
	{"proxy-notification-v4-cut", flow4.carrying(1000).tagged(0x8100, 0x6064), nil, notifyProxy(proxy4, 8)}, // 8 counts as 7
	{"proxy-notification-v6", flow6.carrying(16), nil, notifyProxy(proxy6, 5)},
	{"proxy-notification-v6-cut", flow6.carrying(1500).tagged(0x88a8, 0x600a, 0x8100, 0x6064), nil, notifyProxy(proxy6, 0)},
	{"proxy-notification-v4-about-v6", flow6.carrying(1500), nil, notifyProxy(proxy4, 1)},
}

func TestGolden(t *testing.T) {
	for _, c := range goldens {
		t.Run(c.name, func(t *testing.T) {
			frame, p := c.data.frame()
			gw := c.gateway()
			out := bytes.Repeat([]byte{0xa5}, MaxLen+16)
			n := c.build(out, frame, &p, &gw)
			if want := notifications.Find(c.name).Bytes(); !bytes.Equal(out[:n], want) {
				t.Errorf("got\n%s\nwant\n%s", hex.Dump(out[:n]), hex.Dump(want))
			}
		})
	}
}

// TestOptionTypes: each option has its own type, where they differ.
func TestOptionTypes(t *testing.T) {
	g := testGateway
	g.Code.FastCNPOption, g.Code.FastCNPTraceOption = 0x81, 0x82
	out := make([]byte, MaxLen)
	const behindHeader = packet.EthernetLen + packet.IPv6Len + 2
	frame, p := flow6.frame()
	if fastCNP(out, frame, &p, &g); out[behindHeader] != 0x81 {
		t.Errorf("option 1 has type %#x", out[behindHeader])
	}
	frame, p = flow6.traced(0x31, 0, "00011000c0000000"+hexOf(8)).frame()
	if fastCNP(out, frame, &p, &g); out[behindHeader+2] != 0x82 {
		t.Errorf("option 2 has type %#x", out[behindHeader+2])
	}
	frame, p = flow6.traced(0x31, 0, "00011000c0000000"+hexOf(232)).frame()
	if fastCNP(out, frame, &p, &g); out[behindHeader] != 0x81 {
		t.Errorf("option 1 in place of option 2 has type %#x", out[behindHeader])
	}
}

// TestCarried: the caller learns what became of the trace, whether anything was built or not.
func TestCarried(t *testing.T) {
	node := func(n int) string { return "00011800e0000000" + hexOf(n) }
	for _, c := range []struct {
		name string
		data dataPacket
		want Carried
	}{
		{"no trace", flow6, CarriesNoTrace},
		{"a trace without room for a node", flow6.traced(0x31, 0, node(0)), CarriesTrace},
		{"the longest that fits", flow6.traced(0x31, 1, node(228)), CarriesTrace},
		{"one word too long", flow6.traced(0x31, 0, node(232)), TraceTooLong},
		{"not whole words", flow6.traced(0x31, 0, node(2)), CarriesNoTrace},
		{"without its fixed part", flow6.traced(0x31, 0, "00011800"), CarriesNoTrace},
		{"proof of transit", flow6.traced(0x31, 2, node(8)), CarriesNoTrace},
		{"another option", flow6.traced(0x05, 0, node(8)), CarriesNoTrace},
	} {
		frame, p := c.data.frame()
		target, trace := c.data.target(), packet.FindIOAMTrace(frame, &p)
		n, carried := FastCNP(make([]byte, MaxLen), &target, &testGateway, trace)
		if carried != c.want || n == 0 {
			t.Errorf("%s: %d octets, carried %d, want %d", c.name, n, carried, c.want)
		}
		if n, again := FastCNP(nil, &target, &testGateway, trace); n != 0 || again != c.want {
			t.Errorf("%s: in no buffer %d octets, carried %d", c.name, n, again)
		}
	}
}
