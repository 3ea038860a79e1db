package dataplane_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/notifications"
)

var be = binary.BigEndian

// variant is one frame on which a notification, or a piece of one, crosses a link in a way that some equipment or host takes.
type variant struct {
	name  string
	frame []byte
}

// pieces are a frame's link-layer addresses, its IP header with what is fixed in it, and what the IP header is followed by.
type pieces struct {
	addresses, header, payload []byte
	family                     uint8
	proto                      uint8
}

// take splits an untagged frame whose IPv4 header has no options.
func take(frame []byte) pieces {
	var p packet.Parsed
	packet.Parse(frame, uint32(len(frame)), &p)
	at := packet.EthernetLen + packet.IPv4Len
	if p.Family == 6 {
		at = packet.EthernetLen + packet.IPv6Len
	}
	x := pieces{bytes.Clone(frame[:12]), bytes.Clone(frame[14:at]), bytes.Clone(frame[at:p.IPEnd]), p.Family, frame[23]}
	if p.Family == 6 {
		x.proto = frame[20]
	}
	return x
}

// ip is the IP packet with another protocol and payload, the lengths set.
func (x *pieces) ip(proto uint8, payload ...[]byte) []byte {
	h, body := bytes.Clone(x.header), slices.Concat(payload...)
	if x.family == 4 {
		h[9] = proto
		be.PutUint16(h[2:], uint16(len(h)+len(body)))
	} else {
		h[6] = proto
		be.PutUint16(h[4:], uint16(len(body)))
	}
	return append(h, body...)
}

func (x *pieces) etherType() []byte {
	if x.family == 4 {
		return []byte{0x08, 0x00}
	}
	return []byte{0x86, 0xdd}
}

// frame puts the parts behind the link-layer addresses.
func (x *pieces) frame(parts ...[]byte) []byte {
	return append(bytes.Clone(x.addresses), slices.Concat(parts...)...)
}

func (x *pieces) ethernet(ip []byte) []byte { return x.frame(x.etherType(), ip) }

// whole is the IP packet as it was.
func (x *pieces) whole() []byte { return x.ip(x.proto, x.payload) }

// variants are all of a notification's. The frame is untagged.
func variants(frame []byte) (all []variant) {
	x := take(frame)
	add := func(name string, frame []byte) { all = append(all, variant{name, frame}) }
	add("as it is", frame)
	x.linkLayer(add)
	x.fragments(add)
	x.tunnels(add)
	if x.family == 4 {
		x.headers4(add)
	} else {
		x.headers6(add)
	}
	x.damaged(add)
	return all
}

