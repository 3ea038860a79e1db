package cnpdec

import (
	"encoding/binary"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// Notification is a decoded notification. Slices in it are views of the frame.
type Notification struct {
	Kind       packet.Notification // determines which fields are set
	Family     uint8               // 4 or 6; 0 of LinkPause and LinkPFC
	Src, Dst   packet.Addr         // of the IP header
	Asks       Request             // what it asks for; all kinds but LinkPause and LinkPFC
	Start, End int                 // the notification's octets in the frame: after the IP header, or after the Ethernet header

	UDP  packet.UDPHeader // all kinds but LongHaulCNPICMPv6, LinkPause and LinkPFC
	BTH  packet.BTH       // StandardCNP, FastCNP, LongHaulCNP, PPFC
	ICRC ICRCCoverage     // the same: what its ICRC covers

	Body     []byte               // StandardCNP, FastCNP: what is between BTH and ICRC, reserved
	Fast     packet.FastCNPHeader // FastCNP
	LongHaul LongHaul             // LongHaulCNP, LongHaulCNPICMPv6
	PPFC     packet.PPFCFields    // PPFC
	Proxy    Proxy                // ProxyNotification
	Pause    packet.Pause         // LinkPause
	PFC      packet.PFC           // LinkPFC
}

// FromReceiver reports whether the data's receiver sent a Fast CNP, rather than a device on the path (draft-xiao-fast-cnp 4).
func (n *Notification) FromReceiver() bool {
	return n.Kind == packet.FastCNP && n.Src == n.Fast.Option.Dst
}

// Decode reads the notification in frame, and fills n. p is the result of packet.Parse for frame. If the packet isn't accepted, only Kind,
// as far as known, and the addresses of n are valid.
//
// The order of the checks: the packet is complete; its addresses are valid; its source is trusted; its IP header, with IPv6 options, is
// valid; its checksums or ICRC are right; its fields are valid; its QP is known.
func (r *Receiver) Decode(frame []byte, p *packet.Parsed, n *Notification) Reason {
	*n = Notification{Kind: packet.NotANotification, Family: p.Family, Src: p.Src, Dst: p.Dst, Start: int(p.L4), End: int(p.IPEnd)}
	if p.Kind == packet.MACControl {
		return decodeMACControl(frame, p, n)
	}
	n.Kind = r.kind(packet.Classify(frame, p, &r.Code))
	if n.Kind == packet.NotANotification {
		return NotANotification
	}
	if len(frame) < n.End {
		return Truncated
	}
	if !n.addressesOK() {
		return WrongAddress
	}
	if n.Kind != packet.StandardCNP && r.Trusted != nil && !r.Trusted(n.Kind, p.Src) {
		return UntrustedSource
	}
	if p.Family == 4 && !packet.IPv4ChecksumOK(frame, p) {
		return WrongChecksum
	}
	if reason := r.checkOptions(frame, p); reason != Accepted {
		return reason
	}
	n.Asks.Sender = n.Dst
	switch n.Kind { // not a table of functions, through which n would escape to the heap
	case packet.FastCNP:
		return r.readFastCNP(frame, p, n)
	case packet.LongHaulCNP:
		return r.readLongHaulCNP(frame, p, n)
	case packet.LongHaulCNPICMPv6:
		return r.readLongHaulICMPv6(frame[n.Start:n.End], n)
	case packet.PPFC:
		return r.readPPFC(frame, p, n)
	case packet.ProxyNotification:
		return r.readProxy(frame[n.Start:n.End], n)
	}
	return r.readStandardCNP(frame, p, n)
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

// kind is the kind for this receiver of what packet.Classify has found.
func (r *Receiver) kind(c packet.Notification) packet.Notification {
	switch {
	case c != packet.ExtendedCNP:
		return c
	case r.Extension.Extended():
		return r.Extension
	}
	return packet.StandardCNP
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

// addressesOK reports whether source and destination of an IP header can be hosts' addresses: a notification is sent by unicast (draft-tian
// 5.5 step 5), and no access list should have to check an invalid address.
func (n *Notification) addressesOK() bool {
	return unicast(n.Family, n.Src) && unicast(n.Family, n.Dst)
}

// unicast reports whether an address of the IP version can be a host's.
func unicast(family uint8, a packet.Addr) bool {
	return a.Unicast() && !impostor(family, a)
}

// impostor reports whether an address of the IP version is an IPv4-mapped one in IPv6. No packet may have it on the wire (RFC 4038 4.2),
// and Addr, access lists and flows would confuse it with the IPv4 host's.
func impostor(family uint8, a packet.Addr) bool { return family == 6 && a.Is4() }

// decodeMACControl reads a PAUSE (IEEE 802.3 31B) or a PFC frame (IEEE 802.1Qbb). It doesn't check the source, which is the link's other
// end. It ignores padding after the fields.
func decodeMACControl(frame []byte, p *packet.Parsed, n *Notification) Reason {
	n.Start = packet.EthernetLen + packet.VLANTagLen*int(p.Tags)
	b := frame[min(n.Start, len(frame)):]
	if len(b) < 2 {
		return Truncated
	}
	multicast := [6]byte(frame[:6]) == packet.MACControlAddr
	switch binary.BigEndian.Uint16(b) {
	case packet.MACControlPFC:
		n.Kind = packet.LinkPFC
		if len(b) < packet.PFCLen {
			return Truncated
		}
		if !multicast {
			return WrongDestination
		}
		n.PFC, n.End = packet.DecodePFC(b), n.Start+packet.PFCLen
	case packet.MACControlPause:
		n.Kind = packet.LinkPause
		if len(b) < packet.PauseLen {
			return Truncated
		}
		if !multicast && frame[0]&1 != 0 {
			return WrongDestination
		}
		n.Pause, n.End = packet.DecodePause(b), n.Start+packet.PauseLen
	default:
		return UnknownMACControl
	}
	return Accepted
}
