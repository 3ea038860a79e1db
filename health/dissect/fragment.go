package dissect

import (
	"encoding/binary"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// Fields of fragments: IPv4's flags and offset (RFC 791 3.1), and those of IPv6's Fragment header (RFC 8200 4.5).
const (
	v4Total, v4Flags, v4Offset  = 2, 6, 0x1fff
	v6Payload, v6Next, v6Offset = 4, 6, 0xfff8
	v6FragmentLen               = 8
)

// behindFragment is the packet of which an IP fragment is the first one, as if it were whole and the capture had cut it: it has all headers. An IPv6
// fragment counts if its Fragment header is the first extension header.
func (r *Reader) behindFragment(b []byte, p *packet.Parsed) ([]byte, uint32, bool) {
	if p.Proto != packet.ProtoUDP || len(b) < int(p.L3)+packet.IPv4Len {
		return nil, 0, false
	}
	ip := int(p.L3)
	udp, length, flags, mask := 0, ip+v4Total, ip+v4Flags, uint16(v4Offset)
	if p.Family == 4 {
		udp = ip + int(b[ip]&0xf)*4
	} else {
		udp = ip + packet.IPv6Len + v6FragmentLen
		length, flags, mask = ip+v6Payload, ip+packet.IPv6Len+2, v6Offset
		if b[ip+v6Next] != packet.ProtoFragment {
			return nil, 0, false
		}
	}
	if udp+packet.UDPLen > min(len(b), maxHeaders) || binary.BigEndian.Uint16(b[flags:])&mask != 0 {
		return nil, 0, false
	}
	datagram := int(binary.BigEndian.Uint16(b[udp+4:]))
	size := udp - ip + datagram // of the packet
	if p.Family == 6 {
		size -= packet.IPv6Len
	}
	if size > 0xffff {
		return nil, 0, false
	}
	r.rewrote = append(r.rewrote[:0], b[:min(len(b), maxHeaders)]...)
	binary.BigEndian.PutUint16(r.rewrote[length:], uint16(size))
	binary.BigEndian.PutUint16(r.rewrote[flags:], 0)
	whole := uint32(udp + datagram)
	return r.rewrote[:min(len(r.rewrote), int(whole))], whole, true
}
