package packet

import (
	"encoding/binary"
	"hash/crc32"
	"unsafe"
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

// PutICRC computes the ICRC of a packet being built and writes its four octets, the least significant first, at icrc. Arguments and result
// are those of ICRC, in a fraction of the time. No other goroutine may use b: during the computation, masked fields have other values.
func PutICRC(b []byte, l3, bth, icrc int, withExtensionHeaders bool) {
	whole := b[l3 : icrc+ICRCLen]
	v6 := whole[0]>>4 == 6
	if v6 && !withExtensionHeaders && bth-UDPLen > l3+IPv6Len {
		binary.LittleEndian.PutUint32(b[icrc:], ICRC(b, l3, bth, icrc, withExtensionHeaders))
		return
	}
	ip, udp := (*[12]byte)(whole), (*[7]byte)(b[bth-2:])
	first, third := binary.LittleEndian.Uint64(ip[:]), binary.LittleEndian.Uint32(ip[8:])
	checksum, flags := binary.LittleEndian.Uint16(udp[:]), udp[6]
	masks := &icrcMasks[0]
	if v6 {
		masks = &icrcMasks[1]
	}
	binary.LittleEndian.PutUint64(ip[:], first|masks.first)
	binary.LittleEndian.PutUint32(ip[8:], third|masks.third)
	binary.LittleEndian.PutUint16(udp[:], 0xffff)
	udp[6] = 0xff

	PutMaskedICRC(whole)
	binary.LittleEndian.PutUint64(ip[:], first)
	binary.LittleEndian.PutUint32(ip[8:], third)
	binary.LittleEndian.PutUint16(udp[:], checksum)
	udp[6] = flags
}

// PutMaskedICRC computes the ICRC of a packet whose masked fields are ones: those that ICRC counts as ones. It writes the ICRC's four octets,
// which are the last ones of ip. A packet that is built in this way gets the values of the masked fields afterwards: MaskIPv4, MaskIPv6 and
// MaskCNP write the headers with ones.
func PutMaskedICRC(ip []byte) {
	n := len(ip) - ICRCLen
	if folds && uint(n-foldLeast) <= foldMost-foldLeast && n%4 == 0 {
		putFoldedCRC(unsafe.SliceData(ip), n)
	} else {
		putSeededCRC(ip)
	}
}

// icrcMasks are the bits of an IP header's first twelve octets that count as ones, of IPv4 and of IPv6.
var icrcMasks = [2]struct {
	first uint64
	third uint32
}{
	{0x0000ff00, 0xffff00ff}, // TOS; TTL and header checksum
	{0xff000000_ffffff0f, 0}, // traffic class and flow label, hop limit
}

// putFoldedCRC takes these numbers of octets. For more of them hash/crc32 is faster: it has more to do at first, and then folds four blocks at a time.
const foldLeast, foldMost = 16, 256

// putSeededCRC writes to the last four octets of b the CRC-32 of eight octets 0xFF and the octets before them.
func putSeededCRC(b []byte) {
	n := len(b) - ICRCLen
	binary.LittleEndian.PutUint32(b[n:], crc32.Update(icrcSeed, crc32.IEEETable, b[:n]))
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