func (x *pieces) linkLayer(add func(string, []byte)) {
	tag := func(tpid int) []byte { return []byte{byte(tpid >> 8), byte(tpid), 0x60, 0x05} }
	ip := slices.Concat(x.etherType(), x.whole())
	for _, tpid := range []int{0x8100, 0x88a8, 0x9100, 0x9200, 0x9300, 0x1234} {
		for n := 1; n <= 4; n++ {
			add(fmt.Sprintf("%d tags %#x", n, tpid), x.frame(bytes.Repeat(tag(tpid), n), ip))
		}
		add(fmt.Sprintf("tag 0x8100 before %#x", tpid), x.frame(tag(0x8100), tag(tpid), ip))
		add(fmt.Sprintf("tag %#x before 0x8100", tpid), x.frame(tag(tpid), tag(0x8100), ip))
		add(fmt.Sprintf("two tags 0x88a8 before %#x", tpid), x.frame(tag(0x88a8), tag(0x88a8), tag(tpid), ip))
	}
	for name, header := range map[string]string{
		"802.1BR E-tag":                         "\x89\x3f\x00\x00\x00\x01\x00\x00",
		"VN-tag":                                "\x89\x26\x00\x00\x00\x01",
		"802.1CB R-tag":                         "\xf1\xc1\x00\x00\x00\x01",
		"HSR tag":                               "\x89\x2f\x00\x00\x00\x01",
		"Cisco metadata":                        "\x89\x09\x01\x01\x00\x01\x00\x05",
		"MACsec without encryption":             "\x88\xe5\x00\x00\x00\x00\x00\x01",
		"802.1ah I-tag":                         "\x88\xe7\x00\x00\x00\x01" + string(x.addresses),
		"a tag that no registry has, before it": "\x12\x34\x00\x00\x81\x00\x00\x05",
	} {
		add(name, x.frame([]byte(header), ip))
	}
	add("MPLS", x.frame([]byte("\x88\x47\x00\x01\x01\x40"), x.whole()))
	add("MPLS multicast, two labels", x.frame([]byte("\x88\x48\x00\x01\x00\x40\x00\x01\x01\x40"), x.whole()))
	ppp := []byte("\x88\x64\x11\x00\x00\x01\x00\x00\x00\x21")
	if x.family == 6 {
		ppp[9] = 0x57
	}
	add("PPPoE", x.frame(ppp, x.whole()))
	add("PPP", x.frame([]byte("\x88\x0b"), ppp[8:], x.whole()))
	add("transparent Ethernet bridging", x.frame([]byte("\x65\x58"), x.ethernet(x.whole())))
	add("NSH", x.frame([]byte("\x89\x4f\x0f\xc2\x02\x01\x00\x00\x01\xff"), x.whole()))
	add("TRILL", x.frame([]byte("\x22\xf3\x00\x20\x00\x01\x00\x02"), x.ethernet(x.whole())))
	for name, header := range map[string]string{
		"MPLS": "\x88\x47\x00\x01\x01\x40", "PPPoE": string(ppp), "MACsec": "\x88\xe5\x2c\x00\x00\x00\x00\x01",
		"R-tag": "\xf1\xc1\x00\x00\x00\x01" + string(x.etherType()),
	} {
		add("TPID 0x1234 before "+name, x.frame(tag(0x1234), []byte(header), x.whole()))
		add("TPIDs 0x8100, 0x88a8, 0x1234 before "+name, x.frame(tag(0x8100), tag(0x88a8), tag(0x1234), []byte(header), x.whole()))
	}
	for name, header := range map[string]string{
		"control 0x13": "\xaa\xaa\x13\x00\x00\x00", "DSAP 0xab": "\xab\xaa\x03\x00\x00\x00", "SSAP 0xab": "\xaa\xab\x03\x00\x00\x00",
		"numbered": "\xaa\xaa\x00\x00\x00\x00\x00", "bridged": "\xaa\xaa\x03\x00\x80\xc2\x00\x07" + string(x.addresses),
		"bridged with FCS": "\xaa\xaa\x03\x00\x80\xc2\x00\x01" + string(x.addresses),
	} {
		llc := slices.Concat([]byte(header), ip)
		add("SNAP, "+name, x.frame(be.AppendUint16(nil, uint16(len(llc))), llc))
	}
	for name, oui := range map[string]string{"SNAP": "\x00\x00\x00", "SNAP of a bridge tunnel": "\x00\x00\xf8"} {
		llc := slices.Concat([]byte("\xaa\xaa\x03"+oui), ip)
		length := be.AppendUint16(nil, uint16(len(llc)))
		add(name, x.frame(length, llc))
		add(name+" behind a tag", x.frame(tag(0x8100), length, llc))
		add(name+" of a jumbo frame", x.frame([]byte("\x88\x70"), llc))
		tagged := slices.Concat([]byte("\xaa\xaa\x03"+oui), tag(0x8100), ip)
		add(name+" with a tag in it", x.frame(be.AppendUint16(nil, uint16(len(tagged))), tagged))
	}
	llc := slices.Concat([]byte("\x06\x06\x03"), x.whole())
	add("LLC of IP", x.frame(be.AppendUint16(nil, uint16(len(llc))), llc))
	add("padded", append(x.ethernet(x.whole()), make([]byte, 30)...))
}

// fragments adds each piece of the payload cut at each place, and of it in pieces of eight octets.
func (x *pieces) fragments(add func(string, []byte)) {
	x.cut(func(name string, ip []byte) { add(name, x.ethernet(ip)) }, x.proto, x.payload)
}

