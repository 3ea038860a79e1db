package dissect

import (
	"encoding/binary"
	"slices"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// Reader reads the frames of a capture, one after the other. The zero value is ready for use.
type Reader struct {
	Port uint16 // UDP destination port that counts as RoCEv2's, too; 0: none

	parsed  packet.Parsed
	padded  [maxHeaders]byte
	rewrote []byte
	resized bool // the frame has no length in an IP header, which the ICRC covers
	// firsts are IP packets whose first fragments were examined, the latest ones, and the one of the present frame.
	firsts  [64]fragmented
	next    uint8
	present fragmented
}

// maxHeaders is enough for all headers of a packet in a tunnel and a mirror's headers, octets.
const maxHeaders = 512

// Packet is a frame that was read.
type Packet struct {
	Parsed *packet.Parsed // valid until the next Read
	Frame  []byte         // the frame that Parsed describes, padded with zeros if the capture has cut its headers
	Real   []byte         // its part that is in the capture
	Wire   []byte         // the same part as it was captured, at the same offsets: Real may have another UDP port, which the ICRC covers
	Whole  bool           // all of it is in the capture as it was on the wire, so that the ICRC can be verified
	Reason Reason         // why it isn't a RoCEv2 packet whose headers are all at hand; None
	Cut    bool           // a RoCEv2 packet with its BTH, of which later headers are cut off
}

const deepest = 4 // mirror and overlay headers in front of each other

// Read reads a frame of a length on the wire, of which b is the part at hand.
func (r *Reader) Read(b []byte, length uint32) (o Packet) {
	o.Parsed, o.Whole = &r.parsed, true
	r.present, r.resized = fragmented{}, false
	var first Reason
	wire := b
	for depth := 0; ; depth++ {
		r.parse(b, length, &o)
		o.Wire = wire
		if o.Parsed.Kind == packet.RoCEv2 && !o.Parsed.IPv4Mapped() {
			if merged(o.Parsed) {
				o.Reason = Merged
			} else if r.present != (fragmented{}) && r.present.src != o.Parsed.Src { // of a mirror or a tunnel: RoCE itself must not be fragmented
				r.firsts[r.next%uint8(len(r.firsts))] = r.present
				r.next++
			}
			return o
		}
		if depth == 0 {
			first = o.Reason
			if of, follows := fragmentOf(b, o.Parsed); follows && slices.Contains(r.firsts[:], of) {
				o.Reason = Rest
				return o
			}
		}
		if depth == deepest {
			break
		}
		inner, n, ok := r.inside(b, length, &r.parsed, &o)
		if !ok {
			break
		}
		if wire = inner; n == length && len(inner) == len(b) { // only the port differs
			wire = b
		}
		b, length = inner, n
	}
	switch {
	case o.Parsed.Kind == packet.RoCEv2: // with IPv4-mapped addresses
		o.Reason = Malformed
	case o.Reason == NotRDMA && o.Parsed.Kind != packet.IP: // else another protocol is in there
		o.Reason = max(first, NotRDMA)
	}
	return o
}

// merged reports whether a packet is larger than an end sends it, and so has the next ones behind it. One that others of its message follow has the path MTU as
// payload, a power of 2, and none has more than 4,096 bytes (IBTA 9.7.2).
func merged(p *packet.Parsed) bool {
	data := p.ICRC - uint32(p.Payload)
	switch p.Opcode & 31 {
	case packet.RCSendFirst, packet.RCSendMiddle, packet.RCWriteFirst, packet.RCWriteMiddle, packet.RCReadRespFirst, packet.RCReadRespMiddle:
		if p.Opcode.Role() != packet.NoRole && data&(data-1) != 0 {
			return true
		}
	}
	return data > 4096
}

// parse parses a frame. If its headers are cut off, they are parsed as if zeros followed.
func (r *Reader) parse(b []byte, length uint32, o *Packet) {
	p := &r.parsed
	look(b, length, p)
	if field, size, ok := unsized(b, length, p); ok {
		b = r.sized(b, field, size)
		look(b, length, p)
	}
	if whole := lengthBefore(b, p); whole > length {
		length = whole
		look(b, length, p)
	}
	o.Frame, o.Real, o.Reason, o.Cut = b, b, None, false
	if p.Kind == packet.RoCEv2 {
		o.Whole = o.Whole && !r.resized && len(b) >= int(p.ICRC)+packet.ICRCLen
		return
	}
	if p.Kind != packet.MACControl && uint32(len(b)) < length && len(b) < maxHeaders {
		n := copy(r.padded[:], b)
		clear(r.padded[n:])
		padded := r.padded[:min(maxHeaders, int(length))]
		look(padded, length, p)
		if p.Kind == packet.RoCEv2 {
			o.Frame, o.Real, o.Whole = padded, padded[:n], false
			if o.Cut = true; int(p.BTH)+packet.BTHLen > n {
				p.Kind, o.Reason, o.Cut = packet.IP, HeadersCut, false
			}
			return
		}
		packet.Parse(b, length, p)
	}
	o.Reason = reasonOf(b, length, p)
}

// unsized finds the field of a frame's IP header that has no length, and the length: hosts that leave it to their NICs to divide large packets capture those so (TSO).
func unsized(b []byte, length uint32, p *packet.Parsed) (field, size int, ok bool) {
	ip := packet.EthernetLen + packet.VLANTagLen*int(p.Tags)
	if p.Kind != packet.Other || ip+packet.IPv6Len > len(b) {
		return 0, 0, false
	}
	field, size = ip+v4Total, int(length)-ip
	switch {
	case p.EtherType == packet.EtherTypeIPv4 && b[ip]>>4 == 4:
	case p.EtherType == packet.EtherTypeIPv6 && b[ip+v6Next] == packet.ProtoUDP:
		field, size = ip+v6Payload, size-packet.IPv6Len
	default:
		return 0, 0, false
	}
	return field, size, binary.BigEndian.Uint16(b[field:]) == 0 && size > 0 && size <= 0xffff
}

// sized is a frame with a length in a field.
func (r *Reader) sized(b []byte, field, size int) []byte {
	r.rewrote, r.resized = append(r.rewrote[:0], b...), true
	binary.BigEndian.PutUint16(r.rewrote[field:], uint16(size))
	return r.rewrote
}

// lengthBefore is how long a frame that couldn't be parsed was by its IP header: a mirror may have cut it, and tell the length that it has left. 0: it isn't known.
func lengthBefore(b []byte, p *packet.Parsed) uint32 {
	ip := packet.EthernetLen + packet.VLANTagLen*int(p.Tags)
	if p.Kind != packet.Other || p.EtherType != packet.EtherTypeIPv4 && p.EtherType != packet.EtherTypeIPv6 || ip > len(b) {
		return 0
	}
	return uint32(ip) + lengthOf(b[ip:])
}

// lengthOf is how long an IP packet was by its header; 0: that isn't known.
func lengthOf(b []byte) uint32 {
	switch {
	case len(b) < packet.IPv4Len:
	case b[0]>>4 == 4:
		return uint32(binary.BigEndian.Uint16(b[v4Total:]))
	case b[0]>>4 == 6:
		return packet.IPv6Len + uint32(binary.BigEndian.Uint16(b[v6Payload:]))
	}
	return 0
}

// look parses a frame, also behind an overlay's headers.
func look(b []byte, length uint32, p *packet.Parsed) {
	packet.Parse(b, length, p)
	packet.ParseOverlay(b[:min(len(b), int(length))], p)
}

// inside takes a mirror's header away, or what hides a packet from the parser.
func (r *Reader) inside(b []byte, length uint32, p *packet.Parsed, o *Packet) (inner []byte, n uint32, ok bool) {
	switch {
	case p.Kind == packet.Other && p.Tags == packet.MaxTags && isTag(p.EtherType):
		return r.without(b, length, packet.EthernetLen-2, packet.EthernetLen-2+packet.VLANTagLen*packet.MaxTags) // it goes on with its third tag
	case p.Kind == packet.Other:
		if inner, n, ok = r.behindShim(b, length, p); ok {
			return inner, n, ok
		}
		if inner, n, ok = r.behindTunnel(b, length, p); !ok && isPacket(b) && lengthOf(b) <= length { // without the link layer that the file says it has
			return r.asFrame(b, length)
		}
		return inner, n, ok
	case p.Kind == packet.IP && p.L4 == 0:
		o.Whole = false
		return r.behindFragment(b, p)
	case p.Kind != packet.IP || int(p.L4) >= len(b):
		return nil, 0, false
	}
	for _, take := range [...]func([]byte, uint32, *packet.Parsed) ([]byte, uint32, bool){r.toPort, r.behindGRE, r.behindTZSP, r.behindDatagram, r.behindTunnel} {
		if inner, n, ok = take(b, length, p); ok {
			break
		}
	}
	return inner, n, ok
}

// behindTunnel is what is in a tunnel that the parser doesn't follow to its end, as there are more of them. A mirror may have cut what it has put into the tunnel: then
// it is the same frame, with the lengths that it would have if the mirror had not.
func (r *Reader) behindTunnel(b []byte, length uint32, p *packet.Parsed) ([]byte, uint32, bool) {
	at, frame, ok := packet.InsideTunnel(b, p)
	end := length
	if p.Kind == packet.IP {
		end = min(length, p.IPEnd)
	}
	if !ok || at > int(end) {
		return nil, 0, false
	}
	n := end - uint32(at)
	whole := lengthOf(b[at:])
	if frame {
		inner, _, ok := from(b, end, at)
		if !ok || !isFrame(inner) {
			return nil, 0, false
		}
		var in packet.Parsed
		packet.Parse(inner, n, &in)
		if field, size, ok := unsized(inner, n, &in); ok {
			return r.sized(b, at+field, size), length, true
		}
		if whole = lengthBefore(inner, &in); whole <= n {
			return inner, n, true
		}
	} else if whole > 0 && whole <= n || p.Kind == packet.Other { // nothing in front of labels tells a length
		return r.asFrame(b[at:], n)
	}
	if whole <= n || p.Kind == packet.Other {
		return nil, 0, false
	}
	r.rewrote = append(r.rewrote[:0], b...)
	longer := func(at int) { // wrong if the sum has more than 16 bits: then the frame isn't read
		binary.BigEndian.PutUint16(r.rewrote[at:], binary.BigEndian.Uint16(b[at:])+uint16(whole-n))
	}
	if ip := int(p.L3); p.Family == 4 {
		longer(ip + v4Total)
	} else {
		longer(ip + v6Payload)
	}
	if p.Proto == packet.ProtoUDP {
		longer(int(p.L4) + 4)
	}
	return r.rewrote, max(length, end+whole-n), true
}

// asFrame is an IP packet of a length on the wire behind an Ethernet header. It may be in rewrote, behind as many octets.
func (r *Reader) asFrame(ip []byte, length uint32) ([]byte, uint32, bool) {
	header := [packet.EthernetLen]byte{12: 8}
	if ip[0]>>4 == 6 {
		header[12], header[13] = 0x86, 0xdd
	}
	r.rewrote = append(append(r.rewrote[:0], header[:]...), ip...)
	return r.rewrote, packet.EthernetLen + length, true
}

// toPort is the frame with its datagram to Port on RoCEv2's own, where the parser looks for it.
func (r *Reader) toPort(b []byte, length uint32, p *packet.Parsed) ([]byte, uint32, bool) {
	if r.Port == 0 || r.Port == packet.RoCEv2Port {
		return nil, 0, false
	}
	at := packet.UDPTo(b, p, r.Port)
	if at == 0 || at+packet.UDPLen > len(b) {
		return nil, 0, false
	}
	r.rewrote = append(r.rewrote[:0], b...)
	binary.BigEndian.PutUint16(r.rewrote[at+2:], packet.RoCEv2Port)
	return r.rewrote, length, true
}

func isTag(etherType uint16) bool {
	return etherType == packet.EtherTypeCTag || etherType == packet.EtherTypeSTag || etherType == packet.EtherTypeQinQ || etherType == oldTag1 || etherType == oldTag2
}

// from is a frame without its first octets.
func from(b []byte, length uint32, at int) ([]byte, uint32, bool) {
	if at+packet.EthernetLen > len(b) || at > int(length) {
		return nil, 0, false
	}
	return b[at:], length - uint32(at), true
}

// The types of mirrors in GRE.
const (
	erspan12 = 0x88be // ERSPAN I and II (draft-foschiano-erspan 4.1, 4.2), and Everflow
	erspan3  = 0x22eb // ERSPAN III (4.3)
	everflow = 0x8949

	erspan2Len, erspan3Len, subHeaderLen, everflowLen = 8, 12, 8, 22

	erspan3Packet = 2 // frame type (FT): an IP packet
)

// behindGRE is the frame, or the IP packet, that a mirror has put behind a GRE header. ERSPAN I has no header of its own, and no sequence number; some switches omit
// the header, too, but number the frames. So the header that is due is tried first, and none second.
func (r *Reader) behindGRE(b []byte, length uint32, p *packet.Parsed) ([]byte, uint32, bool) {
	h, ok := packet.ReadGRE(b, int(p.L4))
	if !ok || p.Proto != packet.ProtoGRE {
		return nil, 0, false
	}
	at := h.Next
	header := 0
	switch {
	case h.Type == erspan12 && h.Numbered:
		header = erspan2Len
	case h.Type == erspan3 && at+erspan3Len <= len(b):
		header = erspan3Len
		if b[at+erspan3Len-1]&1 != 0 { // O: a platform specific sub-header follows
			header += subHeaderLen
		}
		if inner, n, ok := from(b, length, at+header); ok && b[at+erspan3Len-2]>>2&0x1f == erspan3Packet {
			return r.asFrame(inner, n)
		}
	case h.Type == everflow: // NVIDIA's switches
		header = everflowLen
	case h.Type != erspan12:
		return nil, 0, false
	}
	for _, skip := range [...]int{header, 0} {
		if inner, n, ok := from(b, length, at+skip); ok && isFrame(inner) {
			return inner, n, true
		}
	}
	return nil, 0, false
}

// behindDatagram is the frame, or the IP packet, that a router or a switch has put into a datagram behind a header of 8 octets, if that is RoCEv2: VXLAN on any port, such
// as in Cisco's ACI, or Juniper's mirror. The headers of known tunnels say what they carry. To the domain filter these ports are no tunnels: clients may have them.
func (r *Reader) behindDatagram(b []byte, length uint32, p *packet.Parsed) ([]byte, uint32, bool) {
	const headerLen = 8
	inner, n, ok := from(b, length, int(p.L4)+packet.UDPLen+headerLen)
	var in packet.Parsed
	switch {
	case p.Proto != packet.ProtoUDP || packet.TunnelPorts[p.DstPort] != "" || !ok:
	case isPacket(inner):
		if packet.ParseIP(inner, &in); in.Kind == packet.RoCEv2 {
			return r.asFrame(inner, n)
		}
	case isFrame(inner):
		look(inner, n, &in)
		return inner, n, in.Kind == packet.RoCEv2
	}
	return nil, 0, false
}

// behindTZSP is the frame that a sniffer has put into TZSP: a version, a type, the protocol of what follows the tags, 1 for Ethernet, and the tags up to the end's.
func (r *Reader) behindTZSP(b []byte, length uint32, p *packet.Parsed) ([]byte, uint32, bool) {
	const (
		port, headerLen, ethernet = 37008, 4, 1
		padding, end              = 0, 1 // tags without a length
	)
	at := packet.UDPTo(b, p, port)
	if at += packet.UDPLen + headerLen; at == packet.UDPLen+headerLen || at > len(b) || binary.BigEndian.Uint16(b[at-2:]) != ethernet {
		return nil, 0, false
	}
	for at+1 < len(b) {
		switch b[at] {
		case end:
			return from(b, length, at+1)
		case padding:
			at++
		default:
			at += 2 + int(b[at+1])
		}
	}
	return nil, 0, false
}

// isPacket reports whether an IP packet begins here, and no frame: one would be to a group, or from one.
func isPacket(b []byte) bool {
	const plain = 0x45
	return len(b) >= packet.IPv4Len && (b[0] == plain || b[0]>>4 == 6 && b[v6Next] == packet.ProtoUDP)
}

// isFrame reports whether an Ethernet frame begins here that may hold RDMA.
func isFrame(b []byte) bool {
	switch etherType := binary.BigEndian.Uint16(b[packet.EthernetLen-2:]); etherType {
	case packet.EtherTypeIPv4:
		return len(b) > packet.EthernetLen && b[packet.EthernetLen]>>4 == 4
	case packet.EtherTypeIPv6:
		return len(b) > packet.EthernetLen && b[packet.EthernetLen]>>4 == 6
	case packet.EtherTypeMPLS, packet.EtherTypeMPLSUp, packet.EtherTypeMACControl, etherTypeRoCEv1:
		return true
	default:
		return isTag(etherType) || opaque[etherType] != ""
	}
}
