package capturefile

import (
	"encoding/binary"
	"fmt"

	"github.com/gopacket/gopacket/layers"
)

// Link types of captures whose frames get an Ethernet header (https://www.tcpdump.org/linktypes.html).
const (
	linkNull  = 0 // BSD loopback: an address family, in the byte order of the host
	linkPPP   = 9
	linkRaw12 = 12 // IP packets, as some systems number them
	linkRaw14 = 14
	linkRaw   = 101 // IP packets
	linkLoop  = 108 // as linkNull, in network byte order
	linkSLL   = 113 // Linux cooked capture
	linkERF   = 197 // Endace, also written by some InfiniBand tools
	linkIPv4  = 228
	linkIPv6  = 229
	linkNFLOG = 239 // Linux netfilter's log
	linkSLL2  = 276 // Linux cooked capture, version 2
	linkEDSA  = 285 // Ethernet, with the tag of a switch that Linux runs on
)

// linkNames are the names of link types that captures of networks may have, besides those that layers names.
var linkNames = map[layers.LinkType]string{
	linkNull: "NULL", linkPPP: "PPP", linkRaw12: "RAW", linkRaw14: "RAW", linkRaw: "RAW", linkLoop: "LOOP", linkSLL: "LINUX_SLL", linkERF: "ERF", linkIPv4: "IPV4", linkIPv6: "IPV6",
	linkNFLOG: "NFLOG", linkSLL2: "LINUX_SLL2", linkEDSA: "DSA_TAG_EDSA", layers.LinkTypeEthernet: "EN10MB", 104: "C_HDLC", 105: "IEEE802_11", 127: "IEEE802_11_RADIO", 147: "USER0", 187: "BLUETOOTH_HCI_H4", 189: "USB_LINUX", 192: "PPI",
	178: "JUNIPER_ETHERNET", 195: "IEEE802_15_4", 220: "USB_LINUX_MMAPPED", 247: "INFINIBAND", 249: "USBPCAP", 252: "WIRESHARK_UPPER_PDU", 253: "NETLINK", 258: "PKTAP",
	281: "DSA_TAG_BRCM", 282: "DSA_TAG_BRCM_PREPEND", 284: "DSA_TAG_DSA",
}

// linkName is such as "link type 197 (ERF)".
func linkName(t layers.LinkType) string {
	if name := linkNames[t]; name != "" {
		return fmt.Sprintf("link type %d (%s)", t, name)
	}
	return fmt.Sprintf("link type %d", t)
}

// readable reports whether frames of a link type can be read.
func readable(t layers.LinkType) bool {
	switch t {
	case layers.LinkTypeEthernet, linkNull, linkPPP, linkRaw12, linkRaw14, linkRaw, linkLoop, linkSLL, linkERF, linkIPv4, linkIPv6, linkNFLOG, linkSLL2, linkEDSA:
		return true
	}
	return false
}

const ethernet = 14 // length of its header

// translate replaces a frame's header by one of Ethernet, with the addresses as far as they are known. Of a frame that is too short for any packet, and of one
// of a link type that isn't read, nothing remains.
func (c *Reader) translate(f *Frame, link layers.LinkType, order binary.ByteOrder) {
	b := f.Octets
	header, etherType, from := 0, uint16(0), []byte(nil) // header: its length
	switch {
	case link == layers.LinkTypeEthernet, link == linkEDSA:
		return
	case !readable(link):
		f.Octets, f.Unread = nil, linkName(link)
		return
	case link == linkERF:
		f.Octets, f.Length = erfFrame(b, f.Length)
		c.Longest = max(c.Longest, len(f.Octets))
		return
	case link == linkNull, link == linkLoop:
		header = 4
	case link == linkPPP:
		header = 2
		if len(b) > 1 && b[0] == 0xff && b[1] == 3 { // address and control (RFC 1662 3.1)
			header = 4
		}
	case link == linkSLL && len(b) > 16:
		header, etherType, from = 16, binary.BigEndian.Uint16(b[14:]), b[6:12]
	case link == linkSLL2 && len(b) > 20:
		header, etherType, from = 20, binary.BigEndian.Uint16(b), b[12:18]
	case link == linkNFLOG:
		header, b = nflogPacket(b, order)
	case link == linkSLL, link == linkSLL2:
		header = len(b)
	}
	if len(b) < header+1 {
		f.Octets = nil
		return
	}
	var h [ethernet]byte
	copy(h[6:12], from)
	switch {
	case from != nil:
	case b[header]>>4 == 6:
		etherType = 0x86dd
	case b[header]>>4 == 4:
		etherType = 0x0800
	}
	binary.BigEndian.PutUint16(h[12:], etherType)
	c.scratch = append(append(c.scratch[:0], h[:]...), b[header:]...)
	f.Octets, f.Length = c.scratch, f.Length-min(uint32(header), f.Length)+ethernet
	c.Longest = max(c.Longest, len(f.Octets))
}

// erfFrame is the Ethernet frame in a record of the Extensible Record Format: a header of 16 octets, whose type is the ninth; extension headers of 8, while the
// highest bit of the type before them is set; and for Ethernet two octets of padding. length is that of the record.
func erfFrame(b []byte, length uint32) ([]byte, uint32) {
	const header, extension, padding, more, wireLength = 16, 8, 2, 0x80, 14
	if len(b) < header {
		return nil, length
	}
	kind, at := b[8], header
	for next := kind; next&more != 0 && at+extension <= len(b); at += extension {
		next = b[at]
	}
	at += padding
	switch kind &^ more {
	case 2, 11, 16, 20: // Ethernet; with a color; with one and the stream of a DSM; with one and a hash
	default:
		return nil, length
	}
	if at > len(b) {
		return nil, length
	}
	frame, wire := b[at:], uint32(binary.BigEndian.Uint16(b[wireLength:])) // with the frame check sequence, or without
	if uint32(len(frame)) > wire {
		frame = frame[:wire]
	}
	return frame, wire
}

// nflogPacket finds the packet in a record of Linux netfilter's log: a header of 4 octets, then attributes. Each has a length with its own header, a type, both in
// the byte order of the file, and a value, padded to 4 octets. b ends with the packet, which begins behind so many octets; if there is none, behind all.
func nflogPacket(b []byte, order binary.ByteOrder) (header int, upTo []byte) {
	const fixed, attribute, payload = 4, 4, 9
	for at := fixed; at+attribute <= len(b); {
		length := int(order.Uint16(b[at:]))
		if length < attribute {
			break
		}
		if order.Uint16(b[at+2:]) == payload {
			return at + attribute, b[:min(at+length, len(b))]
		}
		at += (length + 3) &^ 3
	}
	return len(b), b
}
