package capturefile

import (
	"github.com/gopacket/gopacket/layers"
)

// Link types of captures whose frames get an Ethernet header (https://www.tcpdump.org/linktypes.html).
const (
	linkRaw  = 101 // IP packets
	linkSLL  = 113 // Linux cooked capture
	linkSLL2 = 276 // Linux cooked capture, version 2
)

func translated(t layers.LinkType) bool { return t == linkRaw || t == linkSLL || t == linkSLL2 }

const ethernet = 14 // length of its header

// translate replaces a frame's header by one of Ethernet, with the addresses as far as they are known.
func (c *Reader) translate(f *Frame) {
	header, protocol, address := 0, 0, 0 // length, and offsets of the EtherType and the sender's address
	switch c.source.LinkType() {
	case linkSLL:
		header, protocol, address = 16, 14, 6
	case linkSLL2:
		header, protocol, address = 20, 0, 12
	}
	if len(f.Octets) < header+1 {
		f.Octets = nil // too short for any packet
		return
	}
	var h [ethernet]byte
	switch {
	case header != 0:
		copy(h[6:12], f.Octets[address:])
		copy(h[12:], f.Octets[protocol:protocol+2])
	case f.Octets[0]>>4 == 6:
		h[12], h[13] = 0x86, 0xdd
	default:
		h[12] = 0x08
	}
	c.scratch = append(append(c.scratch[:0], h[:]...), f.Octets[header:]...)
	f.Octets, f.Length = c.scratch, f.Length-uint32(header)+ethernet
	c.Longest = max(c.Longest, len(f.Octets))
}
