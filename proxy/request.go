package proxy

import (
	"github.com/cnpgate/cnpgate/cnpdec"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// Request is what a congested node asks of a proxy: to notify the sender of a flow (draft-xiao-proxy 4). Numbers are in host byte order.
type Request struct {
	Sender, Receiver packet.Addr // of the data
	DestQP           uint32      // of the data, 24 bits: the receiver's
	SourceQP         uint32      // of UD data, 24 bits, else 0: as in a flow's key
	Level            uint8       // Congestion Level: 0 lowest to 7 highest
}

// managementQPs are QP 0 (SMI) and QP 1 (GSI), which have no rate to reduce (IBTA 3.9.3).
const managementQPs = 2

// Read reads a notification to a proxy and finds the flow in its invoking packet. p is the result of packet.Parse for frame, a UDP datagram to
// the proxy port of code. Read makes all checks that need no state; the caller has checked the source, and knows the flows.
func Read(frame []byte, p *packet.Parsed, code *packet.CodePoints) (Request, Refusal) {
	r := cnpdec.Receiver{Code: *code}
	var n cnpdec.Notification
	if reason := r.Decode(frame, p, &n); reason != cnpdec.Accepted {
		return Request{}, refusals[reason]
	}
	in := &n.Proxy.Inner
	switch {
	case in.Kind != packet.RoCEv2 && in.Proto == packet.ProtoUDP && (in.DstPort == packet.RoCEv2Port || in.DstPort == 0):
		return Request{}, NoQP
	case in.Kind != packet.RoCEv2:
		return Request{}, NotRoCEv2
	case !in.Opcode.HasPayload():
		return Request{}, NotData
	case in.DestQP < managementQPs:
		return Request{}, ManagementQP
	}
	return Request{Sender: in.Src, Receiver: in.Dst, DestQP: in.DestQP, SourceQP: in.SourceQP, Level: n.Proxy.Level}, Accepted
}