// cut gives the IP packets of each piece of a payload, of protocol proto, cut in two at each place and into pieces of eight octets.
func (x *pieces) cut(add func(string, []byte), proto uint8, payload []byte) {
	for at := 8; at < len(payload); at += 8 {
		add(fmt.Sprintf("first %d octets of two fragments", at), x.fragment(proto, payload[:at], 0, true))
		add(fmt.Sprintf("last of two fragments, from %d", at), x.fragment(proto, payload[at:], at, false))
		add(fmt.Sprintf("fragment of eight octets at %d", at), x.fragment(proto, payload[at:min(at+8, len(payload))], at, at+8 < len(payload)))
	}
	for at := 8; x.family == 6 && at < len(payload); at += 8 { // only the first fragment's Next Header counts (RFC 8200 4.5)
		add(fmt.Sprintf("last of two fragments behind options, from %d", at),
			x.ip(packet.ProtoDestOpts, padding(44), fragmentHeader(proto, at, false), payload[at:]))
	}
}

func (x *pieces) fragment(proto uint8, piece []byte, at int, more bool) []byte {
	if x.family == 6 {
		return x.ip(packet.ProtoFragment, fragmentHeader(proto, at, more), piece)
	}
	ip := x.ip(proto, piece)
	flags := uint16(at / 8)
	if more {
		flags |= 0x2000
	}
	be.PutUint16(ip[6:], flags)
	return ip
}

func fragmentHeader(next uint8, at int, more bool) []byte {
	h := []byte{next, 0, byte(at >> 8), byte(at), 0, 0, 0, 7}
	if more {
		h[3] |= 1
	}
	return h
}

// padding is a header of eight octets: of a Hop-by-Hop or Destination Options header, with padding only.
func padding(next uint8) []byte { return []byte{next, 0, 1, 4, 0, 0, 0, 0} }

// extension is a header of any kind, as short as it can be; of a Routing header no segment is left.
func extension(header, next uint8) []byte {
	switch header {
	case packet.ProtoAH:
		return ah(next)
	case packet.ProtoRouting:
		return []byte{next, 0, 4, 0, 0, 0, 0, 0}
	}
	return padding(next)
}

