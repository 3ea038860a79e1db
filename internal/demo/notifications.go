package main

import (
	"net"
	"slices"

	"github.com/cnpgate/cnpgate/cnpdec"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// notification is one frame that the gateway sent to the hosts' side.
type notification struct {
	captured
	parsed packet.Parsed
	said   cnpdec.Notification
	reason cnpdec.Reason // Accepted, or why the host that it is addressed to refuses it
	flow   *flow         // the one it is about; nil when it fits none
}

func (n *notification) kind() string { return n.said.Kind.String() }

// assign reads the notification as the host that it is addressed to does, and finds the flow it is about.
func (o *observed) assign(hosts []host, n *notification) {
	to := host{name: "nobody that sent"}
	for _, h := range hosts {
		if packet.AddrFrom(h.addr) == n.parsed.Dst {
			to = h
		}
	}
	r := to.receiver()
	if n.reason = r.Decode(n.data, &n.parsed, &n.said); n.reason != cnpdec.Accepted {
		return
	}
	for _, f := range o.flows {
		if f.src == to.addr && n.about(f) {
			n.flow = f
			f.told[n.kind()]++
			return
		}
	}
}

// about tells whether the notification names the flow: a Fast CNP by the receiver and its QP, a Long-haul CNP by the sender's.
func (n *notification) about(f *flow) bool {
	switch n.said.Kind {
	case cnpdec.FastCNP:
		return n.said.Fast.Option.Dst == packet.AddrFrom(f.dst) && n.said.BTH.DestQP == f.destQP
	case cnpdec.LongHaulCNP, cnpdec.LongHaulCNPICMPv6:
		return n.said.LongHaul.SourceQP == f.sourceQP
	}
	return false
}

// receiver is what the host knows: the gateway it trusts, its own QPs and what they are connected to.
func (h *host) receiver() *cnpdec.Receiver {
	return &cnpdec.Receiver{
		Code:      packet.DefaultCodePoints,
		Extension: cnpdec.LongHaulExtension,
		Trusted: func(_ cnpdec.Kind, src packet.Addr) bool {
			return src == packet.AddrFrom(gateway4) || src == packet.AddrFrom(gateway6)
		},
		KnownQP: func(qp uint32) bool {
			return slices.ContainsFunc(h.pairs, func(p qpPair) bool { return p.qp == qp })
		},
		KnownFlow: func(dst packet.Addr, destQP uint32) bool {
			return slices.ContainsFunc(h.pairs, func(p qpPair) bool { return packet.AddrFrom(p.receiver) == dst && p.peerQP == destQP })
		},
	}
}

// addressed tells whether the notification's MAC address is that of the flow's sender too. The captured hosts' MAC addresses end in
// the same octet as their IP addresses.
func (n *notification) addressed() bool {
	if n.flow == nil {
		return false
	}
	dst := n.flow.src.AsSlice()
	return net.HardwareAddr(n.data[:6]).String() == macOf(dst[len(dst)-1]).String()
}

func macOf(last byte) net.HardwareAddr { return net.HardwareAddr{2, 0, 0, 0x18, 0, last} }
