package cnpgen

import "github.com/cnpgate/cnpgate/internal/packet"

// Request is what a notification of any kind asks for. Each kind carries a part of it.
type Request struct {
	LongHaul         // the action, its reason, and the flow's source QP
	Target   *Target // the sender, and the flow
	Port     uint16  // the congested one
	RTT      int64   // RTT_est, ns; 0: not known

	To     packet.Addr    // the sender's proxy, for a notification to it
	Frame  []byte         // the data packet; nil if the request is not about one
	Packet *packet.Parsed // the result of packet.Parse for Frame

	Trace Carried // Build sets it: whether a Fast CNP has the data packet's IOAM trace
}

// Build builds a notification of a kind, and returns the frame's length, 0 if it can't be built.
func Build(out []byte, kind packet.Notification, g *Gateway, r *Request) int {
	r.Trace = CarriesNoTrace
	return builders[kind](out, g, r)
}

// builders has the builder of each kind.
var builders = [packet.SentNotifications]func(out []byte, g *Gateway, r *Request) int{
	packet.FastCNP: func(out []byte, g *Gateway, r *Request) (size int) {
		if r.Packet == nil {
			return fastCNPWithoutTrace(out, r.Target, g)
		}
		size, r.Trace = FastCNP(out, r.Target, g, packet.FindIOAMTrace(r.Frame, r.Packet))
		return size
	},
	packet.LongHaulCNP: func(out []byte, g *Gateway, r *Request) int {
		return LongHaulCNP(out, r.Target, g, &r.LongHaul)
	},
	packet.LongHaulCNPICMPv6: func(out []byte, g *Gateway, r *Request) int {
		return LongHaulCNPICMPv6(out, r.Target, g, &r.LongHaul)
	},
	packet.PPFC: func(out []byte, g *Gateway, r *Request) int {
		return PPFCNotification(out, r.Target, g, &PPFC{Resume: r.Action == Resume, Port: r.Port, Duration: r.pause()})
	},
	packet.StandardCNP: func(out []byte, g *Gateway, r *Request) int {
		return StandardCNP(out, r.Target, g, r.SourceQP)
	},
	packet.ProxyNotification: func(out []byte, g *Gateway, r *Request) int {
		if r.Packet == nil {
			return 0 // the proxy needs the packet, and there is no Resume for it
		}
		return ProxyNotification(out, r.Target, g, r.Frame, r.Packet, r.To, packet.ProxyLevel(r.Level))
	},
}

// pause is the pause in microseconds for a sender that can only be paused: the requested duration, or for Rate Reduce by some percent that
// part of RTT_est.
func (r *Request) pause() uint16 {
	if r.Action == Pause {
		return r.Parameter
	}
	return uint16(min(max(max(r.RTT, 0)/1000*int64(r.Parameter)/100, 1), 0xffff))
}
