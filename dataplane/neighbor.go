package dataplane

import (
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// takesARP answers an ARP request for one of the gateway's addresses (RFC 826), also a probe, whose sender is looking for an address that
// nobody uses (RFC 5227 2.1.1), and consumes it. Any other ARP frame is forwarded. One that claims a gateway's address is counted.
func (w *Worker) takesARP(port int, f burst.Frame, data []byte, p *packet.Parsed, node *ProxyNode) bool {
	l3 := packet.EthernetLen + packet.VLANTagLen*int(p.Tags)
	asked, ok := packet.DecodeARP(data[min(l3, len(data)):])
	if !ok {
		return false
	}
	if node.owns(asked.SenderIP) {
		w.counters.add(port, AddressConflicts, 1)
		return false
	}
	if asked.Operation != packet.ARPRequest || !node.owns(asked.TargetIP) || !asked.SenderMAC.Unicast() {
		return false
	}
	w.drop(port, ConsumedARP, f)
	if out := w.answerPlace(port, l3+packet.ARPLen, neighborAnswer, data, p); out != nil {
		packet.PutEthernet(out, data, p, w.address(port), asked.SenderMAC)
		reply := packet.ARP{Operation: packet.ARPReply, SenderMAC: w.address(port), SenderIP: asked.TargetIP, TargetMAC: asked.SenderMAC, TargetIP: asked.SenderIP}
		reply.Put(out[l3:])
		w.originate(port, len(out), tagARP)
	}
	return true
}

// takesNeighbor answers a Neighbor Solicitation for one of the gateway's addresses (RFC 4861 7.2.4) and consumes it. Any other message of
// Neighbor Discovery is forwarded. An advertisement that claims a gateway's address is counted. An IPv4-mapped target is no address on a
// link, and would be taken for the gateway's IPv4 address.
func (w *Worker) takesNeighbor(port int, f burst.Frame, data []byte, p *packet.Parsed, node *ProxyNode) bool {
	if target, ok := packet.AdvertisedTarget(data, p); ok && !target.Is4() && node.owns(target) {
		w.counters.add(port, AddressConflicts, 1)
		return false
	}
	asked, ok := packet.DecodeNeighborSolicitation(data, p)
	if !ok || asked.Target.Is4() || !node.owns(asked.Target) || p.Dst != asked.Target && p.Dst != packet.SolicitedNode(asked.Target) || !asked.Link.Unicast() {
		return false
	}
	if !asked.Probing && !p.Src.Unicast() {
		return false
	}
	w.drop(port, ConsumedND, f)
	l3 := int(p.L3)
	size := l3 + packet.IPv6Len + packet.NeighborAdvertisementLen
	if out := w.answerPlace(port, size, neighborAnswer, data, p); out != nil {
		to, link := p.Src, asked.Link
		if asked.Probing { // the sender has no address yet
			to, link = packet.AllNodes, packet.AllNodesMAC
		}
		packet.PutEthernet(out, data, p, w.address(port), link)
		packet.PutIPv6(out[l3:], packet.NeighborAdvertisementLen, w.policy.Build.DSCP<<2, packet.ProtoICMPv6, packet.NeighborHopLimit, &asked.Target, &to)
		claim := packet.NeighborAdvertisement{Solicited: !asked.Probing, Target: asked.Target, Link: w.address(port)}
		claim.Put(out[l3+packet.IPv6Len:], asked.Target, to)
		w.originate(port, len(out), tagND)
	}
	return true
}
