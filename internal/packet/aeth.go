package packet

import "encoding/binary"

// AETHLen is the length of the ACK Extended Transport Header in octets.
const AETHLen = 4

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
