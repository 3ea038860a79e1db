package packet

// Parsed is what one pass over a frame found. The worker reuses one for each place in a burst; Parse overwrites all of it.
// It is plain: offsets count octets from the frame's first one, numbers are in host byte order, 0 means absent.
//
// The order of the fields is such that those which Parse has at hand at one time lie in one word of eight octets.
type Parsed struct {
	Src, Dst Addr // of the outermost IP header

	Kind      Kind
	Family    uint8  // 4, 6, or 0 when the frame has no (sound) IP header
	DSCP      uint8  // 6 bits
	ECN       uint8  // 2 bits, RFC 3168: 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE
	Proto     uint8  // upper-layer protocol after all IPv6 extension headers; 0 where it can't be told (no IP, a fragment, a broken chain)
	Tags      uint8  // number of VLAN tags, at most MaxTags
	EtherType uint16 // after the tags; 0 for an IEEE 802.3 length

	// L3 is the IP header; L4 the upper-layer header, at most IPEnd, 0 where Proto can't be told. Only of Kind RoCEv2 is it surely
	// captured. BTH and Ext are set for Kind RoCEv2 only: the Base Transport Header, and the first extended transport header; where
	// Opcode has none, what follows the BTH.
	L3, L4, BTH, Ext uint16

	OuterTag, InnerTag Tag    // first and second VLAN tag, 0 without one
	DstOpts            uint16 // the last Destination Options header before L4 (IPv6)
	HopOpts            uint16 // the Hop-by-Hop Options header (IPv6)

	DstPort, SrcPort uint16 // UDP, also of packets that are not RoCEv2; 0 where the UDP header isn't captured
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
}

// Kind is the coarse class of a frame: what the worker's policy asks first.
type Kind uint8

const (
	// Other is any frame nothing more is known of: not IP, or an IP packet that isn't sound. It is forwarded untouched.
	Other Kind = iota
	// MACControl is EtherType 0x8808 (IEEE 802.3 31): PAUSE and PFC, which never leave their link.
	MACControl
	// IP is a sound IPv4 or IPv6 packet that isn't RoCEv2; Proto, L4 and the ports are set as far as they can be told.
	IP
	// RoCEv2 is a whole UDP datagram to port 4791 with a BTH, the headers its opcode asks for and an ICRC.
	RoCEv2
)
