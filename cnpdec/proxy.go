package cnpdec

import "github.com/cnpgate/cnpgate/internal/packet"

// Proxy is the content of a notification to a proxy (draft-xiao-proxy 4).
type Proxy struct {
	packet.Proxied
	Invoking []byte // the invoking packet from its IP header, truncated at the notification's end
	// Inner is the result of packet.ParseIP for Invoking. If it is of Kind RoCEv2, its DestQP identifies the flow.
	Inner packet.Parsed
}

// readProxy reads the UDP datagram of a notification to a proxy. The invoking packet must match the five-tuple: the proxy takes the QP
// from the one and the sender from the other.
func (r *Receiver) readProxy(datagram []byte, n *Notification) Reason {
	if reason := decodeUDP(datagram, n); reason != Accepted {
		return reason
	}
	if n.Family == 6 && n.UDP.Checksum == 0 { // RFC 8200 8.1
		return WrongChecksum
	}
	b := datagram[packet.UDPLen:]
	x := &n.Proxy
	var ok bool
	if x.Proxied, ok = packet.DecodeProxied(b); !ok {
		return FiveTupleMalformed
	}
	if !unicast(x.Version, x.Src) || impostor(x.Version, x.Dst) {
		return WrongAddress
	}
	x.Invoking = b[packet.ProxiedLen(x.Version):]
	packet.ParseIP(x.Invoking, &x.Inner)
	if !x.matches() {
		return FiveTupleMismatch
	}
	n.Asks.Sender, n.Asks.Receiver = x.Src, x.Dst
	if x.Inner.Kind == packet.RoCEv2 {
		n.Asks.QP = x.Inner.DestQP
	}
	return Accepted
}

// matches reports whether the invoking packet has the five-tuple. It doesn't compare ports that are truncated, or that the protocol doesn't
// have.
func (x *Proxy) matches() bool {
	in := &x.Inner
	if in.Family != x.Version || in.Src != x.Src || in.Dst != x.Dst || in.Proto != x.Proto {
		return false
	}
	return in.SrcPort == 0 && in.DstPort == 0 || in.SrcPort == x.SrcPort && in.DstPort == x.DstPort
}
