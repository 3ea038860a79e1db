// Package ospf has what the LSAs of OSPFv2 and OSPFv3 that carry TLVs have in common: the TLVs (RFC 3630 2.3.2, RFC 7684 2, RFC 8362 3), the
// attributes of a prefix that the proxy node capability needs (draft-xiao-proxy 5.2 and 5.3), and the checksum. The package is pure. All
// numbers on the wire are big endian.
package ospf

import (
	"encoding/binary"
	"fmt"
)

// TLVHeaderLen is the length of a TLV's type and length.
const TLVHeaderLen = 4

// TLV is a TLV or sub-TLV. Its value has at most 65,535 octets.
type TLV struct {
	Type  uint16
	Value []byte // without padding
}

// NextTLV decodes the first TLV of b, and returns what follows it and its padding to four octets. Its value is part of b. Padding that is
// missing behind the last TLV is not an error.
func NextTLV(b []byte) (t TLV, rest []byte, err error) {
	if len(b) < TLVHeaderLen {
		return TLV{}, nil, fmt.Errorf("%d octets are left where a TLV begins; expected at least %d", len(b), TLVHeaderLen)
	}
	t.Type = binary.BigEndian.Uint16(b)
	length := int(binary.BigEndian.Uint16(b[2:]))
	b = b[TLVHeaderLen:]
	if length > len(b) {
		return TLV{}, nil, fmt.Errorf("TLV %d has a length of %d octets, but %d are left", t.Type, length, len(b))
	}
	t.Value = b[:length]
	return t, b[min(padded(length), len(b)):], nil
}

// AppendTLV appends a TLV, padded with zeros to four octets.
func AppendTLV(b []byte, t TLV) []byte {
	b = binary.BigEndian.AppendUint16(b, t.Type)
	b = binary.BigEndian.AppendUint16(b, uint16(len(t.Value)))
	b = append(b, t.Value...)
	return append(b, make([]byte, padded(len(t.Value))-len(t.Value))...)
}

// padded is a length rounded up to four octets.
func padded(length int) int { return (length + 3) &^ 3 }

// maxValue is the longest value of a TLV.
const maxValue = 1<<16 - 1
