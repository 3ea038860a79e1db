package cnpgen

import "github.com/cnpgate/cnpgate/internal/packet"

const (
	fastCNPHeaderLen = 24 // Destination Options header with option 1 and its padding
	fastCNPReserved  = 16 // reserved octets after the BTH of a CNP (IBTA Annex A17, draft-xiao-fast-cnp figure 2)
	fastCNPUDPLen    = packet.UDPLen + packet.BTHLen + fastCNPReserved + packet.ICRCLen

	optPadN = 1 // RFC 8200 4.2
)

// FastCNP builds a Fast CNP with Destination Option 1 (draft-xiao-rtgwg-rocev2-fast-cnp-05 4, figures 2 and 3) and returns the
// frame's length, or 0 when it can't be built: the data packet isn't an IPv6 one, the gateway has no IPv6 address, or out is
// too short. Behind the IPv6 header:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	| Next Hdr = 17 | Hdr Ext Len=2 |  Option Type  |Opt Data Len=16|
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  Destination IPv6 address of the RoCEv2 data packet (16)      ~
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|   PadN = 1    |       2       |               0               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  UDP header (8), BTH (12), reserved (16), ICRC (4)            ~
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
// DestQP is the data packet's, that is the receiver's QP: with the address in the option the sender finds its own by it. A
// data packet with an IOAM trace gets option 1 as well.
//
// p is what packet.Parse found in frame, the data packet; out must not overlap frame.
func FastCNP(out, frame []byte, p *packet.Parsed, g *Gateway) int {
	if !answerable(frame, p) || p.Family != 6 || !g.HasIPv6 {
		return 0
	}
	l3 := ethernetLen(p)
	opts := l3 + packet.IPv6Len
	udp := opts + fastCNPHeaderLen
	end := udp + fastCNPUDPLen
	if len(out) < end {
		return 0
	}
	out = out[:end]
	packet.ReplyEthernet(out, frame, p)
	putIPv6(out[l3:], p, g, packet.ProtoDestOpts, end-opts)
	putOption1(out[opts:udp], p.Dst, g.Code.FastCNPOption)
	putCNP(out[udp:], p, fastCNPUDPLen, packet.BECN, p.DestQP)
	bth := udp + packet.UDPLen
	icrc := end - packet.ICRCLen
	clear(out[bth+packet.BTHLen : icrc])
	packet.PutICRC(out, l3, bth, icrc, g.ICRCExtensionHeaders)
	return end
}

// putOption1 writes the Destination Options header in front of UDP: option 1 with the congested data packet's destination,
// directly after the header's two octets, and a PadN to 24 octets.
func putOption1(b []byte, dst packet.Addr, optionType uint8) {
	b = b[:fastCNPHeaderLen]
	b[0] = packet.ProtoUDP
	b[1] = fastCNPHeaderLen/8 - 1
	b[2] = optionType
	b[3] = 16
	dst.Put16(b[4:20])
	b[20], b[21], b[22], b[23] = optPadN, 2, 0, 0
}
