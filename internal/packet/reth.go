package packet

import "encoding/binary"

// RETHLen is the length of the RDMA Extended Transport Header in octets.
const RETHLen = 16

// RETH is the RDMA Extended Transport Header (IBTA 9.3.3): RDMA WRITE First and Only, RDMA READ Request.
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
//	|                          DMA Length                           |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type RETH struct {
	VirtualAddress uint64
	RKey           uint32
	DMALength      uint32 // octets of the whole message
}

// Put writes 16 octets.
func (h *RETH) Put(b []byte) {
	_ = b[RETHLen-1]
	binary.BigEndian.PutUint64(b, h.VirtualAddress)
	binary.BigEndian.PutUint32(b[8:], h.RKey)
	binary.BigEndian.PutUint32(b[12:], h.DMALength)
}

// DecodeRETH reads 16 octets.
func DecodeRETH(b []byte) RETH {
	_ = b[RETHLen-1]
	return RETH{binary.BigEndian.Uint64(b), binary.BigEndian.Uint32(b[8:]), binary.BigEndian.Uint32(b[12:])}
}
