package cnpdec

import (
	"encoding/binary"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// Decode reads the notification in frame, and fills n. p is the result of packet.Parse for frame. If the packet isn't accepted, only Kind,
// as far as known, and the addresses of n are valid.
//
// The order of the checks: the packet is complete; its addresses are valid; its source is trusted; its IP header, with IPv6 options, is
// valid; its checksums or ICRC are right; its fields are valid; its QP is known.
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

// checkOptions refuses a packet with unknown IPv6 options that require a host to discard it (RFC 8200 4.2): a Fast CNP with another option
// type is no standard CNP, since its DestQP is the receiver's.
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

// kind is the Kind of a class of packet for this receiver.
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
