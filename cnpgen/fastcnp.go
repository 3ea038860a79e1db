package cnpgen

import "github.com/cnpgate/cnpgate/internal/packet"

// Carried is what a Fast CNP has of the data packet's IOAM trace.
type Carried uint8

const (
	CarriesNoTrace Carried = iota // option 1: the data packet has no sound trace
	CarriesTrace                  // option 2
	TraceTooLong                  // option 1: the data packet's trace has more than 228 octets of node data, too many for option 2
)

// FastCNP builds a Fast CNP (draft-xiao-rtgwg-rocev2-fast-cnp-05 4) and returns the frame's length, or 0 when it can't be built:
// the data packet isn't an IPv6 one, the gateway has no IPv6 address, or out is too short; and what became of the data packet's
// IOAM trace. Behind the IPv6 header, where the data packet has none (figures 2 and 3):
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
// Where it has one in a Hop-by-Hop option (figure 4), the trace is copied from there as it is:
//
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	| Next Hdr = 17 |  Hdr Ext Len  |   PadN = 1    |       0       |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  Option Type  |  Opt Data Len |  Reserved = 0 | IOAM Opt-Type |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  IOAM Trace Option Data                                       ~
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  Destination IPv6 address of the RoCEv2 data packet (16)      ~
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  PadN of 4 octets where needed for a multiple of 8            |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  UDP header (8), BTH (12), reserved (16), ICRC (4)            ~
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
// DestQP is the data packet's, that is the receiver's QP: with the address in the option the sender finds its own by it.
//
// p is what packet.Parse found in frame, the data packet; out must not overlap frame.
func FastCNP(out, frame []byte, p *packet.Parsed, g *Gateway) (int, Carried) {
	if !answerable(frame, p) || p.Family != 6 || !g.HasIPv6 {
		return 0, CarriesNoTrace
	}
	if p.HopOpts == 0 {
		return fastCNP1(out, frame, p, g), CarriesNoTrace
	}
	h := packet.FastCNPHeader{NextHeader: packet.ProtoUDP, Type: g.Code.FastCNPOption}
	h.Option.Dst = p.Dst
	carried := takeTrace(&h.Option, frame, p)
	if carried == CarriesTrace {
		h.Type = g.Code.FastCNPTraceOption
	}
	h.Pad()
	opts := ethernetLen(p) + packet.IPv6Len
	end := opts + h.Len() + fastCNPUDPLen
	if len(out) < end {
		return 0, carried
	}
	h.Put(out[opts:end])
	return aroundFastCNP(out[:end], frame, p, g, opts+h.Len()), carried
}

const fastCNPUDPLen = packet.UDPLen + packet.BTHLen + packet.CNPReservedLen + packet.ICRCLen

// fastCNP1 is FastCNP for option 1, with which a worker has most to do.
func fastCNP1(out, frame []byte, p *packet.Parsed, g *Gateway) int {
	opts := ethernetLen(p) + packet.IPv6Len
	end := opts + packet.FastCNPHeader1Len + fastCNPUDPLen
	if len(out) < end {
		return 0
	}
	packet.PutFastCNPHeader1(out[opts:], packet.ProtoUDP, g.Code.FastCNPOption, &p.Dst)
	return aroundFastCNP(out[:end], frame, p, g, opts+packet.FastCNPHeader1Len)
}

// aroundFastCNP writes all that a Fast CNP has around its extension header, into the whole of out; udp is where the UDP header begins.
func aroundFastCNP(out, frame []byte, p *packet.Parsed, g *Gateway, udp int) int {
	l3 := ethernetLen(p)
	packet.ReplyEthernet(out, frame, p)
	packet.PutIPv6(out[l3:], uint16(len(out)-l3-packet.IPv6Len), g.DSCP, packet.ProtoDestOpts, hopLimit, &g.IPv6, &p.Src)
	cnp := (*[fastCNPUDPLen]byte)(out[udp:])
	packet.PutCNP(cnp[:], p.SrcPort, fastCNPUDPLen, packet.BECN, p.DestQP)
	const bth = packet.UDPLen
	*(*[packet.CNPReservedLen]byte)(cnp[bth+packet.BTHLen:]) = [packet.CNPReservedLen]byte{}
	packet.PutICRC(out, l3, udp+bth, len(out)-packet.ICRCLen, g.ICRCExtensionHeaders)
	return len(out)
}

// takeTrace makes the option one with the data packet's IOAM trace, if it has one that fits.
func takeTrace(o *packet.FastCNPOption, frame []byte, p *packet.Parsed) Carried {
	trace := packet.FindIOAMTrace(frame, p)
	switch {
	case trace.Data == nil:
		return CarriesNoTrace
	case len(trace.Data) > packet.MaxOptionTrace:
		return TraceTooLong
	}
	o.Trace = trace
	return CarriesTrace
}
