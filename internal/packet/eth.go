package packet

import "encoding/binary"

// Ethernet header (IEEE 802.3 3.1.1) with VLAN tags (IEEE 802.1Q 9.3 to 9.6). Frames here don't include the FCS:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                        Destination MAC                        |
//	+                               +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                               |                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+          Source MAC           +
//	|                                                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|             TPID              | PCP |D|        VID            |  0, 1 or 2 times
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|           EtherType           |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
const (
	// EthernetLen is the length of an untagged Ethernet header in octets.
	EthernetLen = 14
	// VLANTagLen is the length of one VLAN tag in octets.
	VLANTagLen = 4
	// MaxTags is the maximum number of VLAN tags that Parse skips; a frame with more is of Kind Other.
	MaxTags = 2
)

// EtherTypes (IEEE 802 numbers). The three tag protocol identifiers are accepted in any order and mixture.
const (
	EtherTypeIPv4       = 0x0800
	EtherTypeIPv6       = 0x86dd
	EtherTypeCTag       = 0x8100 // 802.1Q customer tag
	EtherTypeSTag       = 0x88a8 // 802.1ad service tag
	EtherTypeQinQ       = 0x9100 // service tag of equipment older than 802.1ad
	EtherTypeMACControl = 0x8808 // IEEE 802.3 31: PAUSE and PFC
	EtherTypeMPLS       = 0x8847 // a label stack (RFC 3032)
	EtherTypeMPLSUp     = 0x8848 // a label stack whose top label is upstream-assigned (RFC 5332)

	minEtherType = 0x0600 // smaller values are the length of an IEEE 802.3 frame
)

// ReplyEthernet writes to out the Ethernet header of a reply to the parsed frame and returns its length, 14, 18 or 22 octets: with swapped
// MAC addresses, and the frame's VLAN tags (TPID, priority and VID) and EtherType. out must be long enough and must not overlap frame.
func ReplyEthernet(out, frame []byte, p *Parsed) int {
	n := EthernetLen + VLANTagLen*int(p.Tags)
	out, frame = out[:n], frame[:n]
	to, from := (*[EthernetLen]byte)(out), (*[EthernetLen]byte)(frame)
	front, back := swapMACs(from)
	binary.LittleEndian.PutUint64(to[:], front)
	binary.LittleEndian.PutUint64(to[6:], back)
	for at := EthernetLen; at < n; at += VLANTagLen {
		binary.BigEndian.PutUint32(out[at:], binary.BigEndian.Uint32(frame[at:]))
	}
	return n
}

// swapMACs returns octets 0 to 7 and 6 to 13 of an Ethernet header with swapped MAC addresses.
func swapMACs(h *[EthernetLen]byte) (front, back uint64) {
	front, back = binary.LittleEndian.Uint64(h[:]), binary.LittleEndian.Uint64(h[6:])
	return back&(1<<48-1) | front<<48, front&(1<<48-1) | back>>48<<48
}

// ReplyPlain is ReplyEthernet for a plain frame that begins with head, with one VLAN tag or none. It clears the rest of out.
func ReplyPlain(out *[EthernetLen + MaxTags*VLANTagLen]byte, head *[EthernetLen + VLANTagLen]byte, tagged bool) {
	front, back := swapMACs((*[EthernetLen]byte)(head[:]))
	tag := uint64(0)
	if tagged {
		tag = uint64(binary.LittleEndian.Uint32(head[EthernetLen:]))
	}
	binary.LittleEndian.PutUint64(out[14:], tag)
	binary.LittleEndian.PutUint64(out[8:], back>>16|tag<<48)
	binary.LittleEndian.PutUint64(out[:], front)
}

// MAC is an Ethernet address (IEEE 802 8.2), in the order of its octets on the wire.
type MAC [6]byte

// Unicast reports whether a is the address of one station: neither a group address nor all zeros.
func (a MAC) Unicast() bool { return a[0]&1 == 0 && a != MAC{} }

// SourceMAC is the source address of an Ethernet frame of at least EthernetLen octets.
func SourceMAC(frame []byte) MAC { return MAC(frame[6:12]) }

// PutEthernet writes to out the Ethernet header of an answer to the parsed frame and returns its length, 14, 18 or 22 octets: from one MAC
// address to another, with the frame's VLAN tags (TPID, priority and VID) and EtherType. out must be long enough.
func PutEthernet(out, frame []byte, p *Parsed, from, to MAC) int {
	n := EthernetLen + VLANTagLen*int(p.Tags)
	copy(out[:n], frame[:n])
	copy(out, to[:])
	copy(out[6:], from[:])
	return n
}
