package cnpgen

import "github.com/cnpgate/cnpgate/internal/packet"

// PPFC is what a PPFC notification says.
type PPFC struct {
	Resume   bool   // go on; Duration isn't sent then
	Port     uint16 // where the congestion is
	Duration uint16 // how long to pause, microseconds
}

// PPFCNotification builds a PPFC notification (draft-xz-ppfc 3) over the data packet's IP version and returns the frame's length,
// or 0 when it can't be built: the gateway has no address of that version, or out is too short. Behind the UDP header (8):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	| OpCode = 0x81 |0|0| 0 |   0   |     Partition Key = 0xFFFF    |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|0|B|P|    0    |            DestQP = the data packet's         |
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
// DestQP and the congested destination name the sender's QP, as in a Fast CNP. The ICRC covers neither B nor P. p is what
// packet.Parse found in frame, the data packet; out must not overlap frame.
func PPFCNotification(out, frame []byte, p *packet.Parsed, g *Gateway, n *PPFC) int {
	body, end := reply(out, frame, p, g, packet.PPFCLen(p.Family), packet.BECN|packet.ExtensionBit, p.DestQP)
	if end == 0 {
		return 0
	}
	fields := packet.PPFC{Dst: p.Dst, Port: n.Port}
	if n.Resume {
		fields.PT = packet.PTResume
	} else {
		fields.Duration = n.Duration
	}
	fields.Put(body, p.Family)
	return seal(out, p, g, end)
}
