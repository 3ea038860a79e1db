// Package fletcher has the checksum of link-state advertisements: OSPF's (RFC 2328 12.1.7) and IS-IS's (ISO/IEC 8473-1 6.11) are the same.
package fletcher

// Sum returns the checksum of b, whose two octets at offset at are those of the checksum; Sum counts them as 0.
func Sum(b []byte, at int) uint16 {
	c0, c1 := sums(b, at)
	// The two octets make both sums 0 modulo 255.
	x := (int64(len(b)-at-1)*c0 - c1) % 255
	if x <= 0 {
		x += 255
	}
	y := 510 - c0 - x
	if y > 255 {
		y -= 255
	}
	return uint16(x)<<8 | uint16(y)
}

// sums are the two running sums modulo 255, without the octets at offset at.
func sums(b []byte, at int) (c0, c1 int64) {
	for i, v := range b {
		if i != at && i != at+1 {
			c0 += int64(v)
		}
		c0 %= 255
		c1 = (c1 + c0) % 255
	}
	return c0, c1
}
