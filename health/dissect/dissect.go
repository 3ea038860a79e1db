package dissect

import (
	"encoding/binary"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// Reader reads the frames of a capture, one after the other. The zero value is ready for use.
type Reader struct {
	Port uint16 // UDP destination port that counts as RoCEv2's, too; 0: none

	parsed  packet.Parsed
	padded  [maxHeaders]byte
	rewrote [maxHeaders]byte
}

// maxHeaders is enough for all headers of a packet in a tunnel and a mirror's headers, octets.
const maxHeaders = 512

// Packet is a frame that was read.
type Packet struct {
	Parsed *packet.Parsed // valid until the next Read
	Frame  []byte         // the frame that Parsed describes, padded with zeros if the capture has cut its headers
	Real   []byte         // its part that is in the capture
	Whole  bool           // all of it is in the capture as it was on the wire, so that the ICRC can be verified
	Reason Reason         // why it isn't a RoCEv2 packet whose headers are all at hand; None
	Cut    bool           // a RoCEv2 packet with its BTH, of which later headers are cut off
}

const deepest = 4 // mirror and overlay headers in front of each other

// Read reads a frame of a length on the wire, of which b is the part at hand.
func (r *Reader) Read(b []byte, length uint32) (o Packet) {
	o.Parsed, o.Whole = &r.parsed, true
	var first Reason
	for depth := 0; ; depth++ {
		r.parse(b, length, &o)
		if o.Parsed.Kind == packet.RoCEv2 && !o.Parsed.IPv4Mapped() {
			return o
		}
		if depth == 0 {
			first = o.Reason
		}
		if depth == deepest {
			break
		}
		inner, n, ok := r.inside(b, length, &r.parsed, &o)
		if !ok {
			break
		}
		b, length = inner, n
	}
	if o.Reason == NotRDMA || o.Reason == None {
		o.Reason = max(first, NotRDMA)
	}
	return o
}

// parse parses a frame. If its headers are cut off, they are parsed as if zeros followed.
func (r *Reader) parse(b []byte, length uint32, o *Packet) {
	p := &r.parsed
	packet.Parse(b, length, p)
	o.Frame, o.Real, o.Reason, o.Cut = b, b, None, false
	if p.Kind == packet.RoCEv2 {
		o.Whole = o.Whole && len(b) >= int(p.ICRC)+packet.ICRCLen
		return
	}
	if p.Kind != packet.MACControl && uint32(len(b)) < length && len(b) < maxHeaders {
		n := copy(r.padded[:], b)
		clear(r.padded[n:])
		padded := r.padded[:min(maxHeaders, int(length))]
		packet.Parse(padded, length, p)
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

// inside takes the outermost mirror or overlay header away.
func (r *Reader) inside(b []byte, length uint32, p *packet.Parsed, o *Packet) (inner []byte, n uint32, ok bool) {
	switch {
	case p.Kind == packet.Other && p.Tags == packet.MaxTags && isTag(p.EtherType):
		// The frame goes on with its third tag. What stands where the MAC addresses would doesn't matter.
		return from(b, length, packet.VLANTagLen*packet.MaxTags)
	case p.Kind == packet.IP && p.L4 == 0:
		o.Whole = false
		return r.behindFragment(b, p)
	case p.Kind != packet.IP || int(p.L4) >= len(b):
		return nil, 0, false
	case p.Proto == packet.ProtoGRE:
		return r.behindGRE(b, length, int(p.L4))
	case p.Proto == packet.ProtoUDP && int(p.L4)+packet.UDPLen+overlayLen <= len(b):
		o.Whole = false // the copy isn't the packet
		return r.behindUDP(b, length, p)
	}
	return nil, 0, false
}

func isTag(etherType uint16) bool {
	return etherType == packet.EtherTypeCTag || etherType == packet.EtherTypeSTag || etherType == packet.EtherTypeQinQ
}

// from is a frame without its first octets.
func from(b []byte, length uint32, at int) ([]byte, uint32, bool) {
	if at+packet.EthernetLen > len(b) || at > int(length) {
		return nil, 0, false
	}
	return b[at:], length - uint32(at), true
}

// GRE (RFC 2784, RFC 2890), and the types of mirrors.
const (
	greChecksum, greKey, greSequence = 0x8000, 0x2000, 0x1000

	erspan12 = 0x88be // ERSPAN I and II (draft-foschiano-erspan 4.1, 4.2), and Everflow
	erspan3  = 0x22eb // ERSPAN III (4.3)
	everflow = 0x8949

	erspan2Len, erspan3Len, subHeaderLen = 8, 12, 8
)

// behindGRE is the frame that a mirror has put behind a GRE header. ERSPAN I has no header of its own, and no sequence number; some switches omit the header,
// too, but number the frames. So the header that is due is tried first, and none second.
func (r *Reader) behindGRE(b []byte, length uint32, at int) ([]byte, uint32, bool) {
	if at+4 > len(b) {
		return nil, 0, false
	}
	flags, etherType := binary.BigEndian.Uint16(b[at:]), binary.BigEndian.Uint16(b[at+2:])
	at += 4
	for _, field := range [...]uint16{greChecksum, greKey, greSequence} {
		if flags&field != 0 {
			at += 4
		}
	}
	header := 0
	switch {
	case etherType == erspan12 && flags&greSequence != 0:
		header = erspan2Len
	case etherType == erspan3 && at+erspan3Len <= len(b):
		header = erspan3Len
		if b[at+erspan3Len-1]&1 != 0 { // O: a platform specific sub-header follows
			header += subHeaderLen
		}
	case etherType != erspan12 && etherType != everflow:
		return nil, 0, false
	}
	for _, skip := range [...]int{header, 0} {
		if inner, n, ok := from(b, length, at+skip); ok && isFrame(inner) {
			return inner, n, true
		}
	}
	return nil, 0, false
}

// isFrame reports whether an Ethernet frame begins here that may hold RDMA.
func isFrame(b []byte) bool {
	switch etherType := binary.BigEndian.Uint16(b[packet.EthernetLen-2:]); etherType {
	case packet.EtherTypeIPv4, packet.EtherTypeIPv6, packet.EtherTypeMPLS, packet.EtherTypeMPLSUp, packet.EtherTypeMACControl, etherTypeRoCEv1:
		return true
	default:
		return isTag(etherType)
	}
}

// UDP ports of overlays, and RoCEv2's.
const (
	vxlanPort    = 4789 // RFC 7348
	vxlanGPEPort = 4790
	genevePort   = 6081 // RFC 8926
	oldVXLANPort = 8472 // Linux's default
	overlayLen   = 8    // of their headers, without Geneve's options
)

// behindUDP is the frame with its overlay written as VXLAN on its own port, or its RoCEv2 on its own port, which is what the parser reads: so the network
// that an overlay separates stays known.
func (r *Reader) behindUDP(b []byte, length uint32, p *packet.Parsed) ([]byte, uint32, bool) {
	udp := int(p.L4)
	h := b[udp+packet.UDPLen:]
	var at, port, vni = udp + packet.UDPLen, uint16(vxlanPort), uint32(0)
	switch p.DstPort {
	case r.Port:
		if r.Port == packet.RoCEv2Port || r.Port == 0 {
			return nil, 0, false
		}
		port = packet.RoCEv2Port
		n := r.copyOf(b[:at], b[at:])
		binary.BigEndian.PutUint16(r.rewrote[udp+2:], port)
		return r.rewrote[:n], length, true
	case oldVXLANPort:
		n := r.copyOf(b[:at], b[at:])
		binary.BigEndian.PutUint16(r.rewrote[udp+2:], port)
		return r.rewrote[:n], length, true
	case vxlanGPEPort:
		const nextProtocol, ethernet = 0x04, 3
		if h[0]&nextProtocol != 0 && h[3] != ethernet {
			return nil, 0, false
		}
		vni = binary.BigEndian.Uint32(h[4:]) >> 8
		at += overlayLen
	case genevePort:
		const transparentEthernet, word = 0x6558, 4
		if h[0]>>6 != 0 || binary.BigEndian.Uint16(h[2:]) != transparentEthernet {
			return nil, 0, false
		}
		vni = binary.BigEndian.Uint32(h[4:]) >> 8
		at += overlayLen + int(h[0]&0x3f)*word
	default:
		return nil, 0, false
	}
	if at > len(b) {
		return nil, 0, false
	}
	var front [maxHeaders]byte
	n := copy(front[:], b[:udp+packet.UDPLen])
	if n+overlayLen > len(front) {
		return nil, 0, false
	}
	binary.BigEndian.PutUint16(front[udp+2:], port)
	front[n] = 0x08 // I: the VNI is valid
	binary.BigEndian.PutUint32(front[n+4:], vni<<8)
	return r.rewrote[:r.copyOf(front[:n+overlayLen], b[at:])], length, true
}

// copyOf joins two parts in r.rewrote, as far as there is room.
func (r *Reader) copyOf(front, rest []byte) int {
	n := copy(r.rewrote[:], front)
	return n + copy(r.rewrote[n:], rest)
}
