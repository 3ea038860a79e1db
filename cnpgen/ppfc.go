package cnpgen

import "github.com/cnpgate/cnpgate/internal/packet"

// PPFC has the fields of a PPFC notification.
type PPFC struct {
	Resume   bool   // resume; then Duration isn't sent
	Port     uint16 // the congested port
	Duration uint16 // how long to pause, microseconds
}

// PPFCNotification builds a PPFC notification (draft-xz-ppfc 3) over the flow's IP version and returns the frame's length, or 0 when
// it can't be built: t is not valid, the gateway has no address of that version, or out is too short. After the UDP header (8):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	| OpCode = 0x81 |0|0| 0 |   0   |     Partition Key = 0xFFFF    |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|0|B|P|    0    |            DestQP = the flow's                |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|0|      0      |                    PSN = 0                    |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  Congested Destination IP (16 or 4)                           ~
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|         Flags = 0         |PT |        Congestion Port        |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|         Reserved = 0          |        Pause Duration         |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                             ICRC                              |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
// DestQP and the congested destination identify the sender's QP, as in a Fast CNP. The ICRC covers neither B nor P.
func PPFCNotification(out []byte, t *Target, g *Gateway, n *PPFC) int {
	src := g.source(t.Family)
	c := beginCNP(out, t, g, src, 0, packet.PPFCLen(t.Family), t.DestQP)
	if c.ip == nil {
		return 0
	}
	fields := packet.PPFCFields{Dst: t.Dst, Port: n.Port}
	if n.Resume {
		fields.PT = packet.PTResume
	} else {
		fields.Duration = n.Duration
	}
	fields.Put(c.fields(), t.Family)
	return c.seal(t, g, packet.BECN|packet.ExtensionBit, g.DSCP<<2, hopLimit)
}
