package cnpdec

import (
	"encoding/binary"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// Decode reads the notification that frame is, and fills n. p is what packet.Parse found in frame. Of a packet that isn't
// accepted n holds nothing to rely on but Kind, as far as it can be told, and the addresses.
//
// The order of the checks: the packet is whole; its addresses can be; its source is trusted; its IP header, with IPv6 options, is in
// order; its checksums or ICRC are right; its fields are in order; the QP it names is known.
func (r *Receiver) Decode(frame []byte, p *packet.Parsed, n *Notification) Reason {
	*n = Notification{Family: p.Family, Src: p.Src, Dst: p.Dst, Start: int(p.L4), End: int(p.IPEnd)}
	if p.Kind == packet.MACControl {
		return decodeMACControl(frame, p, n)
	}
	n.Kind = r.kind(packet.Classify(frame, p, &r.Code))
	if n.Kind == None {
		return NotANotification
	}
	if len(frame) < n.End {
		return Truncated
	}
	if !n.addressesOK() {
		return WrongAddress
	}
	if n.Kind != StandardCNP && r.Trusted != nil && !r.Trusted(n.Kind, p.Src) {
		return UntrustedSource
	}
	if p.Family == 4 && !packet.IPv4ChecksumOK(frame, p) {
		return WrongChecksum
	}
	if reason := r.checkOptions(frame, p); reason != Accepted {
		return reason
	}
	switch n.Kind {
	case LongHaulCNPICMPv6:
		return r.decodeLongHaulICMPv6(frame[n.Start:n.End], n)
	case ProxyNotification:
		return r.decodeProxy(frame[n.Start:n.End], n)
	}
	return r.decodeCNP(frame, p, n)
}

// checkOptions refuses a packet with IPv6 options by which a host that doesn't know them must discard it (RFC 8200 4.2): a Fast CNP
// whose option type is another's is no standard CNP, for its DestQP is the receiver's.
func (r *Receiver) checkOptions(frame []byte, p *packet.Parsed) Reason {
	if p.Family != 6 || int(p.L4) == int(p.L3)+packet.IPv6Len {
		return Accepted
	}
	switch whole, skippable := packet.OptionsOK(frame, p, &r.Code); {
	case !whole:
		return OptionMalformed
	case !skippable:
		return OptionUnknown
	}
	return Accepted
}

// kind is what a class of packet is to this receiver.
func (r *Receiver) kind(c packet.Notification) Kind {
	switch c {
	case packet.StandardCNP:
		return StandardCNP
	case packet.FastCNP:
		return FastCNP
	case packet.ExtendedCNP:
		switch r.Extension {
		case LongHaulExtension:
			return LongHaulCNP
		case PPFCExtension:
			return PPFC
		}
		return StandardCNP
	case packet.LongHaulICMPv6:
		return LongHaulCNPICMPv6
	case packet.ProxyNotification:
		return ProxyNotification
	}
	return None
}

// decodeUDP reads the UDP header at the front of datagram, which is all that follows the IP header (RFC 768). A checksum that was
// sent must be right; the caller judges one that wasn't.
func decodeUDP(datagram []byte, n *Notification) Reason {
	if len(datagram) < packet.UDPLen {
		return WrongLength
	}
	n.UDP = packet.DecodeUDP(datagram)
	if int(n.UDP.Length) != len(datagram) {
		return WrongLength
	}
	if sum := binary.BigEndian.Uint16(datagram[6:]); sum != 0 && sum != packet.UDPChecksum(n.Src, n.Dst, datagram) {
		return WrongChecksum
	}
	return Accepted
}