func (x *pieces) tunnels(add func(string, []byte)) {
	inner, in := x.whole(), byte(4)
	if x.family == 6 {
		in = 41
	}
	gre := func(header string) []byte { return append([]byte(header), inner...) }
	type4 := string(x.etherType())
	udp := func(port int, body ...[]byte) []byte {
		b := slices.Concat(body...)
		return append([]byte{0xc0, 0, byte(port >> 8), byte(port), byte((len(b) + 8) >> 8), byte(len(b) + 8), 0, 0}, b...)
	}
	vxlan := []byte("\x08\x00\x00\x00\x00\x00\x05\x00")
	tagged := x.frame([]byte("\x81\x00\x00\x05"), x.etherType(), inner)
	for _, outer := range outers {
		for name, tunnel := range map[string]struct {
			proto uint8
			body  []byte
		}{
			"IP":                  {in, inner},
			"GRE":                 {47, gre("\x00\x00" + type4)},
			"GRE with key":        {47, gre("\x20\x00" + type4 + "\x00\x00\x00\x01")},
			"GRE with everything": {47, gre("\xb0\x00" + type4 + "\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x02")},
			"GRE of Ethernet":     {47, append([]byte("\x00\x00\x65\x58"), x.ethernet(inner)...)},
			"GRE with routing":    {47, gre("\x40\x00" + type4 + "\x00\x00\x00\x00\x00\x00\x00\x00")},
			"GRE of version 1":    {47, gre("\x20\x01\x88\x0b\x00\x00\x00\x01")},
			"GRE of MPLS":         {47, gre("\x00\x00\x88\x47\x00\x01\x01\x40")},
			"VXLAN":               {17, udp(4789, vxlan, x.ethernet(inner))},
			"VXLAN with a tag":    {17, udp(4789, vxlan, tagged)},
			"VXLAN-GPE":           {17, udp(4789, []byte{0x0c, 0, 0, 1 + (in-4)/37, 0, 0, 5, 0}, inner)},
			"VXLAN-GPE, no VNI":   {17, udp(4789, []byte{0x04, 0, 0, 1 + (in-4)/37, 0, 0, 5, 0}, inner)},
			"VXLAN-GPE of NSH":    {17, udp(4789, []byte{0x0c, 0, 0, 4, 0, 0, 5, 0, 0x0f, 0xc2, 2, 1 + (in-4)/37, 0, 0, 1, 0xff}, inner)},
			"Geneve":              {17, udp(6081, []byte{0, 0, 0x65, 0x58, 0, 0, 5, 0}, x.ethernet(inner))},
			"GTP-U":               {17, udp(2152, []byte{0x30, 0xff, 0, byte(len(inner)), 0, 0, 0, 1}, inner)},
			"MPLS in UDP":         {17, udp(6635, []byte{0, 1, 1, 0x40}, inner)},
			"EtherIP":             {97, append([]byte("\x30\x00"), x.ethernet(inner)...)},
			"Ethernet":            {143, x.ethernet(inner)},
			"L2TP":                {115, append([]byte("\x00\x00\x00\x01"), x.ethernet(inner)...)},
			"MPLS":                {137, append([]byte("\x00\x01\x01\x40"), inner...)},
			"minimal":             {55, inner},
			"IP within IP":        {outer.in, outer.ip(in, inner)},
			"GRE within IP":       {outer.in, outer.ip(47, gre("\x00\x00"+type4))},
		} {
			add(fmt.Sprintf("%s over IPv%d", name, outer.family), outer.ethernet(outer.ip(tunnel.proto, tunnel.body)))
			outer.cut(func(piece string, ip []byte) {
				add(fmt.Sprintf("%s over IPv%d, %s", name, outer.family, piece), outer.ethernet(ip))
			}, tunnel.proto, tunnel.body)
		}
		x.cut(func(piece string, ip []byte) {
			add(fmt.Sprintf("%s, over IPv%d", piece, outer.family), outer.ethernet(outer.ip(in, ip)))
		}, x.proto, x.payload)
	}
}

// outer is what a tunnel goes through, and the protocol number that a packet of its version has in another one.
type outer struct {
	pieces
	in uint8
}

var outers = []outer{
	{take(other(sender4, receiver4, packet.ProtoTCP, 60)), 4},
	{take(other(sender6, receiver6, packet.ProtoTCP, 80)), 41},
}

func (x *pieces) headers4(add func(string, []byte)) {
	for name, options := range map[string]string{
		"NOP": "\x01\x01\x01\x01", "router alert": "\x94\x04\x00\x00", "ten words": string(bytes.Repeat([]byte{1}, 40)),
		"loose source route": "\x01\x83\x07\x04\xc0\x00\x02\x09",
	} {
		ip := x.ip(x.proto, []byte(options), x.payload)
		ip[0] += byte(len(options) / 4)
		add("IPv4 option "+name, x.ethernet(ip))
	}
	add("AH", x.ethernet(x.ip(51, ah(x.proto), x.payload)))
	add("ESP", x.ethernet(x.ip(50, esp(x.proto, x.payload))))
	add("IPComp", x.ethernet(x.ip(108, []byte{x.proto, 0, 0, 2}, x.payload)))
	for change, set := range map[string]func(ip []byte){
		"total length 0":               func(ip []byte) { be.PutUint16(ip[2:], 0) },
		"total length past the frame":  func(ip []byte) { be.PutUint16(ip[2:], uint16(len(ip)+1)) },
		"total length of the header":   func(ip []byte) { be.PutUint16(ip[2:], 20) },
		"total length into the upper":  func(ip []byte) { be.PutUint16(ip[2:], 27) },
		"version 6":                    func(ip []byte) { ip[0] = 0x65 },
		"version 5":                    func(ip []byte) { ip[0] = 0x55 },
		"header length of four words":  func(ip []byte) { ip[0] = 0x44 },
		"header length past the frame": func(ip []byte) { ip[0] = 0x4f; be.PutUint16(ip[2:], 40) },
	} {
		ip := x.whole()
		set(ip)
		add("IPv4 with "+change, x.ethernet(ip))
	}
}

