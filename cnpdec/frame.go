package cnpdec

import "github.com/cnpgate/cnpgate/internal/packet"

// Refused is the error of a packet that isn't accepted.
type Refused struct {
	Kind     Kind // as far as known
	Src, Dst packet.Addr
	Reason   Reason
}

// Error describes the packet and what was wrong with it.
func (e *Refused) Error() string {
	what := "packet"
	if e.Kind != None {
		what = e.Kind.String()
	}
	if e.Src != (packet.Addr{}) || e.Dst != (packet.Addr{}) {
		what += " from " + e.Src.Netip().String() + " to " + e.Dst.Netip().String()
	}
	return what + " refused (" + e.Reason.String() + "): " + e.Reason.Explain()
}

// DecodeFrame parses and decodes an Ethernet frame without FCS. It is for callers outside the hot path: the error is a *Refused.
func (r *Receiver) DecodeFrame(frame []byte) (Notification, error) {
	var p packet.Parsed
	var n Notification
	packet.Parse(frame, uint32(len(frame)), &p)
	if reason := r.Decode(frame, &p, &n); reason != Accepted {
		return n, &Refused{n.Kind, n.Src, n.Dst, reason}
	}
	return n, nil
}
