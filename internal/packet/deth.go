package packet

import "encoding/binary"

// DETHLen is the length of the Datagram Extended Transport Header in octets.
const DETHLen = 8

// DETH is the Datagram Extended Transport Header (IBTA 9.3.2): UD packets and RD requests, the only ones that carry their source QP.
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

// Put writes 8 octets.
func (h *DETH) Put(b []byte) {
	_ = b[DETHLen-1]
	binary.BigEndian.PutUint32(b, h.QKey)
	binary.BigEndian.PutUint32(b[4:], h.SourceQP&0xffffff)
}

// DecodeDETH reads 8 octets.
func DecodeDETH(b []byte) DETH {
	_ = b[DETHLen-1]
	return DETH{binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:]) & 0xffffff}
}
