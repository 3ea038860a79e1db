// Package fastpath has the passes over a burst that read or write every frame, and what else a worker does in assembly. Each function in
// assembly has a twin in Go that specifies it.
package fastpath

import (
	"encoding/binary"
	"unsafe"

	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// Nearly all traffic is plain frames: with one VLAN tag or none, without IP options or extension headers, so that their headers are at
// fixed offsets. ParsePlain parses a run of them in one loop without calls, as far as forwarding needs them: it reads each byte once, and
// writes a cache line of eight words a packet. If it and packet.Parse differ, Parse is right and a test fails.

// Run describes the frames that ParsePlain has parsed.
type Run struct {
	N     int    // how many
	Bytes uint64 // their lengths
	// Any and All are the bitwise OR and AND of their traffic classes or TOS octets, DSCP << 2 | ECN (RFC 2474 3, RFC 3168 5).
	Any, All uint8
	Opcodes  uint8 // bitwise OR of their opcodes
}

// Number of bytes of an untagged frame that hold all plain headers, and the minimum length with the ICRC.
const (
	plain4 = packet.EthernetLen + packet.IPv4Len + packet.UDPLen + packet.BTHLen
	plain6 = packet.EthernetLen + packet.IPv6Len + packet.UDPLen + packet.BTHLen
	least4 = plain4 + packet.ICRCLen
	least6 = plain6 + packet.ICRCLen
)

// plainHeaders has, for the opcode of a plain packet, the length of the BTH and the extended transport headers; for all others a length that no
// packet has.
var plainHeaders = func() (n [256]uint16) {
	for i := range n {
		n[i] = 0xffff
		if o := packet.Opcode(i); o.Known() && o.Headers()&packet.HasRDETH == 0 {
			n[i] = packet.BTHLen + uint16(o.HeadersLen())
		}
	}
	return n
}()

// Numbers of two octets as in a frame: comparing one is a single instruction.
const (
	etherTypeIPv4 = packet.EtherTypeIPv4>>8 | packet.EtherTypeIPv4&0xff<<8
	etherTypeIPv6 = packet.EtherTypeIPv6>>8 | packet.EtherTypeIPv6&0xff<<8
	etherTypeCTag = packet.EtherTypeCTag>>8 | packet.EtherTypeCTag&0xff<<8

	cTag = 1 << 12 // packet.MakeTag of EtherTypeCTag and VID 0: the only TPID that a plain frame has
)

// ParsePlain writes the records of plain frames from the first on, and stops at a frame that isn't plain, which the caller passes to packet.Parse.
// base is the base address of the frames' data, port the ingress port; records must be at least as long as frames. The record of the frame at
// which it stops is undefined. That of a CNP has the key that another packet with its addresses and QP would have.
func ParsePlain(base unsafe.Pointer, frames []burst.Frame, port uint64, records []packet.Record) (r Run) {
	records = records[:len(frames)]
	if vectors {
		return parsePlain(base, frames, port, records)
	}
	return ParsePlainGo(base, frames, port, records)
}

// ParsePlainGo is ParsePlain for any processor, and the specification of parsePlain.
func ParsePlainGo(base unsafe.Pointer, frames []burst.Frame, port uint64, records []packet.Record) (r Run) {
	r.All = 0xff
	i := 0
run:
	for ; i < len(frames); i++ {
		w := &records[i]
		size, contiguous := frames[i].Len, frames[i].Head
		if contiguous < least4 {
			break run
		}
		h := (*[plain4]byte)(unsafe.Add(base, int(frames[i].Data)))
		etherType, place, tagged := binary.LittleEndian.Uint16(h[12:]), port, uint32(0)
		if etherType == etherTypeCTag { // the part after addresses and tag is as in an untagged frame
			place |= (cTag | uint64(binary.BigEndian.Uint16(h[packet.EthernetLen:])&0xfff)) << 16
			tagged = packet.VLANTagLen
			h = (*[plain4]byte)(unsafe.Add(unsafe.Pointer(h), packet.VLANTagLen))
			etherType = binary.LittleEndian.Uint16(h[12:])
		}
		var udp *[packet.UDPLen + packet.BTHLen]byte
		var tos uint8
		var l4 uint32 // offset of the UDP header in the frame
		switch etherType {
		case etherTypeIPv4:
			ip := (*[packet.IPv4Len]byte)(h[packet.EthernetLen:])
			// One comparison for the fragment offset, MF and the protocol, with the Time to Live between them.
			if ip[0] != 0x45 || binary.LittleEndian.Uint32(ip[6:])&0xff00ff3f != packet.ProtoUDP<<24 {
				break run
			}
			udp = (*[packet.UDPLen + packet.BTHLen]byte)(h[packet.EthernetLen+packet.IPv4Len:])
			if uint32(binary.BigEndian.Uint16(ip[2:])) != uint32(binary.BigEndian.Uint16(udp[4:]))+packet.IPv4Len {
				break run
			}
			w.Flow.Src, w.Flow.Dst = packet.AddrFrom4(ip[12:]), packet.AddrFrom4(ip[16:])
			tos, l4 = ip[1], packet.EthernetLen+packet.IPv4Len
		case etherTypeIPv6:
			if contiguous < least6 {
				break run
			}
			h := (*[plain6]byte)(unsafe.Pointer(h))
			ip := (*[packet.IPv6Len]byte)(h[packet.EthernetLen:])
			udp = (*[packet.UDPLen + packet.BTHLen]byte)(h[packet.EthernetLen+packet.IPv6Len:])
			first := binary.BigEndian.Uint32(ip[0:])
			if first>>28 != 6 || ip[6] != packet.ProtoUDP || binary.BigEndian.Uint16(ip[4:]) != binary.BigEndian.Uint16(udp[4:]) {
				break run
			}
			src, dst := packet.AddrFrom16(ip[8:]), packet.AddrFrom16(ip[24:])
			if src.Hi == 0 || dst.Hi == 0 { // it may be IPv4-mapped
				break run
			}
			w.Flow.Src, w.Flow.Dst = src, dst
			tos, l4 = uint8(first>>20), packet.EthernetLen+packet.IPv6Len
		default:
			break run
		}
		l4 += tagged
		udpLen := uint32(binary.BigEndian.Uint16(udp[4:]))
		opcode, ports := udp[8], binary.BigEndian.Uint32(udp[:])
		headers := uint32(plainHeaders[opcode])
		if uint16(ports) != packet.RoCEv2Port || udp[9]&0xf != 0 || headers+packet.UDPLen+packet.ICRCLen > udpLen ||
			l4+packet.UDPLen+headers > contiguous || l4+udpLen > size {
			break run
		}
		qps := uint64(binary.BigEndian.Uint32(udp[12:]) & 0xffffff)
		if opcode>>5 == uint8(packet.UDSendOnly>>5) { // the payload lies after a DETH, which is contiguous
			qps |= uint64(binary.BigEndian.Uint32((*[packet.DETHLen]byte)(unsafe.Add(unsafe.Pointer(udp), packet.UDPLen+packet.BTHLen))[4:])&0xffffff) << 32
		}
		w.Flow.QPs, w.Flow.Scope = qps, packet.Scope(place)
		w.PSN, w.Len = binary.BigEndian.Uint32(udp[16:])&0xffffff, size
		w.SrcPort, w.Opcode, w.TOS = uint16(ports>>16), packet.Opcode(opcode), tos
		w.IP, w.Kind = uint16(packet.EthernetLen+tagged), packet.RoCEv2
		r.Bytes += uint64(size)
		r.Any |= tos
		r.All &= tos
		r.Opcodes |= opcode
	}
	r.N = i
	return r
}
