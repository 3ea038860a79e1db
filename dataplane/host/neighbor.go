package host

import "github.com/cnpgate/cnpgate/internal/packet"

// arp answers an ARP request for one of the gateway's addresses (RFC 826), also a probe, whose sender is looking for an address that nobody
// uses (RFC 5227 2.1.1). Any other ARP frame is forwarded.
func (s *Stage) arp(f *Frame, r *Result) Verdict {
	l3 := packet.EthernetLen + packet.VLANTagLen*int(f.Parsed.Tags)
	asked, ok := packet.DecodeARP(f.Data[min(l3, len(f.Data)):])
	switch {
	case !ok:
		return Forward
	case f.Proxy.Owns(asked.SenderIP):
		r.Event = AddressConflict
		return Forward
	case asked.Operation != packet.ARPRequest || !f.Proxy.Owns(asked.TargetIP) || !asked.SenderMAC.Unicast():
		return Forward
	}
	if out := s.answer(f, r, ARP, l3+packet.ARPLen); out != nil {
		packet.PutEthernet(out, f.Data, f.Parsed, f.Address, asked.SenderMAC)
		reply := packet.ARP{Operation: packet.ARPReply, SenderMAC: f.Address, SenderIP: asked.TargetIP, TargetMAC: asked.SenderMAC, TargetIP: asked.SenderIP}
		reply.Put(out[l3:])
	}
	return ARP
}

// solicited answers a Neighbor Solicitation for one of the gateway's addresses (RFC 4861 7.2.4). Any other message of Neighbor Discovery is
// forwarded. An IPv4-mapped target is no address on a link, and would be taken for the gateway's IPv4 address.
func (s *Stage) solicited(f *Frame, r *Result) bool {
	p := f.Parsed
	if target, ok := packet.AdvertisedTarget(f.Data, p); ok && !target.Is4() && f.Proxy.Owns(target) {
		r.Event = AddressConflict
		return false
	}
	asked, ok := packet.DecodeNeighborSolicitation(f.Data, p)
	if !ok || asked.Target.Is4() || !f.Proxy.Owns(asked.Target) || p.Dst != asked.Target && p.Dst != packet.SolicitedNode(asked.Target) || !asked.Link.Unicast() {
		return false
	}
	if !asked.Probing && !p.Src.Unicast() {
		return false
	}
	l3 := int(p.L3)
	if out := s.answer(f, r, NeighborSolicitation, l3+packet.IPv6Len+packet.NeighborAdvertisementLen); out != nil {
		to, link := p.Src, asked.Link
		if asked.Probing { // the sender has no address yet
			to, link = packet.AllNodes, packet.AllNodesMAC
		}
		packet.PutEthernet(out, f.Data, p, f.Address, link)
		packet.PutIPv6(out[l3:], packet.NeighborAdvertisementLen, f.Gateway.DSCP<<2, packet.ProtoICMPv6, packet.NeighborHopLimit, &asked.Target, &to)
		claim := packet.NeighborAdvertisement{Solicited: !asked.Probing, Target: asked.Target, Link: f.Address}
		claim.Put(out[l3+packet.IPv6Len:], asked.Target, to)
	}
	return true
}

// answerTTL is the TTL or hop limit of echo replies, as of the gateway's notifications.
const answerTTL = 64

// echo answers a valid echo request. A source that is no host's gets no answer.
func (s *Stage) echo(f *Frame, r *Result) bool {
	p := f.Parsed
	request := packet.EchoRequest(f.Data, p)
	if request == nil || !p.Src.Unicast() || p.Src == p.Dst || packet.SourceRouted(f.Data, p) {
		return false
	}
	if out := s.answer(f, r, Echo, int(p.L3)+packet.IPHeaderLen(p.Dst)+len(request)); out != nil {
		packet.PutEthernet(out, f.Data, p, f.Address, packet.SourceMAC(f.Data))
		packet.PutEchoReply(out, int(p.L3), request, p, answerTTL)
	}
	return true
}
