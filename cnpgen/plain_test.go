package cnpgen

import (
	"encoding/binary"
	"hash/crc32"
)

// The checks below are written from the specifications alone, slowly, so as not to repeat a mistake of internal/packet.

// plainICRC computes the ICRC of the IP packet ip that ends in one (IBTA Annex A17): a copy with the fields masked, and one CRC.
// udp is the UDP header's offset; extensions says whether what lies between it and an IPv6 header counts.
func plainICRC(ip []byte, udp int, extensions bool) [4]byte {
	masked := append([]byte(nil), ip[:len(ip)-4]...)
	ones := []int{1, 8, 10, 11} // IPv4: TOS, TTL, header checksum
	if ip[0]>>4 == 6 {
		masked[0] |= 0x0f
		ones = []int{1, 2, 3, 7} // traffic class, flow label, hop limit
	}
	for _, i := range append(ones, udp+6, udp+7, udp+12) {
		masked[i] = 0xff
	}
	if ip[0]>>4 == 6 && !extensions {
		masked = append(masked[:40], masked[udp:]...)
	}
	var icrc [4]byte
	binary.LittleEndian.PutUint32(icrc[:], crc32.ChecksumIEEE(append([]byte("\xff\xff\xff\xff\xff\xff\xff\xff"), masked...)))
	return icrc
}

// plainSum is the one's complement sum of 16-bit words (RFC 1071): 0xFFFF over data with a right checksum in it.
func plainSum(parts ...[]byte) uint16 {
	sum := 0
	for _, b := range parts {
		for i := 0; i < len(b); i += 2 {
			sum += int(b[i])<<8 + int(b[i+1])
			if sum > 0xffff {
				sum -= 0xffff
			}
		}
	}
	return uint16(sum)
}
