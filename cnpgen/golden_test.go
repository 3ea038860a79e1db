package cnpgen

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// golden is a frame written by hand from a draft's figure: its octets and what they are. ICRC and checksums come from
// testdata/second_opinion.py, which shares nothing with this module.
type golden struct {
	name  string
	data  dataPacket
	code  func(g *Gateway) // changes the gateway, nil: none
	build builder
	wire  []octets
}

type octets struct{ hex, what string }

func (g *golden) bytes() []byte {
	var all strings.Builder
	for _, o := range g.wire {
		all.WriteString(strings.ReplaceAll(o.hex, " ", ""))
	}
	b, err := hex.DecodeString(all.String())
	if err != nil {
		panic(g.name + ": " + err.Error())
	}
	return b
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

var (
	severe    = LongHaul{Level: 180, Action: RateReduce, Parameter: 30, SourceQP: 100, MetricType: 1, MetricValue: 130000}
	subsiding = LongHaul{Level: 20, Action: Resume, Parameter: 50, SourceQP: 100, MetricType: 1, MetricValue: 30000}
	halt      = LongHaul{Level: 255, Action: Pause, Parameter: 500, SourceQP: 0xabcdef}
)

// The data frames go from 02:00:00:00:00:01 to 02:00:00:00:00:02.
const macs = "02 00 00 00 00 01  02 00 00 00 00 02"

var goldens = []golden{
	{"fast-cnp", flow6, nil, FastCNP, []octets{
		{macs, "MAC addresses: destination the data frame's source, source its destination"},
		{"86 dd", "EtherType IPv6"},
		{"6c 00 00 00", "version 6, traffic class 0xC0: DSCP 48, Not-ECT; flow label 0"},
		{"00 40", "payload length 64 = 24 + 8 + 12 + 16 + 4"},
		{"3c 40", "next header 60, Destination Options; hop limit 64"},
		{"20 01 0d b8 00 0a 00 00 00 00 00 00 00 00 00 fe", "source: the gateway"},
		{"20 01 0d b8 00 0a 00 00 00 00 00 00 00 00 00 01", "destination: the data packet's source"},
		{"11 02", "Destination Options: next header 17, UDP; length 24 = (2 + 1) x 8"},
		{"9e 10", "option type 10 0 11110, option data length 16"},
		{"20 01 0d b8 00 0b 00 00 00 00 00 00 00 00 00 04", "the data packet's destination"},
		{"01 02 00 00", "PadN with two octets"},
		{"ce 21 12 b7", "UDP source port 52769 as the data packet, destination port 4791"},
		{"00 28 00 00", "UDP length 40 = 8 + 12 + 16 + 4, no checksum"},
		{"81 00 ff ff", "BTH: CNP; SE, M, Pad, TVer 0; default P_Key"},
		{"40 00 00 c8", "BECN; DestQP 200 as the data packet"},
		{"00 00 00 00", "A 0, PSN 0"},
		{"00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00", "reserved"},
		{"6e a9 74 f2", "ICRC"},
	}},
	{"fast-cnp-qinq-icrc-without-extension-headers", flow6.tagged(0x88a8, 0x600a, 0x8100, 0x6064),
		func(g *Gateway) { g.ICRCExtensionHeaders = false }, FastCNP, []octets{
			{macs, "MAC addresses"},
			{"88 a8 60 0a", "S-tag: priority 3, VID 10, as in the data frame"},
			{"81 00 60 64", "C-tag: priority 3, VID 100, as in the data frame"},
			{"86 dd", "EtherType IPv6"},
			{"6c 00 00 00  00 40 3c 40", "as fast-cnp"},
			{"20 01 0d b8 00 0a 00 00 00 00 00 00 00 00 00 fe", "source"},
			{"20 01 0d b8 00 0a 00 00 00 00 00 00 00 00 00 01", "destination"},
			{"11 02 9e 10", "Destination Options header and option 1"},
			{"20 01 0d b8 00 0b 00 00 00 00 00 00 00 00 00 04", "the data packet's destination"},
			{"01 02 00 00", "PadN"},
			{"ce 21 12 b7 00 28 00 00", "UDP"},
			{"81 00 ff ff 40 00 00 c8 00 00 00 00", "BTH"},
			{"00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00", "reserved"},
			{"d6 b8 82 e3", "ICRC over the IPv6 header and UDP on"},
		}},
	{"long-haul-cnp-v4", flow4, nil, longHaul(LongHaulCNP, severe), []octets{ // draft-tian 7 step 4
		{macs, "MAC addresses"},
		{"08 00", "EtherType IPv4"},
		{"45 c0", "version 4, 5 words; DSCP 48, Not-ECT"},
		{"00 38", "total length 56 = 20 + 8 + 12 + 12 + 4"},
		{"00 00 40 00", "identification 0; DF, offset 0"},
		{"40 11", "TTL 64, UDP"},
		{"24 f7", "header checksum"},
		{"0a 00 00 fe", "source: the gateway"},
		{"0a 00 00 01", "destination: the data packet's source"},
		{"ce 21 12 b7", "UDP source port 52769 as the data packet, destination port 4791"},
		{"00 24 00 00", "UDP length 36 = 8 + 12 + 12 + 4, no checksum"},
		{"81 00 ff ff", "BTH: CNP; SE, M, Pad, TVer 0; default P_Key"},
		{"60 00 00 64", "F 0, B 1, E 1; DestQP 100, the source's QP"},
		{"00 00 00 00", "A 0, PSN 0"},
		{"b4", "Congestion Level 180"},
		{"80", "Action Flags 10 000000: Rate Reduce"},
		{"00 1e", "Parameter 30 percent"},
		{"00 00 00 64", "Source QP Number 100"},
		{"01", "Metric Type 1: queue depth in kilobytes"},
		{"01 fb d0", "130000"},
		{"14 73 8e d8", "ICRC"},
	}},
	{"long-haul-cnp-v6-tagged", flow6.tagged(0x8100, 0x6064), nil, longHaul(LongHaulCNP, subsiding), []octets{ // draft-tian 7 step 8
		{macs, "MAC addresses"},
		{"81 00 60 64", "C-tag: priority 3, VID 100, as in the data frame"},
		{"86 dd", "EtherType IPv6"},
		{"6c 00 00 00", "version 6, DSCP 48, Not-ECT, flow label 0"},
		{"00 24", "payload length 36"},
		{"11 40", "next header UDP, hop limit 64"},
		{"20 01 0d b8 00 0a 00 00 00 00 00 00 00 00 00 fe", "source: the gateway"},
		{"20 01 0d b8 00 0a 00 00 00 00 00 00 00 00 00 01", "destination: the data packet's source"},
		{"ce 21 12 b7 00 24 00 00", "UDP"},
		{"81 00 ff ff 60 00 00 64 00 00 00 00", "BTH: CNP, B and E, DestQP 100"},
		{"14 c0 00 32", "level 20; 11 000000: Resume; 50 percent"},
		{"00 00 00 64", "Source QP Number 100"},
		{"01 00 75 30", "queue depth 30000 kilobytes"},
		{"70 c7 29 c9", "ICRC"},
	}},
	{"long-haul-cnp-icmpv6", flow6, nil, longHaul(LongHaulCNPICMPv6, severe), []octets{
		{macs, "MAC addresses"},
		{"86 dd", "EtherType IPv6"},
		{"6c 00 00 00", "version 6, DSCP 48, Not-ECT, flow label 0"},
		{"00 10", "payload length 16 = 4 + 12"},
		{"3a 40", "next header 58, ICMPv6; hop limit 64"},
		{"20 01 0d b8 00 0a 00 00 00 00 00 00 00 00 00 fe", "source: the gateway"},
		{"20 01 0d b8 00 0a 00 00 00 00 00 00 00 00 00 01", "destination: the data packet's source"},
		{"c8 00", "type 200, code 0: flow level"},
		{"29 5b", "checksum"},
		{"b4 80 00 1e", "level 180, Rate Reduce, 30 percent"},
		{"00 00 00 64", "Source QP Number 100"},
		{"01 01 fb d0", "queue depth 130000 kilobytes"},
	}},
	{"long-haul-cnp-icmpv6-qinq-undisclosed", flow6.tagged(0x9100, 0xefff, 0x8100, 0x0001), nil,
		longHaul(LongHaulCNPICMPv6, halt), []octets{
			{macs, "MAC addresses"},
			{"91 00 ef ff", "outer tag: priority 7, VID 4095, as in the data frame"},
			{"81 00 00 01", "C-tag: VID 1, as in the data frame"},
			{"86 dd", "EtherType IPv6"},
			{"6c 00 00 00 00 10 3a 40", "version 6, DSCP 48; payload length 16; ICMPv6, hop limit 64"},
			{"20 01 0d b8 00 0a 00 00 00 00 00 00 00 00 00 fe", "source"},
			{"20 01 0d b8 00 0a 00 00 00 00 00 00 00 00 00 01", "destination"},
			{"c8 00 0b 60", "type 200, code 0, checksum"},
			{"ff 40 01 f4", "level 255; 01 000000: Pause; 500 microseconds"},
			{"00 ab cd ef", "Source QP Number"},
			{"00 00 00 00", "metric not disclosed"},
		}},
}

func TestGolden(t *testing.T) {
	for _, c := range goldens {
		t.Run(c.name, func(t *testing.T) {
			frame, p := c.data.frame()
			gw := c.gateway()
			out := bytes.Repeat([]byte{0xa5}, MaxLen+16)
			n := c.build(out, frame, &p, &gw)
			if want := c.bytes(); !bytes.Equal(out[:n], want) {
				t.Errorf("got\n%s\nwant\n%s", hex.Dump(out[:n]), hex.Dump(want))
			}
		})
	}
}
