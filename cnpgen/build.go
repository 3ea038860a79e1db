package cnpgen

import "github.com/cnpgate/cnpgate/internal/packet"

// Request is what a notification of any kind asks for. Each kind carries a part of it.
type Request struct {
	LongHaul             // the action, its reason, and the flow's source QP
	Extension *Extension // of a Long-haul CNP; nil: none
	Target    *Target    // the sender, and the flow
	Port      uint16     // the congested one
	RTT       int64      // RTT_est, ns; 0: not known

	To     packet.Addr    // the sender's proxy, for a notification to it
	Frame  []byte         // the data packet; nil if the request is not about one
	Packet *packet.Parsed // the result of packet.Parse for Frame

	Trace Carried // Build sets it: whether a Fast CNP has the data packet's IOAM trace
}

// Build builds a notification of a kind, and returns the frame's length, 0 if it can't be built. It is a switch, as a table of functions costs
// a call more for each notification.
func Build(out []byte, kind packet.Notification, g *Gateway, r *Request) (size int) {
	r.Trace = CarriesNoTrace
	switch kind {
	case packet.FastCNP:
		if r.Packet == nil {
			return fastCNPWithoutTrace(out, r.Target, g)
		}
		size, r.Trace = FastCNP(out, r.Target, g, packet.FindIOAMTrace(r.Frame, r.Packet))
		return size
	case packet.LongHaulCNP:
		return LongHaulCNP(out, r.Target, g, &r.LongHaul, r.Extension)
	case packet.LongHaulCNPICMPv6:
		return LongHaulCNPICMPv6(out, r.Target, g, &r.LongHaul, r.Extension)
	case packet.PPFC:
		return PPFCNotification(out, r.Target, g, &PPFC{Resume: r.Action == Resume, Port: r.Port, Duration: r.pause()})
	case packet.StandardCNP:
		return StandardCNP(out, r.Target, g, r.SourceQP)
	case packet.ProxyNotification:
		if r.Packet != nil { // the proxy needs the packet, and there is no Resume for it
			return ProxyNotification(out, r.Target, g, r.Frame, r.Packet, r.To, packet.ProxyLevel(r.Level))
		}
	}
	return 0
}

// pause is the pause in microseconds for a sender that can only be paused: the requested duration, or for Rate Reduce by some percent that
// part of RTT_est.
func (r *Request) pause() uint16 {
	if r.Action == Pause {
		return r.Parameter
	}
	return uint16(min(max(max(r.RTT, 0)/1000*int64(r.Parameter)/100, 1), 0xffff))
}
