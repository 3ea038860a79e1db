package packet

import (
	"encoding/binary"
	"hash/crc32"
)

// ICRCLen is the length of the invariant CRC in octets.
const ICRCLen = 4

// icrcSeed is the CRC-32 of eight octets 0xFF. They stand for the Local Route Header, which RoCEv2 doesn't have (IBTA Annex A17).
const icrcSeed = 0x2144df1c

// What the ICRC takes in place of fields that may change on the way.
var (
	icrcOnes = []byte{0xff, 0xff}
	icrcIPv6 = []byte{0x6f, 0xff, 0xff, 0xff} // version 6; traffic class and flow label as ones
)

// ICRC computes the invariant CRC (IBTA 7.8.1, Annex A17) of a RoCEv2 packet in b: CRC-32 (IEEE 802.3) over eight octets 0xFF
// and the packet from its IP header at l3 to the ICRC at icrc, with these as ones: TOS, TTL and header checksum of IPv4; traffic
// class, flow label and hop limit of IPv6; the UDP checksum; octet 4 of the BTH, which follows the UDP header and is at bth.
//
// IBTA doesn't say how IPv6 extension headers count. They are taken as sent, or left out for !withExtensionHeaders; an IPv6
// header's own Next Header and Payload Length are taken as sent in both cases. IPv4 options are taken as sent.
// The offsets must be those of a packet that is whole in b. b is not changed.
func ICRC(b []byte, l3, bth, icrc int, withExtensionHeaders bool) uint32 {
	udp := bth - UDPLen
	t := crc32.IEEETable
	crc := uint32(icrcSeed)
	rest := l3 + 12 // from here to the UDP checksum nothing is masked
	if b[l3]>>4 == 4 {
		crc = crc32.Update(crc, t, b[l3:l3+1])
		crc = crc32.Update(crc, t, icrcOnes[:1]) // TOS
		crc = crc32.Update(crc, t, b[l3+2:l3+8])
		crc = crc32.Update(crc, t, icrcOnes[:1]) // TTL
		crc = crc32.Update(crc, t, b[l3+9:l3+10])
		crc = crc32.Update(crc, t, icrcOnes) // header checksum
	} else {
		crc = crc32.Update(crc, t, icrcIPv6)
		crc = crc32.Update(crc, t, b[l3+4:l3+7])
		crc = crc32.Update(crc, t, icrcOnes[:1]) // hop limit
		rest = l3 + 8
		if !withExtensionHeaders {
			crc = crc32.Update(crc, t, b[rest:l3+IPv6Len])
			rest = udp
		}
	}
	crc = crc32.Update(crc, t, b[rest:bth-2])
	crc = crc32.Update(crc, t, icrcOnes) // UDP checksum
	crc = crc32.Update(crc, t, b[bth:bth+4])
	crc = crc32.Update(crc, t, icrcOnes[:1]) // BTH octet 4
	return crc32.Update(crc, t, b[bth+5:icrc])
}

// PutICRC computes the ICRC of a packet being built and writes its four octets, the least significant first, at icrc.
// The arguments are those of ICRC.
func PutICRC(b []byte, l3, bth, icrc int, withExtensionHeaders bool) {
	binary.LittleEndian.PutUint32(b[icrc:], ICRC(b, l3, bth, icrc, withExtensionHeaders))
}

// VerifyICRC tells whether the ICRC of a received RoCEv2 packet is right, IPv6 extension headers taken as sent. A packet that
// isn't RoCEv2, or isn't whole in frame, has none. frame is not changed.
func VerifyICRC(frame []byte, p *Parsed) bool {
	end := int(p.ICRC)
	if p.Kind != RoCEv2 || len(frame) < end+ICRCLen {
		return false
	}
	return binary.LittleEndian.Uint32(frame[end:]) == ICRC(frame, int(p.L3), int(p.BTH), end, true)
}
