package cnpgen

import "github.com/cnpgate/cnpgate/internal/packet"

// Carried is whether a Fast CNP has the data packet's IOAM trace.
type Carried uint8

const (
	CarriesNoTrace Carried = iota // option 1: no trace was given
	CarriesTrace                  // option 2
	TraceTooLong                  // option 1: the data packet's trace has more than 228 octets of node data, too many for option 2
)

// FastCNP builds a Fast CNP (draft-xiao-rtgwg-rocev2-fast-cnp-05 4) and returns the frame's length, or 0 when it can't be built: t is not
// valid or not of IPv6, the gateway has no IPv6 address, or out is too short; and whether it carries the data packet's IOAM trace. After
// the IPv6 header, without a trace (figures 2 and 3):
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
// With a trace (figure 4), which is copied unchanged:
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
// DestQP is the flow's, that is, the receiver's QP. With it and the address in the option the sender finds its own QP.
//
// trace is the data packet's IOAM trace from packet.FindIOAMTrace. If there is none it is the zero IOAMTrace, and option 1 is built. out
// must not overlap it.
func FastCNP(out []byte, t *Target, g *Gateway, trace packet.IOAMTrace) (int, Carried) {
	if trace.Data == nil || t.Family != 6 {
		return fastCNPWithoutTrace(out, t, g), CarriesNoTrace
	}
	if len(trace.Data) > packet.MaxOptionTrace {
		return fastCNPWithoutTrace(out, t, g), TraceTooLong
	}
	h := packet.FastCNPHeader{NextHeader: packet.ProtoUDP, Type: g.Code.FastCNPTraceOption}
	h.Option.Dst, h.Option.Trace = t.Dst, trace
	h.Pad()
	src := g.source(6)
	c := beginCNP(out, t, g, src, h.Len(), packet.CNPReservedLen, t.DestQP)
	if c.ip == nil {
		return 0, CarriesTrace
	}
	h.Put(c.options())
	c.clearFields()
	return c.seal(t, g, packet.BECN, g.DSCP<<2, hopLimit), CarriesTrace
}

// fastCNPWithoutTrace builds option 1.
func fastCNPWithoutTrace(out []byte, t *Target, g *Gateway) int {
	if t.Family != 6 {
		return 0
	}
	src := g.source(6)
	c := beginCNP(out, t, g, src, packet.FastCNPOption1Len, packet.CNPReservedLen, t.DestQP)
	if c.ip == nil {
		return 0
	}
	packet.PutFastCNPOption1((*[packet.FastCNPOption1Len]byte)(c.options()), packet.ProtoUDP, g.Code.FastCNPOption, &t.Dst)
	c.clearFields()
	return c.seal(t, g, packet.BECN, g.DSCP<<2, hopLimit)
}
