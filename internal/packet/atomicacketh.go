package packet

import "encoding/binary"

// AtomicAckETHLen is the length of the Atomic ACK Extended Transport Header in octets.
const AtomicAckETHLen = 8

// AtomicAckETH is the Atomic ACK Extended Transport Header (IBTA 9.3.5.3), after the AETH of an ATOMIC Acknowledge.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                                                               |
//	+                     Original Remote Data                      +
//	|                                                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type AtomicAckETH struct {
	Original uint64
}

// Put writes 8 octets.
func (h AtomicAckETH) Put(b []byte) { binary.BigEndian.PutUint64(b, h.Original) }

// DecodeAtomicAckETH reads 8 octets.
func DecodeAtomicAckETH(b []byte) AtomicAckETH { return AtomicAckETH{binary.BigEndian.Uint64(b)} }
