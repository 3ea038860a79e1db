package packet

import "encoding/binary"

const (
	greLen      = 4
	greChecksum = 0x8000
	greKey      = 0x2000
	greSequence = 0x1000
	greUnknown  = 0x4c07 // routing and others of RFC 1701, version; receivers ignore bits 6 to 12 (RFC 2784 2.3)
	greFieldLen = 4
)

// GREHeader is a GRE header (RFC 2784 2, RFC 2890 2). Each flag of C, K and S that is set adds its word:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|C| |K|S|    Reserved0    | Ver |           EtherType           |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|         Checksum (C)          |           Reserved            |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                            Key (K)                            |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                      Sequence Number (S)                      |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type GREHeader struct {
	Type     uint16 // what follows, an EtherType
	Key      uint32 // 0 without
	Numbered bool   // it has a sequence number
	Next     int    // offset of what follows
}

// ReadGRE reads the header at an offset. It reports false for one that isn't whole, or of another version.
func ReadGRE(b []byte, at int) (h GREHeader, ok bool) {
	if len(b) < at+greLen {
		return h, false
	}
	flags := binary.BigEndian.Uint16(b[at:])
	if flags&greUnknown != 0 {
		return h, false
	}
	h.Type, h.Numbered = binary.BigEndian.Uint16(b[at+2:]), flags&greSequence != 0
	h.Next = at + greLen
	if flags&greChecksum != 0 {
		h.Next += greFieldLen
	}
	if flags&greKey != 0 {
		if len(b) < h.Next+greFieldLen {
			return h, false
		}
		h.Key = binary.BigEndian.Uint32(b[h.Next:])
		h.Next += greFieldLen
	}
	if h.Numbered {
		h.Next += greFieldLen
	}
	return h, true
}

// afterGRE reads a GRE header.
func (l *payload) afterGRE(b []byte) {
	l.what = unreadable
	if h, ok := ReadGRE(b, l.at); ok {
		l.at, l.tunnel, l.what = h.Next, Tunnel{Kind: GRE, ID: h.Key}, byEtherType(h.Type)
	}
}
