package dataplane_test

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/dataplane/stage"
)

// nest is a part of a frame from its last EtherType, or length, on.
type nest struct {
	body []byte
	ip   bool // an IP header follows the EtherType
}

// wrapping puts a nest into another one.
type wrapping struct {
	name   string
	onlyIP bool // the encapsulation carries IP packets only
	wrap   func(t *rapid.T, in nest) []byte
}

var addresses = string(outers[0].addresses)

// before is a wrapping that precedes the nest's EtherType.
func before(name, header string) wrapping {
	return wrapping{name, false, func(_ *rapid.T, in nest) []byte { return append([]byte(header), in.body...) }}
}

// llc is an IEEE 802.3 length and an LLC header before the nest from octet skip on.
func llc(name, header string, skip int) wrapping {
	return wrapping{name, skip != 0, func(_ *rapid.T, in nest) []byte {
		body := append([]byte(header), in.body[skip:]...)
		return append(be.AppendUint16(nil, uint16(min(len(body), 1500))), body...)
	}}
}

// protocolOf is the number that an IP packet's version has in another packet's header.
func protocolOf(in nest) byte {
	if in.body[2]>>4 == 6 {
		return 41
	}
	return 4
}

// inPacket puts what is before the nest, from octet skip on, into an IP packet.
func inPacket(name string, proto byte, header string, skip int) wrapping {
	return wrapping{name, skip != 0, func(t *rapid.T, in nest) []byte {
		outer := rapid.SampledFrom(outers).Draw(t, "outer header")
		if proto == 0 {
			return append(outer.etherType(), outer.ip(protocolOf(in), in.body[skip:])...)
		}
		return append(outer.etherType(), outer.ip(proto, []byte(header), in.body[skip:])...)
	}}
}

func inUDP(name string, port uint16, header string, skip int) wrapping {
	return wrapping{name, skip != 0, func(t *rapid.T, in nest) []byte {
		outer := rapid.SampledFrom(outers).Draw(t, "outer header")
		body := slices.Concat([]byte(header), in.body[skip:])
		udp := be.AppendUint16(be.AppendUint16(be.AppendUint16([]byte{0xc0, 0}, port), uint16(len(body)+8)), 0)
		return append(outer.etherType(), outer.ip(17, udp, body)...)
	}}
}

const skipType = 2 // octets of an EtherType

