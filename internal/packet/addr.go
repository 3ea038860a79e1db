package packet

import (
	"encoding/binary"
	"net/netip"
)

// Addr is an IPv6 address, or an IPv4 address in its IPv4-mapped form (RFC 4291 2.5.5.2), as two words in host byte order:
// the hot path compares and hashes it with one memory access.
type Addr struct{ Hi, Lo uint64 }

const mapped = 0xffff << 32

// AddrFrom4 reads four octets in network byte order.
func AddrFrom4(b []byte) Addr { return Addr{0, mapped | uint64(binary.BigEndian.Uint32(b))} }

// AddrFrom16 reads sixteen octets in network byte order.
func AddrFrom16(b []byte) Addr {
	return Addr{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:16])}
}

// AddrFrom converts a netip.Addr; its zone is dropped.
func AddrFrom(a netip.Addr) Addr {
	b := a.As16()
	return AddrFrom16(b[:])
}

// Is4 reports whether the address is IPv4-mapped.
func (a Addr) Is4() bool { return a.Hi == 0 && a.Lo>>32 == 0xffff }

// Unicast reports whether the address can be a host's: a forged one must not make the gateway send to a multicast, broadcast, unspecified or
// loopback address (RFC 1122 3.2.1.3, RFC 4291 2.5.2, 2.5.3 and 2.7).
func (a Addr) Unicast() bool {
	if a.Is4() {
		first := uint8(a.Lo >> 24)
		return first != 0 && first != 127 && first < 224
	}
	return a.Hi>>56 != 0xff && (a.Hi != 0 || a.Lo > 1)
}

// put4 writes the IPv4 part, 4 octets in network byte order.
func (a Addr) put4(b []byte) { binary.BigEndian.PutUint32(b, uint32(a.Lo)) }

// Put16 writes 16 octets in network byte order.
func (a Addr) Put16(b []byte) {
	binary.BigEndian.PutUint64(b, a.Hi)
	binary.BigEndian.PutUint64(b[8:16], a.Lo)
}

// Netip converts to a netip.Addr; an IPv4-mapped address becomes an IPv4 one.
func (a Addr) Netip() netip.Addr {
	var b [16]byte
	a.Put16(b[:])
	return netip.AddrFrom16(b).Unmap()
}
