package main

import (
	"encoding/binary"
	"net"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// assign names the notification's kind as the configuration does, and finds the flow it is about by what it says: a Fast CNP names
// the receiver and its QP, a Long-haul CNP the sender's QP.
func (o *observed) assign(n *notification) {
	p := &n.parsed
	var about func(*flow) bool
	switch packet.Classify(n.data, p, &packet.DefaultCodePoints) {
	case packet.FastCNP:
		n.kind = "fast-cnp"
		receiver := packet.AddrFrom16(n.data[p.DstOpts+4:]).Netip()
		about = func(f *flow) bool { return f.destQP == p.DestQP && f.dst == receiver }
	case packet.ExtendedCNP: // the demo grants nobody PPFC
		n.kind = "long-haul-cnp"
		about = func(f *flow) bool { return f.sourceQP == p.DestQP && f.sourceQP == longHaulQP(n.data[p.Ext:]) }
	case packet.LongHaulICMPv6:
		n.kind = "long-haul-cnp-icmpv6"
		about = func(f *flow) bool { return f.sourceQP == longHaulQP(n.data[int(p.L4)+packet.ICMPv6Len:]) }
	case packet.StandardCNP:
		n.kind = "standard-cnp"
		return
	default:
		return
	}
	for _, f := range o.flows {
		if f.src == p.Dst.Netip() && about(f) {
			n.flow = f
			f.told[n.kind]++
			return
		}
	}
}

// longHaulQP reads the Source QP Number of a Long-haul CNP's fields (draft-tian 6.1).
func longHaulQP(fields []byte) uint32 { return binary.BigEndian.Uint32(fields[4:]) }

// sound tells whether the notification's checksum, ICMPv6 or ICRC and IPv4, is right.
func (n *notification) sound() bool {
	p := &n.parsed
	if p.Proto == packet.ProtoICMPv6 {
		m := n.data[p.L4:p.IPEnd]
		return binary.BigEndian.Uint16(m[2:]) == packet.ICMPv6Checksum(p.Src, p.Dst, m)
	}
	if p.Family == 4 && checksum(n.data[p.L3:p.L4]) != 0 {
		return false
	}
	return packet.VerifyICRC(n.data, p)
}

// addressed tells whether the notification's MAC and IP address are those of the flow's sender. The captured hosts' MAC addresses
// end in the same octet as their IP addresses.
func (n *notification) addressed() bool {
	if n.flow == nil {
		return false
	}
	dst := n.flow.src.AsSlice()
	mac := net.HardwareAddr(n.data[:6])
	return n.parsed.Dst.Netip() == n.flow.src && mac.String() == macOf(dst[len(dst)-1]).String()
}

func macOf(last byte) net.HardwareAddr { return net.HardwareAddr{2, 0, 0, 0x18, 0, last} }
