package synth

import "github.com/cnpgate/cnpgate/internal/packet"

// portBase is the lowest UDP source port that RoCEv2 senders use.
const portBase = 0xc000

// symmetricPort is Linux's source port of a connected QP without a flow label: the same from both sides.
func symmetricPort(localQP, remoteQP uint32) uint16 {
	v := uint64(localQP) * uint64(remoteQP)
	v ^= v >> 20
	v ^= v >> 40
	return labelPort(uint32(v & 0xfffff))
}

// labelPort is Linux's source port for a flow label of 20 bits.
func labelPort(label uint32) uint16 { return uint16(label&0x3fff^label>>14) | portBase }

// softUDPort is Soft-RoCE's source port of a UD QP, QP 1 included.
func softUDPort(qp uint32) uint16 { return portBase + uint16(qp*0x61c88647>>18) }

// cmFlowLabel is the flow label that Linux's RDMA-CM puts into a REQ over IPv4: of the TCP-like port numbers.
func cmFlowLabel(source, service uint16) uint32 {
	return (uint32(source)*31 + uint32(service)) & 0xfffff
}

// choosePorts gives a connection its source ports.
func (t *Traffic) choosePorts(c *Conn, l *live) {
	l.cm.source, l.cm.service = uint16(32768+l.rng.below(28232)), cmService
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
			c.Port[end] = softUDPort(c.QP[end])
		case t.c.Ports == PortsFlowLabel && (c.ByCM || !t.c.CM):
			c.Port[end] = labelPort(cmFlowLabel(l.cm.source, l.cm.service))
		case t.c.Ports == PortsBorrowed && len(t.conns) > 0:
			other := &t.conns[len(t.conns)-1]
			c.Port[end] = symmetricPort(c.QP[Fabric], other.QP[WAN])
		default:
			c.Port[end] = symmetricPort(c.QP[Fabric], c.QP[WAN])
		}
	}
}

// port is a packet's source port.
func (t *Traffic) port(f *flight) uint16 {
	switch {
	case f.kind == mad:
		return softUDPort(1)
	case f.kind == cnp && !t.c.CNPPort:
		return 0 // as ConnectX has it
	case t.c.Ports == PortsSpray:
		return portBase | uint16(mix(uint64(f.conn)<<34|uint64(f.from)<<33|uint64(f.number)|uint64(f.kind/ack)<<32)>>50)
	}
	return t.conns[f.conn].Port[f.from]
}

// templates are what all of a connection's packets have in common, by sending end.
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
		p.L4 = p.L3 + packet.IPv4Len
		if !p.Src.Is4() {
			p.Family, p.EtherType = 6, packet.EtherTypeIPv6
			p.L4 = p.L3 + packet.IPv6Len
		}
		p.BTH = p.L4 + packet.UDPLen
		p.Ext = p.BTH + packet.BTHLen
	}
	return both
}
