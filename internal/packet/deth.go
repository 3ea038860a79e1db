package packet

import "encoding/binary"

// DETHLen is the length of the Datagram Extended Transport Header in octets.
const DETHLen = 8

// DETH is the Datagram Extended Transport Header (IBTA 9.3.2): UD packets and RD requests, the only ones that say which QP
// sent them.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                           Queue Key                           |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|   Reserved    |                   Source QP                   |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type DETH struct {
	QKey     uint32
	SourceQP uint32 // 24 bits
}

// DecodeDETH reads 8 octets.
func DecodeDETH(b []byte) DETH {
	_ = b[DETHLen-1]
	return DETH{binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:]) & 0xffffff}
}
