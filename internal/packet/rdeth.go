package packet

import "encoding/binary"

// RDETHLen is the length of the Reliable Datagram Extended Transport Header in octets.
const RDETHLen = 4

// RDETH is the Reliable Datagram Extended Transport Header (IBTA 9.3.1): all RD packets.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|   Reserved    |                  EE-Context                   |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type RDETH struct {
	EEContext uint32 // 24 bits
}

// DecodeRDETH reads 4 octets.
func DecodeRDETH(b []byte) RDETH { return RDETH{binary.BigEndian.Uint32(b) & 0xffffff} }
