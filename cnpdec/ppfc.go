package cnpdec

import "github.com/cnpgate/cnpgate/internal/packet"

// decodePPFC reads what follows the BTH of a PPFC notification (draft-xz-ppfc 3). DestQP and the congested destination identify the flow.
func (r *Receiver) decodePPFC(n *Notification) Reason {
	n.PPFC = packet.DecodePPFC(n.Body, n.Family)
	n.Body = nil
	if n.PPFC.PT > packet.PTResume {
		return UnknownPauseType
	}
	if impostor(n.Family, n.PPFC.Dst) {
		return WrongAddress
	}
	if r.KnownFlow != nil && !r.KnownFlow(n.PPFC.Dst, n.BTH.DestQP) {
		return UnknownFlow
	}
	return Accepted
}
