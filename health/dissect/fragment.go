package dissect

import (
	"encoding/binary"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// Fields of fragments: IPv4's flags and offset (RFC 791 3.1), and those of IPv6's Fragment header (RFC 8200 4.5).
const (
	v4Total, v4ID, v4Flags      = 2, 4, 6
	v4Offset                    = 0x1fff
	v6Payload, v6Next, v6Offset = 4, 6, 0xfff8
	v6FragmentLen               = 8
)

// fragmented is an IP packet that was sent in fragments (RFC 791 2.3, RFC 8200 4.5).
type fragmented struct {
	src, dst packet.Addr
	id       uint32
}

// fragmentOf is the packet that an IP fragment is of; follows: it isn't the first one.
func fragmentOf(b []byte, p *packet.Parsed) (of fragmented, follows bool) {
	ip := int(p.L3)
	switch header := ip + packet.IPv6Len; {
	case p.Kind != packet.IP || p.L4 != 0:
		return of, false
	case p.Family == 4 && ip+packet.IPv4Len <= len(b):
		return fragmented{p.Src, p.Dst, uint32(binary.BigEndian.Uint16(b[ip+v4ID:]))}, binary.BigEndian.Uint16(b[ip+v4Flags:])&v4Offset != 0
	case p.Family == 6 && header+v6FragmentLen <= len(b) && b[ip+v6Next] == packet.ProtoFragment:
		return fragmented{p.Src, p.Dst, binary.BigEndian.Uint32(b[header+4:])}, binary.BigEndian.Uint16(b[header+2:])&v6Offset != 0
	}
	return of, false
}

// behindFragment is the packet of which an IP fragment is the first one, as if it were whole and the capture had cut it: it has all headers. An IPv6
// fragment counts if its Fragment header is the first extension header. Of what isn't UDP, as of a mirror's GRE, the length of the whole isn't known, and not needed.
func (r *Reader) behindFragment(b []byte, p *packet.Parsed) ([]byte, uint32, bool) {
	if len(b) < int(p.L3)+packet.IPv4Len {
		return nil, 0, false
	}
	ip := int(p.L3)
	inside, length, flags, mask := 0, ip+v4Total, ip+v4Flags, uint16(v4Offset)
	if p.Family == 4 {
		inside = ip + int(b[ip]&0xf)*4
	} else {
		inside = ip + packet.IPv6Len + v6FragmentLen
		length, flags, mask = ip+v6Payload, ip+packet.IPv6Len+2, v6Offset
		if b[ip+v6Next] != packet.ProtoFragment {
			return nil, 0, false
		}
	}
	if inside+packet.UDPLen > min(len(b), maxHeaders) || binary.BigEndian.Uint16(b[flags:])&mask != 0 {
		return nil, 0, false
	}
	size := int(binary.BigEndian.Uint16(b[length:])) // of the packet
	whole := uint32(ip + size)
	if p.Family == 6 {
		whole += packet.IPv6Len
	}
	if p.Proto == packet.ProtoUDP {
		datagram := int(binary.BigEndian.Uint16(b[inside+4:]))
		if size = inside - ip + datagram; p.Family == 6 {
			size -= packet.IPv6Len
		}
		whole = uint32(inside + datagram)
	}
	if size > 0xffff {
		return nil, 0, false
	}
	r.present, _ = fragmentOf(b, p)
	r.rewrote = append(r.rewrote[:0], b[:min(len(b), maxHeaders)]...)
	binary.BigEndian.PutUint16(r.rewrote[length:], uint16(size))
	binary.BigEndian.PutUint16(r.rewrote[flags:], 0)
	return r.rewrote[:min(len(r.rewrote), int(whole))], whole, true
}
