package cnpgen

import (
	"encoding/binary"
	"net/netip"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// builder notifies the sender of a data packet, by any of the package's builders with the content bound to it.
type builder func(out, frame []byte, p *packet.Parsed, g *Gateway) int

// about is a builder that needs no more of the data packet than its Target.
func about(build func(out []byte, t *Target, g *Gateway) int) builder {
	return func(out, frame []byte, p *packet.Parsed, g *Gateway) int {
		t, ok := TargetOf(frame, p)
		if !ok {
			return 0
		}
		return build(out, &t, g)
	}
}

func longHaul(build func(out []byte, t *Target, g *Gateway, l *LongHaul, x *Extension) int, l LongHaul, x *Extension) builder {
	return about(func(out []byte, t *Target, g *Gateway) int { return build(out, t, g, &l, x) })
}

func addr(s string) packet.Addr { return packet.AddrFrom(netip.MustParseAddr(s)) }

// dataPacket describes a RoCEv2 packet that met congestion; frame builds it, by nothing of internal/packet but its types.
type dataPacket struct {
	src, dst   packet.Addr
	v6         bool // IPv6 whatever the addresses look like
	tags       []byte
	options    []byte // IPv4 options, whole words
	extensions []extension
	srcPort    uint16
	opcode     packet.Opcode // 0 is RC SEND First
	pKey       uint16        // 0 is 0xFFFF
	destQP     uint32
	payload    []byte // extended transport headers and payload
}

func standardCNP(qp uint32) builder {
	return about(func(out []byte, t *Target, g *Gateway) int { return StandardCNP(out, t, g, qp) })
}

// fastCNP builds a Fast CNP with the data packet's trace, if it has one.
func fastCNP(out, frame []byte, p *packet.Parsed, g *Gateway) int {
	t, ok := TargetOf(frame, p)
	if !ok {
		return 0
	}
	n, _ := FastCNP(out, &t, g, packet.FindIOAMTrace(frame, p))
	return n
}

func ppfc(n PPFC) builder {
	return about(func(out []byte, t *Target, g *Gateway) int { return PPFCNotification(out, t, g, &n) })
}

func notifyProxy(to packet.Addr, level uint8) builder {
	return func(out, frame []byte, p *packet.Parsed, g *Gateway) int {
		t, ok := TargetOf(frame, p)
		if !ok {
			return 0
		}
		return ProxyNotification(out, &t, g, frame, p, to, level)
	}
}

// extension is an IPv6 extension header of 8 octets times its length; body is what follows its first two octets, zeros where it
// ends.
type extension struct {
	header uint8
	length int
	body   []byte
}

// traced gives d a Hop-by-Hop Options header with an IOAM option, on a 4-octet boundary (RFC 9486 3): data in hexadecimal is what
// follows the IOAM-Opt-Type.
func (d dataPacket) traced(option, ioamType byte, data string) dataPacket {
	octets := mustHex(data)
	body := append([]byte{1, 0, option, byte(2 + len(octets)), 0, ioamType}, octets...)
	length := (2 + len(body) + 7) / 8
	if room := 8*length - 2 - len(body); room > 1 {
		body = append(body, 1, byte(room-2))
	}
	d.extensions = []extension{{packet.ProtoHopByHop, length, body}}
	return d
}

// carrying gives d n octets behind the BTH.
func (d dataPacket) carrying(n int) dataPacket {
	d.payload = count(n)
	return d
}

// tagged gives d VLAN tags, as 16-bit words: TPID and TCI of each.
func (d dataPacket) tagged(words ...uint16) dataPacket {
	d.tags = nil
	for _, w := range words {
		d.tags = binary.BigEndian.AppendUint16(d.tags, w)
	}
	return d
}

// frame returns the octets and what packet.Parse finds in them.
func (d dataPacket) frame() ([]byte, packet.Parsed) {
	be := binary.BigEndian
	if d.pKey == 0 {
		d.pKey = 0xffff
	}
	bth := []byte{byte(d.opcode), 0x40, byte(d.pKey >> 8), byte(d.pKey), 0, byte(d.destQP >> 16), byte(d.destQP >> 8), byte(d.destQP), 0, 0, 0, 7}
	transport := append(append(bth, d.payload...), "icrc"...)
	b := append([]byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1}, d.tags...)
	if d.src.Is4() && !d.v6 {
		b = append(b, 0x08, 0x00, byte(0x45+len(d.options)/4), 0x02)
		b = be.AppendUint16(b, uint16(20+len(d.options)+8+len(transport)))
		b = append(b, 0x12, 0x34, 0x40, 0, 63, 17, 0, 0) // a wrong checksum is none of the gateway's business
		b = be.AppendUint32(be.AppendUint32(b, uint32(d.src.Lo)), uint32(d.dst.Lo))
		b = append(b, d.options...)
	} else {
		b = append(b, 0x86, 0xdd, 0x60, 0x21, 0x23, 0x45, 0, 0, 17, 63)
		l3 := len(b) - 8
		b = be.AppendUint64(be.AppendUint64(b, d.src.Hi), d.src.Lo)
		b = be.AppendUint64(be.AppendUint64(b, d.dst.Hi), d.dst.Lo)
		next := l3 + 6
		for _, x := range d.extensions {
			b[next] = x.header
			next = len(b)
			b = append(append(append(b, 17, byte(x.length-1)), x.body...), make([]byte, 8*x.length-2-len(x.body))...)
		}
		be.PutUint16(b[l3+4:], uint16(len(b)-l3-40+8+len(transport)))
	}
	b = be.AppendUint16(be.AppendUint16(b, d.srcPort), 4791)
	b = append(be.AppendUint16(b, uint16(8+len(transport))), 0, 0)
	b = append(b, transport...)
	var p packet.Parsed
	packet.Parse(b, uint32(len(b)), &p)
	if p.Kind != packet.RoCEv2 {
		panic("the test's data packet is not RoCEv2")
	}
	return b, p
}

// target is the Target of the packet.
func (d dataPacket) target() Target {
	frame, p := d.frame()
	t, ok := TargetOf(frame, &p)
	if !ok {
		panic("the test's data packet is not answered")
	}
	return t
}