var wrappings = []wrapping{
	{"tag", false, func(t *rapid.T, in nest) []byte {
		tpid := rapid.SampledFrom([]uint16{0x8100, 0x88a8, 0x9100, 0x9200, 0x9300, 0x1234, 0x4321, 0x88b5, 0xfff0}).Draw(t, "TPID")
		return append(be.AppendUint16(be.AppendUint16(nil, tpid), rapid.Uint16().Draw(t, "tag")), in.body...)
	}},
	before("E-tag", "\x89\x3f\x00\x00\x00\x01\x00\x00"), before("VN-tag", "\x89\x26\x00\x00\x00\x01"), before("R-tag", "\xf1\xc1\x00\x00\x00\x01"),
	before("HSR", "\x89\x2f\x00\x00\x00\x01"), before("Cisco metadata", "\x89\x09\x01\x01\x00\x01\x00\x05"),
	before("MACsec", "\x88\xe5\x00\x00\x00\x00\x00\x01"), before("802.1ah", "\x88\xe7\x00\x00\x00\x01"+addresses),
	before("pseudowire", "\x88\x47\x00\x01\x01\x40"+addresses), before("pseudowire with a control word", "\x88\x47\x00\x01\x01\x40\x00\x00\x00\x00"+addresses),
	before("bridging", "\x65\x58"+addresses), before("jumbo SNAP", "\x88\x70\xaa\xaa\x03\x00\x00\x00"), before("BIER", "\xab\x37\x00\x00\x01\x40\x50\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x01"+addresses),
	before("TRILL", "\x22\xf3\x00\x20\x00\x01\x00\x02"+addresses),
	before("FabricPath", "\x89\x03\x00\x01"+addresses), before("NSH of Ethernet", "\x89\x4f\x0f\xc2\x02\x03\x00\x00\x01\xff"+addresses),
	{"MPLS", true, func(_ *rapid.T, in nest) []byte { return append([]byte("\x88\x48\x00\x01\x01\x40"), in.body[2:]...) }},
	{"PPPoE", true, func(_ *rapid.T, in nest) []byte {
		return append([]byte{0x88, 0x64, 0x11, 0, 0, 1, 0, 0, 0, 0x21 + protocolOf(in)/41*0x36}, in.body[2:]...)
	}},
	llc("SNAP", "\xaa\xaa\x03\x00\x00\x00", 0), llc("SNAP with the poll bit", "\xab\xaa\x13\x00\x00\xf8", 0),
	llc("SNAP, bridged", "\xaa\xab\x03\x00\x80\xc2\x00\x07"+addresses, 0), llc("LLC of IP", "\x06\x06\x03", skipType),
	inPacket("IP in IP", 0, "", skipType), inPacket("GRE", 47, "\x00\x00", 0),
	inPacket("GRE of Ethernet", 47, "\x00\x00\x65\x58"+addresses, 0), inPacket("NVGRE", 47, "\x20\x00\x65\x58\x00\x00\x05\x00"+addresses, 0),
	inPacket("ERSPAN", 47, "\x10\x00\x88\xbe\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00"+addresses, 0),
	inPacket("NSH in IP", 145, "\x0f\xc2\x02\x03\x00\x00\x01\xff"+addresses, 0),
	inPacket("EtherIP", 97, "\x30\x00"+addresses, 0), inPacket("L2TPv3", 115, "\x00\x00\x00\x01"+addresses, 0),
	inPacket("Ethernet", 143, addresses, 0), inPacket("MPLS in IP", 137, "\x00\x01\x01\x40", skipType),
	inUDP("VXLAN", 4789, "\x08\x00\x00\x00\x00\x00\x05\x00"+addresses, 0), inUDP("VXLAN of a group", 4789, "\x88\x00\x00\x07\x00\x00\x05\x00"+addresses, 0),
	inUDP("VXLAN without a VNI", 4789, "\x00\x00\x00\x00\x00\x00\x05\x00"+addresses, 0), inUDP("VXLAN-GPE as VXLAN", 4789, "\x0c\x00\x00\x01\x00\x00\x05\x00", skipType),
	inUDP("VXLAN-GPE", 4790, "\x0c\x00\x00\x03\x00\x00\x05\x00"+addresses, 0), inUDP("old VXLAN", 8472, "\x08\x00\x00\x00\x00\x00\x05\x00"+addresses, 0),
	inUDP("Geneve", 6081, "\x01\x00\x65\x58\x00\x00\x05\x00\x01\x02\x03\x00"+addresses, 0),
	inUDP("L2TP", 1701, "\x00\x02\x00\x01\x00\x02\x00\x21", skipType), inUDP("L2TPv3", 1701, "\x00\x03\x00\x00\x00\x00\x00\x01"+addresses, 0),
	inUDP("LISP", 4341, "\x80\x00\x00\x01\x00\x00\x00\x00", skipType), inUDP("GRE in UDP", 4754, "\x00\x00", 0),
	inUDP("GUE", 6080, "\x01\x04\x00\x00\x00\x00\x00\x00", skipType), inUDP("GUE, direct", 6080, "", skipType),
	inUDP("GTP-U", 2152, "\x30\xff\x00\x2c\x00\x00\x00\x01", skipType), inUDP("MPLS in UDP", 6635, "\x00\x01\x01\x40", skipType),
}

// TestNestedNotificationNeverCrosses: a notification in any encapsulations, up to six within each other, doesn't pass the filter of an empty
// domain, in either direction.
func TestNestedNotificationNeverCrosses(t *testing.T) {
	kinds := goldenNotifications(t)
	names := slices.Sorted(maps.Keys(kinds))
	r := newDomainRig(t, stage.NewDomain(nil, nil, false))
	defer r.Close(t)
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.SampledFrom(names).Draw(rt, "notification")
		in := nest{kinds[name][12:], true}
		for range rapid.IntRange(1, 6).Draw(rt, "depth") {
			w := rapid.SampledFrom(wrappings).Filter(func(w wrapping) bool { return in.ip || !w.onlyIP }).Draw(rt, "wrapping")
			rt.Logf("in %s", w.name)
			body := w.wrap(rt, in)
			etherType := be.Uint16(body)
			in = nest{body, etherType == 0x0800 || etherType == 0x86dd}
		}
		frame := append([]byte(addresses), in.body...)
		for _, port := range []int{fabric, wan} {
			if r.crosses(t, port, frame) {
				rt.Fatalf("%s crosses from port %d: % x", name, port, frame)
			}
		}
	})
}
