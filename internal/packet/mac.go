package packet

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
