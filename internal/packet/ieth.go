package packet

import "encoding/binary"

// IETHLen is the length of the Invalidate Extended Transport Header in octets.
const IETHLen = 4

// IETH is the Invalidate Extended Transport Header (IBTA 9.3.7): SEND Last and Only with Invalidate.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                     Remote Key to invalidate                  |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type IETH struct {
	RKey uint32
}

// DecodeIETH reads 4 octets.
func DecodeIETH(b []byte) IETH { return IETH{binary.BigEndian.Uint32(b)} }
