package packet

import (
	"encoding/binary"
	"hash/crc32"
)

// ICRCLen is the length of the invariant CRC in octets.
const ICRCLen = 4

// icrcSeed is the CRC-32 of eight octets 0xFF. They replace the Local Route Header, which RoCEv2 doesn't have (IBTA Annex A17).
const icrcSeed = 0x2144df1c

// ICRC computes the invariant CRC (IBTA 7.8.1, Annex A17) of a RoCEv2 packet in b: CRC-32 (IEEE 802.3) over eight octets 0xFF
// and the packet from its IP header at l3 to the ICRC at icrc, with these as ones: TOS, TTL and header checksum of IPv4; traffic
// class, flow label and hop limit of IPv6; the UDP checksum; octet 4 of the BTH, which follows the UDP header and is at bth.
//
// IBTA doesn't say how IPv6 extension headers count. They count as sent, or not at all for !withExtensionHeaders; an IPv6 header's own Next
// Header and Payload Length count as sent in both cases. IPv4 options count as sent. The offsets must be those of a packet that is complete
// in b. b is not changed.
func ICRC(b []byte, l3, bth, icrc int, withExtensionHeaders bool) uint32 {
	head := b[l3 : l3+12]
	first, third := binary.LittleEndian.Uint64(head), binary.LittleEndian.Uint32(head[8:])
	rest := l3 + 12 // no masked fields from here to the UDP checksum
	v6 := b[l3]>>4 == 6
	if v6 {
		first |= 0xff000000_ffffff0f // traffic class, flow label; hop limit
	} else {
		first |= 0x0000ff00 // TOS
		third |= 0xffff00ff // TTL, header checksum
	}
	crc := icrcOctets(icrcSeed, first, 8)
	crc = icrcOctets(crc, uint64(third), 4)
	if v6 && !withExtensionHeaders {
		crc = crc32.Update(crc, crc32.IEEETable, b[rest:l3+IPv6Len])
		rest = bth - UDPLen
	}
	crc = crc32.Update(crc, crc32.IEEETable, b[rest:bth-2])
	masked := 0xffff | uint64(binary.LittleEndian.Uint32(b[bth:]))<<16 | 0xff<<48 // UDP checksum, four octets of the BTH, the fifth
	crc = icrcOctets(crc, masked, 7)
	return crc32.Update(crc, crc32.IEEETable, b[bth+5:icrc])
}

// icrcOctets updates a CRC with the low n octets of v, the lowest first. For this few octets a call of hash/crc32 takes longer.
func icrcOctets(crc uint32, v uint64, n int) uint32 {
	register := ^crc
	for range n {
		register = crc32.IEEETable[uint8(register)^uint8(v)] ^ register>>8
		v >>= 8
	}
	return ^register
}

// icrcLent is the number of octets before the IP header that PutICRC overwrites temporarily.
const icrcLent = 12

// PutICRC computes the ICRC of a packet being built and writes its four octets, the least significant first, at icrc. Arguments and result
// are those of ICRC, in a quarter of the time if a link-layer header of 12 octets or more precedes l3. No other goroutine may use b: during
// the computation, masked fields and link-layer header have other values.
//
// It computes one CRC over a length for which hash/crc32 is fastest: 64 octets or more, and a multiple of 16. Zeros in front reach that
// length, since they don't count while a CRC's register is zero. It is zero after the first four of the eight octets 0xFF, since it starts
// as ones. So the other four precede the packet, with zeros before them.
func PutICRC(b []byte, l3, bth, icrc int, withExtensionHeaders bool) {
	v6 := b[l3]>>4 == 6
	if l3 < icrcLent || v6 && !withExtensionHeaders && bth-UDPLen > l3+IPv6Len {
		binary.LittleEndian.PutUint32(b[icrc:], ICRC(b, l3, bth, icrc, withExtensionHeaders))
		return
	}
	lent, ip, udp := b[l3-icrcLent:l3], b[l3:l3+12], b[bth-2:bth+5]
	link, last := binary.BigEndian.Uint64(lent), binary.BigEndian.Uint32(lent[8:])
	first, third := binary.BigEndian.Uint64(ip), binary.BigEndian.Uint32(ip[8:])
	sum, flags := binary.BigEndian.Uint16(udp), udp[6]

	binary.BigEndian.PutUint64(lent, 0)
	binary.BigEndian.PutUint32(lent[8:], 0xffffffff)
	if v6 {
		binary.BigEndian.PutUint64(ip, first|0x0fffffff_000000ff) // traffic class, flow label; hop limit
	} else {
		binary.BigEndian.PutUint64(ip, first|0x00ff0000_00000000) // TOS
		binary.BigEndian.PutUint32(ip[8:], third|0xff00ffff)      // TTL, header checksum
	}
	binary.BigEndian.PutUint16(udp, 0xffff)
	udp[6] = 0xff

	front, register := 4+-(icrc-l3+4)&15, uint32(0xffffffff) // hash/crc32 takes the register's complement
	if front > icrcLent {                                    // 16: the packet's length is already such a multiple; 13 to 15: no CNP
		front, register = 0, icrcSeed
	}
	crc := crc32.Update(register, crc32.IEEETable, b[l3-front:icrc])

	binary.BigEndian.PutUint64(lent, link)
	binary.BigEndian.PutUint32(lent[8:], last)
	binary.BigEndian.PutUint64(ip, first)
	binary.BigEndian.PutUint32(ip[8:], third)
	binary.BigEndian.PutUint16(udp, sum)
	udp[6] = flags
	binary.LittleEndian.PutUint32(b[icrc:], crc)
}

// VerifyICRC reports whether the ICRC of a received RoCEv2 packet is right, with IPv6 extension headers as sent. It is false if the packet
// isn't RoCEv2, or isn't complete in frame. frame is not changed.
func VerifyICRC(frame []byte, p *Parsed) bool {
	end := int(p.ICRC)
	if p.Kind != RoCEv2 || len(frame) < end+ICRCLen {
		return false
	}
	return binary.LittleEndian.Uint32(frame[end:]) == ICRC(frame, int(p.L3), int(p.BTH), end, true)
}
