package packet

// Record is what forwarding needs of a packet: one cache line. The rest of a packet's headers (Parsed) is only read where it is needed.
// Numbers are in host byte order. Of a frame that isn't RoCEv2 only Flow (NoFlow), Len, TOS and Kind have a meaning.
type Record struct {
	Flow    FlowWords // the key of the packet's flow, or NoFlow
	PSN     uint32    // 24 bits
	Len     uint32    // bytes of the frame, without FCS
	SrcPort uint16    // UDP
	Opcode  Opcode
	TOS     uint8 // DSCP << 2 | ECN, of the outermost IP header; 0 without one
	Kind    Kind
	Family  uint8 // 4, 6, or 0 if the frame has no valid IP header
	IP      uint8 // offset of the outermost IP header of a plain frame (ParsePlain); 0 of any other
	_       uint8
}

// NoFlow is the key of a packet without a flow: its QPs have more than 24 bits, which no packet's have.
var NoFlow = FlowWords{QPs: 1<<64 - 1}

// FlowWords is the flow table's key in words of eight bytes, as in the memory of a little-endian processor.
type FlowWords struct {
	Src, Dst Addr
	QPs      uint64 // the destination QP, and at 32 the source QP of a UD packet
	Place    uint64 // the ingress port, and at 16 the outer Tag; the rest is 0
}
