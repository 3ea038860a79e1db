package cnpgen

import (
	"encoding/binary"
	"unsafe"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// StandardCNP builds a CNP as the flow's receiver would send it (IBTA Annex A17, draft-xiao-fast-cnp figure 2), for a sender that supports
// no other format, and returns the frame's length, or 0 if it can't be built: t is not valid, out is too short, or g.CNP.FromGateway is set and
// the gateway has no address of the flow's IP version. By default its source is the receiver's address, since NICs may accept a CNP only from
// their QP's peer, so the gateway needs no address; DestQP is the sender's own QP, sourceQP, 24 bits. After the IP header:
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
	f, src := &g.CNP, &t.Dst
	if f.FromGateway {
		src = g.source(t.Family)
	}
	c := beginCNP(out, t, g, src, 0, packet.CNPReservedLen, sourceQP)
	if c.ip == nil {
		return 0
	}
	if f.OwnPort {
		binary.BigEndian.PutUint16((*[2]byte)(unsafe.Add(c.ip, c.udp))[:], f.Port)
	}
	if f.MayFragment && t.Family == 4 {
		const flags = 6 // octet of the IPv4 header
		*(*byte)(unsafe.Add(c.ip, flags)) = 0
	}
	c.clearFields()
	class, hops := g.DSCP<<2, uint8(hopLimit)
	if f.Own {
		class, hops = f.Class, f.HopLimit
	}
	return c.seal(t, g, packet.BECN, class, hops)
}

// CNPFields are the fields that notification points fill in differently in standard CNPs. The zero value is the default of each.
type CNPFields struct {
	FromGateway bool // the source is the gateway's address, not that of the flow's receiver
	MayFragment bool // IPv4: without Don't Fragment
	OwnPort     bool // Port is the UDP source port, not the flow's
	Port        uint16
	Own         bool  // the next two fields count: by default they are Gateway.DSCP, Not-ECT and 64
	Class       uint8 // DSCP and ECN
	HopLimit    uint8 // or TTL
}
