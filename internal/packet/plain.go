package packet

import (
	"encoding/binary"
	"unsafe"

	"github.com/cnpgate/cnpgate/internal/burst"
)

// Nearly all traffic is plain frames: with one VLAN tag or none, without IP options or extension headers, so that their headers are at
// fixed offsets. ParsePlain parses a run of them in one loop without calls, as far as forwarding needs them: it reads each byte once, and
// writes a cache line of eight words a packet. If it and Parse differ, Parse is right and a test fails.

// Run describes the frames that ParsePlain has parsed.
type Run struct {
	N     int    // how many
	Bytes uint64 // their lengths
	// Any and All are the bitwise OR and AND of their traffic classes or TOS octets, DSCP << 2 | ECN (RFC 2474 3, RFC 3168 5).
	Any, All uint8
}

// recordWords is a Record as words in the memory of a little-endian processor.
type recordWords struct {
	flow FlowWords
	size uint64 // PSN, and at 32 Len
	rest uint64 // SrcPort, Opcode, TOS, IP and Kind
}

var _ [unsafe.Sizeof(Record{})]byte = [unsafe.Sizeof(recordWords{})]byte{}

// Where fields are in recordWords.rest.
const (
	restOpcode = 16
	restTOS    = 24
	restIP     = 32
	restKind   = 48

	restPlain = uint64(RoCEv2)<<restKind | EthernetLen<<restIP
)

// Number of bytes of an untagged frame that hold all plain headers, and the minimum length with the ICRC.
const (
	plain4 = EthernetLen + IPv4Len + UDPLen + BTHLen
	plain6 = EthernetLen + IPv6Len + UDPLen + BTHLen
	least4 = plain4 + ICRCLen
	least6 = plain6 + ICRCLen
)

// plainHeaders has, for the opcode of a plain packet, the length of the BTH and the extended transport headers; for all others a length that no
// packet has. A CNP is not plain: it has no flow.
var plainHeaders = func() (n [256]uint16) {
	for i := range opcodes {
		n[i] = 0xffff
		if opcodes[i].flags&opcodePlain != 0 {
			n[i] = BTHLen + uint16(opcodes[i].len)
		}
	}
	return n
}()

// Numbers of two octets as in a frame: comparing one is a single instruction.
const (
	etherTypeIPv4 = EtherTypeIPv4>>8 | EtherTypeIPv4&0xff<<8
	etherTypeIPv6 = EtherTypeIPv6>>8 | EtherTypeIPv6&0xff<<8
	etherTypeCTag = EtherTypeCTag>>8 | EtherTypeCTag&0xff<<8
)

// ParsePlain writes the records of plain frames from the first on, and stops at a frame that isn't plain, which the caller passes to Parse.
// base is the base address of the frames' data, port the ingress port; records must be at least as long as frames. The record of the frame at
// which it stops is undefined.
func ParsePlain(base unsafe.Pointer, frames []burst.Frame, port uint64, records []Record) (r Run) {
	records = records[:len(frames)]
	if vectors {
		return parsePlain(base, frames, port, records)
	}
	return parsePlainGo(base, frames, port, records)
}

// parsePlainGo is ParsePlain for any processor, and the specification of parsePlain.
func parsePlainGo(base unsafe.Pointer, frames []burst.Frame, port uint64, records []Record) (r Run) {
	r.All = 0xff
	i := 0
run:
	for ; i < len(frames); i++ {
		w := (*recordWords)(unsafe.Pointer(&records[i]))
		size, contiguous := frames[i].Len, frames[i].Head
		if contiguous < least4 {
			break run
		}
		h := (*[plain4]byte)(unsafe.Add(base, int(frames[i].Data)))
		etherType, place, tagged := binary.LittleEndian.Uint16(h[12:]), port, uint32(0)
		if etherType == etherTypeCTag { // the part after addresses and tag is as in an untagged frame
			place |= (cTag | uint64(binary.BigEndian.Uint16(h[EthernetLen:])&vidMask)) << 16
			tagged = VLANTagLen
			h = (*[plain4]byte)(unsafe.Add(unsafe.Pointer(h), VLANTagLen))
			etherType = binary.LittleEndian.Uint16(h[12:])
		}
		var udp *[UDPLen + BTHLen]byte
		var tos uint8
		var l4 uint32 // offset of the UDP header in the frame
		switch etherType {
		case etherTypeIPv4:
			// One comparison for the fragment offset, MF and the protocol, with the Time to Live between them.
			if h[14] != 0x45 || binary.LittleEndian.Uint32(h[20:])&0xff00ff3f != ProtoUDP<<24 {
				break run
			}
			udp = (*[UDPLen + BTHLen]byte)(h[EthernetLen+IPv4Len:])
			if uint32(binary.BigEndian.Uint16(h[16:])) != uint32(binary.BigEndian.Uint16(udp[4:]))+IPv4Len {
				break run
			}
			addresses := binary.BigEndian.Uint64(h[26:])
			w.flow.Src, w.flow.Dst = Addr{0, mapped | addresses>>32}, Addr{0, mapped | uint64(uint32(addresses))}
			tos, l4 = h[15], EthernetLen+IPv4Len
		case etherTypeIPv6:
			if contiguous < least6 {
				break run
			}
			h := (*[plain6]byte)(unsafe.Pointer(h))
			udp = (*[UDPLen + BTHLen]byte)(h[EthernetLen+IPv6Len:])
			first := binary.BigEndian.Uint32(h[14:])
			if first>>28 != 6 || h[20] != ProtoUDP || binary.BigEndian.Uint16(h[18:]) != binary.BigEndian.Uint16(udp[4:]) {
				break run
			}
			src := Addr{binary.BigEndian.Uint64(h[22:]), binary.BigEndian.Uint64(h[30:])}
			dst := Addr{binary.BigEndian.Uint64(h[38:]), binary.BigEndian.Uint64(h[46:])}
			if src.Hi == 0 || dst.Hi == 0 { // it may be IPv4-mapped
				break run
			}
			w.flow.Src, w.flow.Dst = src, dst
			tos, l4 = uint8(first>>20), EthernetLen+IPv6Len
		default:
			break run
		}
		l4 += tagged
		udpLen := uint32(binary.BigEndian.Uint16(udp[4:]))
		opcode, ports := udp[8], binary.BigEndian.Uint32(udp[:])
		headers := uint32(plainHeaders[opcode])
		if uint16(ports) != RoCEv2Port || udp[9]&0xf != 0 || headers+UDPLen+ICRCLen > udpLen ||
			l4+UDPLen+headers > contiguous || l4+udpLen > size {
			break run
		}
		qps := uint64(binary.BigEndian.Uint32(udp[12:]) & 0xffffff)
		if opcode>>5 == uint8(UDSendOnly>>5) { // the payload lies after a DETH, which is contiguous
			qps |= uint64(binary.BigEndian.Uint32((*[DETHLen]byte)(unsafe.Add(unsafe.Pointer(udp), UDPLen+BTHLen))[4:])&0xffffff) << 32
		}
		w.flow.QPs, w.flow.Scope = qps, Scope(place)
		w.size = uint64(binary.BigEndian.Uint32(udp[16:])&0xffffff) | uint64(size)<<32
		w.rest = restPlain + uint64(tagged)<<restIP | uint64(ports>>16) | uint64(opcode)<<restOpcode | uint64(tos)<<restTOS
		r.Bytes += uint64(size)
		r.Any |= tos
		r.All &= tos
	}
	r.N = i
	return r
}

// cTag is the Tag of TPID 0x8100 and VID 0: the only TPID that a plain frame has.
const cTag = 1 << tagWhich
