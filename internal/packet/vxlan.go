package packet

import "encoding/binary"

// VXLAN header (RFC 7348 5), behind a UDP header; I is the flag of a valid VNI:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|R|R|R|R|I|R|R|R|                   Reserved                    |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|        VXLAN Network Identifier (VNI)         |   Reserved    |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
const (
	vxlanPort = 4789 // UDP destination port (RFC 7348 5)
	vxlanLen  = 8
	vxlanVNI  = 0x08000000 // a tunnel's end discards a frame without it
	// The Group Policy extension: its flag and other fields. The Generic Protocol Extension when it says that an Ethernet frame follows. Other
	// bits are reserved, or say that something else follows: a tunnel's end may read them or not.
	vxlanGroup, vxlanGroupFields = 0x80000000, 0x0048ffff
	vxlanEthernet                = 0x04000003
)

// afterVXLAN reads the VXLAN header after a UDP header.
func (l *payload) afterVXLAN(b []byte) {
	l.what = unreadable
	l.at += UDPLen
	if len(b) < l.at+vxlanLen {
		return
	}
	flags, known := binary.BigEndian.Uint32(b[l.at:]), uint32(vxlanVNI)
	switch {
	case flags&vxlanGroup != 0:
		known |= vxlanGroup | vxlanGroupFields
	case flags&vxlanEthernet == vxlanEthernet:
		known |= vxlanEthernet
	}
	l.what, l.void = ethernetFrame, flags&vxlanVNI == 0
	l.tunnel = Tunnel{Kind: VXLAN, ID: binary.BigEndian.Uint32(b[l.at+4:]) >> 8, opaque: flags&^known != 0}
	l.at += vxlanLen
}
