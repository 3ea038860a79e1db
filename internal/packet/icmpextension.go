package packet

import "encoding/binary"

const (
	// ExtensionHeaderLen is the length of the Extension Header in octets.
	ExtensionHeaderLen = 4
	// ObjectHeaderLen is the length in octets of what precedes an Extension Object's payload.
	ObjectHeaderLen = 4
	// ExtensionVersion is the only version of the extension structure.
	ExtensionVersion = 2
)

// ExtensionHeader precedes the Extension Objects of a Long-haul CNP (draft-tian 6.1.1, figure 3; RFC 4884 7):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|Version|       Reserved        |           Checksum            |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type ExtensionHeader struct {
	Version  uint8  // 4 bits
	Reserved uint16 // 12 bits, 0
	Checksum uint16 // over header and objects; 0: none was sent (RFC 4884 7)
}

// Put writes 4 octets.
func (h ExtensionHeader) Put(b []byte) {
	binary.BigEndian.PutUint32(b, uint32(h.Version)<<28|uint32(h.Reserved&0xfff)<<16|uint32(h.Checksum))
}

// DecodeExtensionHeader reads 4 octets.
func DecodeExtensionHeader(b []byte) ExtensionHeader {
	v := binary.BigEndian.Uint32(b)
	return ExtensionHeader{uint8(v >> 28), uint16(v >> 16 & 0xfff), uint16(v)}
}

// PutExtensionHeader writes, in front of the objects that fill the rest of b, the header with its checksum. Since 0 would mean no checksum,
// a checksum of 0 is sent as its other form, 0xFFFF.
func PutExtensionHeader(b []byte) {
	ExtensionHeader{Version: ExtensionVersion}.Put(b)
	binary.BigEndian.PutUint16(b[2:], notZero(fold(onesSum(0, b))))
}

// ExtensionChecksumOK reports whether the checksum of an extension structure, header and objects, is right or wasn't sent.
func ExtensionChecksumOK(b []byte) bool {
	return binary.BigEndian.Uint16(b[2:]) == 0 || fold(onesSum(0, b)) == 0
}

// C-Types of the Long-haul CNP's class of objects (draft-tian 10.3).
const (
	CTypeTimestamp = 1 // 8 octets, NTP timestamp format (RFC 5905 6)
	CTypeDevice    = 2 // UTF-8, any length
	CTypePath      = 3 // opaque, any length
)

// TimestampLen is the length in octets of a timestamp object's payload.
const TimestampLen = 8

// Object is an Extension Object (draft-tian 6.1.1, figure 4; RFC 4884 8):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|            Length             |   Class-Num   |    C-Type     |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  Payload, and zeros to a multiple of 4 octets                 ~
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
// Length counts the header and the payload without the zeros.
type Object struct {
	Class, CType uint8
	Payload      []byte
}

// Len is the length in octets of the whole object, zeros included.
func (o *Object) Len() int { return paddedLen(ObjectHeaderLen + len(o.Payload)) }

func paddedLen(n int) int { return (n + 3) &^ 3 }

// Put writes Len() octets. The payload is at most 65,531 octets long.
func (o *Object) Put(b []byte) {
	b = b[:o.Len()]
	binary.BigEndian.PutUint16(b, uint16(ObjectHeaderLen+len(o.Payload)))
	b[2], b[3] = o.Class, o.CType
	clear(b[ObjectHeaderLen+copy(b[ObjectHeaderLen:], o.Payload):])
}

// PutTimestamp writes a timestamp object, 12 octets, and returns their number.
func PutTimestamp(b []byte, class uint8, ntp uint64) int {
	const n = ObjectHeaderLen + TimestampLen
	b = b[:n]
	binary.BigEndian.PutUint32(b, n<<16|uint32(class)<<8|CTypeTimestamp)
	binary.BigEndian.PutUint64(b[ObjectHeaderLen:], ntp)
	return n
}

// NextObject reads the object at the front of a list of objects and returns it with its length in octets, zeros included; the length is 0
// if the list is empty or the object, or its zeros, exceed it. Payload is a view of the list. The values of the padding aren't checked.
func NextObject(list []byte) (Object, int) {
	if len(list) < ObjectHeaderLen {
		return Object{}, 0
	}
	length := int(binary.BigEndian.Uint16(list))
	if length < ObjectHeaderLen || paddedLen(length) > len(list) {
		return Object{}, 0
	}
	return Object{list[2], list[3], list[ObjectHeaderLen:length]}, paddedLen(length)
}

// ntpEpoch is the Unix epoch in seconds of NTP's era 0 (RFC 5905 6).
const ntpEpoch = 2208988800

// NTPTime converts nanoseconds since the Unix epoch to NTP timestamp format: seconds since 1900 modulo 2^32, and a fraction of
// 32 bits, rounded down.
func NTPTime(unixNanos int64) uint64 {
	seconds, nanos := unixNanos/1e9, unixNanos%1e9
	if nanos < 0 {
		seconds, nanos = seconds-1, nanos+1e9
	}
	return uint64(seconds+ntpEpoch)<<32 | uint64(nanos)<<32/1e9
}
