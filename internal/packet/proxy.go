package packet

import "encoding/binary"

// Proxied is the part of a notification to a proxy between its UDP header and the invoking packet: "IP Five-Tuple + Congestion Level"
// (draft-xiao-proxy 4, figure 5). The draft defines no layout; cnpgate uses:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|Version|R|Level|   Protocol    |           Reserved            |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|          Source Port          |       Destination Port        |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  Source Address: 4 octets for Version 4, 16 for Version 6     ~
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  Destination Address: as long                                 ~
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type Proxied struct {
	Version          uint8 // of IP: 4 or 6
	R                bool  // reserved: senders put 0, receivers ignore it
	Level            uint8 // Congestion Level, 3 bits: 0 lowest to 7 highest
	Proto            uint8
	Reserved         uint16 // senders put 0, receivers ignore it
	SrcPort, DstPort uint16
	Src, Dst         Addr
}

// Maximum length of the IP packet of a notification to a proxy, in octets (draft-xiao-proxy 4): the invoking packet is truncated
// accordingly.
const (
	MaxProxyIPv4 = 576
	MaxProxyIPv6 = 1280
)

// ProxiedLen is the length in octets of the fields for a flow of the given IP version.
func ProxiedLen(version uint8) int {
	if version == 6 {
		return 8 + 2*16
	}
	return 8 + 2*4
}

// Put writes ProxiedLen(x.Version) octets.
func (x *Proxied) Put(b []byte) {
	b = b[:ProxiedLen(x.Version)]
	b[0] = x.Version<<4 | bit(x.R, 8) | x.Level&7
	b[1] = x.Proto
	binary.BigEndian.PutUint16(b[2:], x.Reserved)
	binary.BigEndian.PutUint16(b[4:], x.SrcPort)
	binary.BigEndian.PutUint16(b[6:], x.DstPort)
	if x.Version == 6 {
		x.Src.Put16(b[8:])
		x.Dst.Put16(b[24:])
	} else {
		x.Src.put4(b[8:])
		x.Dst.put4(b[12:])
	}
}

// DecodeProxied reads the fields at the front of b; it returns false when the version is neither 4 nor 6 or b is too short for it.
func DecodeProxied(b []byte) (Proxied, bool) {
	if len(b) == 0 || len(b) < ProxiedLen(b[0]>>4) {
		return Proxied{}, false
	}
	x := Proxied{
		Version: b[0] >> 4, R: b[0]&8 != 0, Level: b[0] & 7, Proto: b[1], Reserved: binary.BigEndian.Uint16(b[2:]),
		SrcPort: binary.BigEndian.Uint16(b[4:]), DstPort: binary.BigEndian.Uint16(b[6:]),
	}
	switch x.Version {
	case 4:
		x.Src, x.Dst = AddrFrom4(b[8:]), AddrFrom4(b[12:])
	case 6:
		x.Src, x.Dst = AddrFrom16(b[8:]), AddrFrom16(b[24:])
	default:
		return Proxied{}, false
	}
	return x, true
}

// ProxyLevel is the level of a notification to a proxy, 0 lowest to 7 highest (draft-xiao-proxy 4), for a Congestion Level: each stands for 32
// of those. K_min is 1, K_max 5, and 7 begins at 1.6 K_max.
func ProxyLevel(level uint8) uint8 { return level >> 5 }
