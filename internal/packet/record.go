package packet

import "encoding/binary"

// Record is what forwarding needs of a packet: one cache line. The rest of its headers (Parsed) are read only where they are needed. Numbers
// are in host byte order. Of a frame that isn't RoCEv2, PSN, SrcPort and Opcode have no meaning.
type Record struct {
	Flow    FlowWords // the key of the packet's flow, or NoFlow
	PSN     uint32    // 24 bits
	Len     uint32    // bytes of the frame, without FCS
	SrcPort uint16    // UDP
	Opcode  Opcode
	TOS     uint8  // DSCP << 2 | ECN, of the outermost IP header; 0 without one
	IP      uint16 // offset of that header, as Parsed.Outer
	Kind    Kind
	_       uint8
}

// ECN is the codepoint of the outermost IP header, as in Parsed.
func (r *Record) ECN() uint8 { return r.TOS & ecnMask }

// CarriesData reports whether it is a RoCEv2 packet with data: only these are causes of notifications (draft-fast-cnp 4).
func (r *Record) CarriesData() bool { return r.Kind == RoCEv2 && r.Opcode.HasPayload() }

// DestQP is the destination QP of a packet with a flow.
func (r *Record) DestQP() uint32 { return uint32(r.Flow.QPs) }

// Set fills a record from the headers of a frame, except the key of its flow: that is NoFlow.
func (r *Record) Set(p *Parsed) {
	*r = Record{Flow: NoFlow, PSN: p.PSN, Len: p.Len, SrcPort: p.SrcPort, Opcode: p.Opcode, TOS: p.DSCP<<2 | p.ECN, IP: p.Outer, Kind: p.Kind}
}

// NoFlow is the key of a packet without a flow: its QPs have more than 24 bits, which no packet's have.
var NoFlow = FlowWords{QPs: 1<<64 - 1}

// FlowWords is the flow table's key in words of eight bytes, as in the memory of a little-endian processor.
type FlowWords struct {
	Src, Dst Addr
	QPs      uint64 // the destination QP, and at 32 the source QP of a UD packet
	Scope    Scope
}

// SetPlain makes p what Parse finds in a plain frame, in a fraction of the time: r is the record that fastpath.ParsePlain has written for b. It sets
// each field but the tunnel, which only an Encapsulated packet has.
func (p *Parsed) SetPlain(b []byte, r *Record) {
	p.Src, p.Dst = r.Flow.Src, r.Flow.Dst
	l3 := r.IP
	l4 := l3 + IPv6Len
	p.Family, p.EtherType = 6, EtherTypeIPv6
	if r.Flow.Src.Is4() {
		l4 = l3 + IPv4Len
		p.Family, p.EtherType = 4, EtherTypeIPv4
	}
	p.Kind, p.Proto = RoCEv2, ProtoUDP
	p.DSCP, p.ECN = r.TOS>>2, r.TOS&ecnMask
	p.Tags = uint8((l3 - EthernetLen) / VLANTagLen)
	bth := l4 + UDPLen
	p.L3, p.L4, p.BTH, p.Outer = l3, l4, bth, l3
	p.OuterTag, p.InnerTag = Tag(r.Flow.Scope>>scopeOuter), 0
	p.DstOpts, p.HopOpts = 0, 0
	p.DstPort, p.SrcPort = RoCEv2Port, r.SrcPort
	h := b[l4 : l4+UDPLen+BTHLen]
	p.IPEnd = uint32(l4) + uint32(binary.BigEndian.Uint16(h[4:]))
	p.ICRC = p.IPEnd - ICRCLen
	p.Opcode, p.BTHFlags = r.Opcode, h[UDPLen+4]
	p.Payload = bth + BTHLen + uint16(opcodes[r.Opcode].len)
	p.DestQP, p.SourceQP, p.PSN = uint32(r.Flow.QPs), uint32(r.Flow.QPs>>32), r.PSN
	p.Len = r.Len
}
