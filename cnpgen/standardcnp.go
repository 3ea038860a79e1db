package cnpgen

import "github.com/cnpgate/cnpgate/internal/packet"

// StandardCNP builds a CNP as the flow's receiver would send it (IBTA Annex A17, draft-xiao-fast-cnp figure 2), for a sender that supports
// no other format, and returns the frame's length, or 0 if it can't be built: t is not valid, or out is too short. Its source is the
// receiver's address, since RNICs accept a CNP only from their QP's peer, so the gateway needs no address; DestQP is the sender's own QP,
// sourceQP, 24 bits. After the IP header:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  UDP header (8)                                               ~
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	| OpCode = 0x81 |0|0| 0 |   0   |     Partition Key = 0xFFFF    |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|0|B|     0     |                DestQP = sourceQP              |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|0|      0      |                    PSN = 0                    |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  Reserved (16), ICRC (4)                                      ~
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
func StandardCNP(out []byte, t *Target, g *Gateway, sourceQP uint32) int {
	c := beginCNP(out, t, g, &t.Dst, 0, packet.CNPReservedLen, sourceQP)
	if c.ip == nil {
		return 0
	}
	c.clearFields()
	return c.seal(t, g, packet.BECN)
}
