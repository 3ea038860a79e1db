package packet

import "encoding/binary"

// FETHLen is the length of the Flush Extended Transport Header in octets.
const FETHLen = 4

// FETH is the Flush Extended Transport Header (IBTA Annex A19): FLUSH, in front of its RETH.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                      Reserved                     |SEL|  PLT  |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type FETH struct {
	Placement   uint8 // PLT, 4 bits
	Selectivity uint8 // SEL, 2 bits
}

// DecodeFETH reads 4 octets.
func DecodeFETH(b []byte) FETH {
	v := binary.BigEndian.Uint32(b)
	return FETH{uint8(v & 0xf), uint8(v >> 4 & 3)}
}
