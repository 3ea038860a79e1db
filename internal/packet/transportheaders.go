package packet

import "encoding/binary"

// Lengths of the extended transport headers in octets.
const (
	RDETHLen        = 4 // reliable datagram (IBTA 9.3.1): EE-Context, 24 bits
	DETHLen         = 8
	XRCETHLen       = 4 // extended reliable connection (IBTA Annex A14): shared receive queue, 24 bits
	FETHLen         = 4 // flush (IBTA Annex A19), in front of its RETH: selectivity level and placement type, 2 and 4 bits
	RETHLen         = 16
	AtomicETHLen    = 28 // IBTA 9.3.4: virtual address, remote key, data to swap or add, data to compare
	AETHLen         = 4
	AtomicAckETHLen = 8 // IBTA 9.3.5.3: original data
	ImmDtLen        = 4 // immediate data (IBTA 9.3.6)
	IETHLen         = 4 // invalidate (IBTA 9.3.7): remote key
)

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

// AETH is the ACK Extended Transport Header (IBTA 9.3.5, 9.7.5): acknowledgements and all RDMA READ responses but Middle.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|0| T |  Value  |                     MSN                       |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type AETH struct {
	Syndrome uint8  // T: 0 ACK, 1 RNR NAK, 3 NAK; Value: credit count, RNR timer or NAK code
	MSN      uint32 // message sequence number, 24 bits
}

// Put writes 4 octets.
func (h AETH) Put(b []byte) { binary.BigEndian.PutUint32(b, uint32(h.Syndrome)<<24|h.MSN&0xffffff) }

// DecodeAETH reads 4 octets.
func DecodeAETH(b []byte) AETH {
	v := binary.BigEndian.Uint32(b)
	return AETH{uint8(v >> 24), v & 0xffffff}
}

// IsACK reports whether the syndrome is a positive acknowledgement (IBTA table 45).
func (h AETH) IsACK() bool { return h.Syndrome>>5 == 0 }

// IsRNRNAK reports whether the syndrome is "receiver not ready".
func (h AETH) IsRNRNAK() bool { return h.Syndrome>>5 == 1 }

// IsNAK reports whether the syndrome is a negative acknowledgement: a sequence error, an invalid request or a similar error.
func (h AETH) IsNAK() bool { return h.Syndrome>>5 == 3 }
