package packet

import "encoding/binary"

// ARP's EtherType, the length of its message for IPv4 over Ethernet in octets, and its operations (RFC 826).
const (
	EtherTypeARP = 0x0806
	ARPLen       = 28
	ARPRequest   = 1
	ARPReply     = 2
)

// arpIPv4 is the beginning of each ARP message for IPv4 (0x0800, 4 octets an address) over Ethernet (1, 6 octets).
const arpIPv4 = 1<<48 | EtherTypeIPv4<<32 | 6<<24 | 4<<16

// ARP is an ARP message for IPv4 over Ethernet (RFC 826):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|      Hardware = 1             |     Protocol = 0x0800         |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|    HLen = 6   |    PLen = 4   |           Operation           |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  Sender MAC (6), Sender IP (4), Target MAC (6), Target IP (4) ~
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type ARP struct {
	Operation            uint16
	SenderMAC, TargetMAC MAC
	SenderIP, TargetIP   Addr // IPv4-mapped
}

// Put writes ARPLen octets.
func (a *ARP) Put(b []byte) {
	b = b[:ARPLen]
	binary.BigEndian.PutUint64(b, arpIPv4|uint64(a.Operation))
	copy(b[8:], a.SenderMAC[:])
	a.SenderIP.put4(b[14:])
	copy(b[18:], a.TargetMAC[:])
	a.TargetIP.put4(b[24:])
}

// DecodeARP reads the message at the front of b; it returns false when the message isn't whole, or isn't for IPv4 over Ethernet.
func DecodeARP(b []byte) (ARP, bool) {
	if len(b) < ARPLen || binary.BigEndian.Uint64(b)&^0xffff != arpIPv4 {
		return ARP{}, false
	}
	return ARP{
		Operation: binary.BigEndian.Uint16(b[6:]), SenderMAC: MAC(b[8:14]), SenderIP: AddrFrom4(b[14:]),
		TargetMAC: MAC(b[18:24]), TargetIP: AddrFrom4(b[24:]),
	}, true
}
