package synth

import (
	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/internal/cm"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// portBase is the lowest UDP source port of RoCEv2 senders.
const portBase = 0xc000

// choosePorts sets a connection's source ports.
func (t *Traffic) choosePorts(c *Conn, l *live) {
	l.cm.source = uint16(32768 + l.rng.below(28232))
	random := [2]uint16{portBase | uint16(l.rng.below(1<<14)), portBase | uint16(l.rng.below(1<<14))}
	for end := range c.Port {
		switch {
		case t.c.Ports == PortsRandom || t.c.Ports == PortsSpray:
			c.Port[end] = random[0]
		case t.c.Ports == PortsAsymmetric:
			c.Port[end] = random[end]
		case t.c.Ports == PortsEqual:
			c.Port[end] = portBase
		case c.Transport == UD:
			c.Port[end] = endpoint.SourcePort(endpoint.UD, c.QP[end], 0)
		case t.c.Ports == PortsFlowLabel && (c.ByCM || !t.c.CM):
			c.Port[end] = packet.LabelPort(cm.FlowLabel(l.cm.source, cmService))
		case t.c.Ports == PortsBorrowed && len(t.conns) > 0:
			other := &t.conns[len(t.conns)-1]
			c.Port[end] = endpoint.SourcePort(endpoint.RC, c.QP[Fabric], other.QP[WAN])
		default:
			c.Port[end] = endpoint.SourcePort(endpoint.RC, c.QP[Fabric], c.QP[WAN])
		}
	}
}

// port is a packet's source port.
func (t *Traffic) port(f *flight) uint16 {
	switch {
	case f.kind == mad:
		return endpoint.SourcePort(endpoint.UD, packet.GSIQP, packet.GSIQP)
	case f.kind == cnp && !t.c.CNPPort:
		return 0 // as ConnectX sends it
	case t.c.Ports == PortsSpray:
		return portBase | uint16(mix(uint64(f.conn)<<34|uint64(f.from)<<33|uint64(f.number)|uint64(min(f.kind, ack))<<32)>>50)
	}
	return t.conns[f.conn].Port[f.from]
}

// templates are the common fields of all of a connection's packets, by sending end.
func (t *Traffic) templates(c *Conn) (both [2]packet.Parsed) {
	for end := range both {
		p := &both[end]
		*p = packet.Parsed{
			Kind: packet.RoCEv2, Family: 4, Proto: packet.ProtoUDP, EtherType: packet.EtherTypeIPv4,
			L3: packet.EthernetLen, DstPort: packet.RoCEv2Port,
			Src: c.Host[end], Dst: c.Host[1-end], DestQP: c.QP[1-end],
		}
		if c.VID != 0 {
			p.Tags, p.OuterTag = 1, packet.MakeTag(c.TPID, c.VID)
			p.L3 += packet.VLANTagLen
		}
		p.Outer, p.L4 = p.L3, p.L3+packet.IPv4Len
		if !p.Src.Is4() {
			p.Family, p.EtherType = 6, packet.EtherTypeIPv6
			p.L4 = p.L3 + packet.IPv6Len
		}
		p.BTH = p.L4 + packet.UDPLen
	}
	return both
}
