package packet

// Parsed is the result of parsing a frame. The worker reuses one for each position in a burst; Parse overwrites all of it. Offsets count
// octets from the start of the frame, numbers are in host byte order, 0 means absent.
//
// Of a RoCEv2 packet in a tunnel (Encapsulated), the fields describe the packet inside, with two exceptions: Outer, DSCP and ECN are of the
// outermost IP header, which is the one that queues read and mark; Tags, OuterTag, InnerTag, EtherType and Len are the whole frame's. If a
// tunnel holds anything else, or can't be read, Kind is IP or Other and all fields describe the outermost headers.
//
// Fields that Parse sets at the same time are in one word of eight bytes.
type Parsed struct {
	Src, Dst Addr

	Kind      Kind
	Family    uint8  // 4, 6, or 0 if the frame has no valid IP header
	DSCP      uint8  // 6 bits, of the IP header at Outer
	ECN       uint8  // 2 bits, of the same header, RFC 3168: 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE
	Proto     uint8  // upper-layer protocol after all IPv6 extension headers; of a fragment the one in its header; 0 if unknown
	Tags      uint8  // number of VLAN tags, at most MaxTags
	EtherType uint16 // after the tags; 0 for an IEEE 802.3 length

	// L3 is the IP header; L4 the upper-layer header, at most IPEnd, 0 of an IP packet that can't be read so far: a fragment, a broken or
	// too long chain of extension headers. Only for Kind RoCEv2 is it certainly in the capture. BTH, the Base Transport Header, is set for
	// Kind RoCEv2 only. Outer is the outermost IP header: L3, unless the packet is in an IP tunnel. Over MPLS alone it is L3, too.
	L3, L4, BTH, Outer uint16

	OuterTag, InnerTag Tag    // first and second VLAN tag, 0 without one
	DstOpts            uint16 // the last Destination Options header before L4 (IPv6)
	HopOpts            uint16 // the Hop-by-Hop Options header (IPv6)

	DstPort, SrcPort uint16 // UDP, also of packets that are not RoCEv2; 0 if the UDP header isn't in the capture
	IPEnd            uint32 // end of the IP packet; the frame may go on with padding

	// The rest is set for Kind RoCEv2 only.

	ICRC     uint32 // offset of the invariant CRC: the end of the UDP payload less 4
	Opcode   Opcode
	BTHFlags uint8  // BTH octet 4: FECN 0x80, BECN 0x40, then six reserved bits
	Payload  uint16 // offset of the payload after all transport headers
	DestQP   uint32 // 24 bits
	SourceQP uint32 // 24 bits, from DETH; UD (and RD) only
	PSN      uint32 // 24 bits

	Len uint32 // octets of the frame, without FCS; of any Kind, but 0 of a packet without a frame

	// tunnel is valid only for an Encapsulated packet: ParsePlain doesn't spend a store on it.
	tunnel Tunnel
}

// Ext is the first extended transport header of a RoCEv2 packet, or the end of the BTH if Opcode has none.
func (p *Parsed) Ext() int { return int(p.BTH) + BTHLen }

// IPv4Mapped reports whether an IPv6 packet has an IPv4-mapped address, which no packet may have on the wire (RFC 4038 4.2): its flow would
// be confused with the IPv4 flow of the same addresses.
func (p *Parsed) IPv4Mapped() bool { return p.Family == 6 && (p.Src.Is4() || p.Dst.Is4()) }

// Encapsulated reports whether a parsed frame has a RoCEv2 packet in a tunnel: its IP header isn't where the frame's own one is.
func (p *Parsed) Encapsulated() bool { return int(p.L3) > EthernetLen+VLANTagLen*int(p.Tags) }

// Tunnel returns the tunnel of an Encapsulated packet, the innermost one if there are two; the zero Tunnel of any other packet.
func (p *Parsed) Tunnel() Tunnel {
	if !p.Encapsulated() {
		return Tunnel{}
	}
	return p.tunnel
}

// Kind is the coarse class of a frame.
type Kind uint8

const (
	// Other is any other frame: not IP, or an invalid IP packet. It is forwarded unchanged.
	Other Kind = iota
	// MACControl is EtherType 0x8808 (IEEE 802.3 31): PAUSE and PFC, which never leave their link.
	MACControl
	// IP is a valid IPv4 or IPv6 packet that isn't RoCEv2; Proto, L4 and the ports are set as far as known.
	IP
	// RoCEv2 is a complete UDP datagram to port 4791 with a BTH, the headers of its opcode and an ICRC.
	RoCEv2
)
