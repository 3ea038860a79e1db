package packet

import "encoding/binary"

// XRCETHLen is the length of the XRC Extended Transport Header in octets.
const XRCETHLen = 4

// XRCETH is the Extended Reliable Connection Extended Transport Header (IBTA Annex A14): XRC requests.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|   Reserved    |                    XRCSRQ                     |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type XRCETH struct {
	XRCSRQ uint32 // the shared receive queue, 24 bits
}

// Put writes 4 octets.
func (h XRCETH) Put(b []byte) { binary.BigEndian.PutUint32(b, h.XRCSRQ&0xffffff) }

// DecodeXRCETH reads 4 octets.
func DecodeXRCETH(b []byte) XRCETH { return XRCETH{binary.BigEndian.Uint32(b) & 0xffffff} }
