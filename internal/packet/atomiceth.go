package packet

import "encoding/binary"

// AtomicETHLen is the length of the Atomic Extended Transport Header in octets.
const AtomicETHLen = 28

// AtomicETH is the Atomic Extended Transport Header (IBTA 9.3.4): CmpSwap and FetchAdd.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                                                               |
//	+                        Virtual Address                        +
//	|                                                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                          Remote Key                           |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                                                               |
//	+                      Swap (or Add) Data                       +
//	|                                                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                                                               |
//	+                         Compare Data                          +
//	|                                                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type AtomicETH struct {
	VirtualAddress uint64
	RKey           uint32
	SwapAdd        uint64
	Compare        uint64 // CmpSwap only
}

// Put writes 28 octets.
func (h *AtomicETH) Put(b []byte) {
	_ = b[AtomicETHLen-1]
	binary.BigEndian.PutUint64(b, h.VirtualAddress)
	binary.BigEndian.PutUint32(b[8:], h.RKey)
	binary.BigEndian.PutUint64(b[12:], h.SwapAdd)
	binary.BigEndian.PutUint64(b[20:], h.Compare)
}

// DecodeAtomicETH reads 28 octets.
func DecodeAtomicETH(b []byte) AtomicETH {
	_ = b[AtomicETHLen-1]
	return AtomicETH{
		VirtualAddress: binary.BigEndian.Uint64(b),
		RKey:           binary.BigEndian.Uint32(b[8:]),
		SwapAdd:        binary.BigEndian.Uint64(b[12:]),
		Compare:        binary.BigEndian.Uint64(b[20:]),
	}
}
