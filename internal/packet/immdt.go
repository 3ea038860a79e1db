package packet

import "encoding/binary"

// ImmDtLen is the length of the Immediate Data header in octets.
const ImmDtLen = 4

// ImmDt is the Immediate Data header (IBTA 9.3.6): the operations "with Immediate".
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                        Immediate Data                         |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type ImmDt struct {
	Data uint32
}

// Put writes 4 octets.
func (h ImmDt) Put(b []byte) { binary.BigEndian.PutUint32(b, h.Data) }

// DecodeImmDt reads 4 octets.
func DecodeImmDt(b []byte) ImmDt { return ImmDt{binary.BigEndian.Uint32(b)} }