func ah(next uint8) []byte {
	return append([]byte{next, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1}, make([]byte, 12)...)
}

// esp is of NULL encryption (RFC 2410).
func esp(next uint8, payload []byte) []byte {
	return slices.Concat([]byte{0, 0, 0, 1, 0, 0, 0, 1}, payload, []byte{0, next}, make([]byte, 12))
}

func (x *pieces) headers6(add func(string, []byte)) {
	for _, header := range []uint8{0, 43, 51, 60, 135, 139, 140, 253, 254} {
		for n := 1; n <= 12; n++ {
			first, chain := header, []byte(nil)
			for i := range n {
				next := header
				if header == 0 {
					next = packet.ProtoDestOpts // once only, and first
				}
				if i == n-1 {
					next = x.proto
				}
				chain = append(chain, extension(header, next)...)
			}
			add(fmt.Sprintf("%d headers from %d on", n, header), x.ethernet(x.ip(first, chain, x.payload)))
		}
		add(fmt.Sprintf("header %d behind options", header), x.ethernet(x.ip(60, padding(header), extension(header, x.proto), x.payload)))
		add(fmt.Sprintf("header %d longer than the packet", header), x.ethernet(x.ip(header, append([]byte{x.proto, 0xff}, padding(0)[2:]...), x.payload)))
	}
	add("atomic fragment", x.ethernet(x.ip(44, fragmentHeader(x.proto, 0, false), x.payload)))
	add("routing header with a segment left", x.ethernet(x.ip(43, append([]byte{x.proto, 2, 4, 1, 0, 0, 0, 0}, make([]byte, 16)...), x.payload)))
	add("ESP", x.ethernet(x.ip(50, esp(x.proto, x.payload))))
	add("IPComp", x.ethernet(x.ip(108, []byte{x.proto, 0, 0, 2}, x.payload)))
	jumbo := x.ip(0, []byte{x.proto, 0, 0xc2, 4, 0, 0, byte((len(x.payload) + 8) >> 8), byte(len(x.payload) + 8)}, x.payload)
	be.PutUint16(jumbo[4:], 0)
	add("jumbogram", x.ethernet(jumbo))
	for change, set := range map[string]func(ip []byte){
		"payload length 0":              func(ip []byte) { be.PutUint16(ip[4:], 0) },
		"payload length past the frame": func(ip []byte) { be.PutUint16(ip[4:], uint16(len(ip)-40+1)) },
		"version 4":                     func(ip []byte) { ip[0] = 0x45 },
		"version 7":                     func(ip []byte) { ip[0] = 0x70 },
	} {
		ip := x.whole()
		set(ip)
		add("IPv6 with "+change, x.ethernet(ip))
	}
}

// damaged adds frames that a receiver which checks little may take all the same.
func (x *pieces) damaged(add func(string, []byte)) {
	var p packet.Parsed
	frame := x.ethernet(x.whole())
	packet.Parse(frame, uint32(len(frame)), &p)
	if p.Kind != packet.RoCEv2 {
		return
	}
	set := func(name string, at uint16, octets ...byte) {
		changed := bytes.Clone(frame)
		copy(changed[at:], octets)
		add(name, changed)
	}
	set("UDP length past the packet", p.L4+4, 0xff, 0xff)
	set("UDP length 0", p.L4+4, 0, 0)
	set("UDP length of the header", p.L4+4, 0, 8)
	set("another version of the BTH", p.BTH+1, 0x45)
}

// goldenNotifications are the golden notifications that a domain keeps inside, without tags.
func goldenNotifications(t *testing.T) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	for i := range notifications.All {
		g := &notifications.All[i]
		frame := g.Bytes()
		var p packet.Parsed
		packet.Parse(frame, uint32(len(frame)), &p)
		if note := packet.Classify(frame, &p, &packet.DefaultCodePoints); note != packet.NotANotification && note != packet.StandardCNP && p.Tags == 0 {
			found[g.Name] = frame
		}
	}
	return found
}
