package cnpdec

import (
	"encoding/binary"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// decodeMACControl reads a PAUSE (IEEE 802.3 31B) or a PFC frame (IEEE 802.1Qbb). It doesn't check the source, which is the link's other
// end. It ignores padding after the fields.
func decodeMACControl(frame []byte, p *packet.Parsed, n *Notification) Reason {
	n.Start = packet.EthernetLen + packet.VLANTagLen*int(p.Tags)
	b := frame[min(n.Start, len(frame)):]
	if len(b) < 2 {
		return Truncated
	}
	multicast := [6]byte(frame[:6]) == packet.MACControlAddr
	switch binary.BigEndian.Uint16(b) {
	case packet.MACControlPFC:
		n.Kind = PFC
		if len(b) < packet.PFCLen {
			return Truncated
		}
		if !multicast {
			return WrongDestination
		}
		n.PFC, n.End = packet.DecodePFC(b), n.Start+packet.PFCLen
	case packet.MACControlPause:
		n.Kind = Pause
		if len(b) < packet.PauseLen {
			return Truncated
		}
		if !multicast && frame[0]&1 != 0 {
			return WrongDestination
		}
		n.Pause, n.End = packet.DecodePause(b), n.Start+packet.PauseLen
	default:
		return UnknownMACControl
	}
	return Accepted
}
