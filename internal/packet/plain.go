package packet

import (
	"encoding/binary"
	"unsafe"
)

// The plain frames that nearly all traffic is made of, with one VLAN tag or none, without IP options, extension headers or DETH, have
// their headers at fixed offsets. parsePlain and parsePlain6 look at each octet once and write eight octets of p at a time, which
// takes half the time of parseAny or less (BenchmarkParse). They leave p alone and return false whenever a frame is anything but
// plain; for a plain one they find what parseAny finds. Where the two differ, parseAny is right and a test fails.

// Where fields are in the first eight octets of a header, taken as one number: the shift that brings a field to the low end.
const (
	ipv4TotalLen   = 32
	ipv4TOS        = 48
	ipv6PayloadLen = 16
	ipv6Class      = 52
)

// The octets of an untagged frame in which all of its plain headers lie.
const (
	plain4 = EthernetLen + IPv4Len + UDPLen + BTHLen
	plain6 = EthernetLen + IPv6Len + UDPLen + BTHLen
)

// plainExt is the length of an opcode's extended transport headers and 1, or 0 if its packets aren't plain.
var plainExt = func() (n [256]uint8) {
	for i := range opcodes {
		if opcodes[i].flags&opcodePlain != 0 {
			n[i] = opcodes[i].len + 1
		}
	}
	return n
}()

// Numbers of two octets as they lie in a frame: to compare one of them is a single instruction.
const (
	etherTypeIPv4 = EtherTypeIPv4>>8 | EtherTypeIPv4&0xff<<8
	etherTypeIPv6 = EtherTypeIPv6>>8 | EtherTypeIPv6&0xff<<8
	etherTypeCTag = EtherTypeCTag>>8 | EtherTypeCTag&0xff<<8
	roceV2Port    = RoCEv2Port>>8 | RoCEv2Port&0xff<<8
)

// words is a Parsed in words of eight octets, as it lies in the memory of a processor whose numbers begin with the low end. A field
// belongs to the word of the first one named, at the shift of the distance from there.
type words struct {
	src, dst  Addr
	kind      uint64 // Kind, Family, DSCP, ECN, Proto, Tags, EtherType
	offsets   uint64 // L3, L4, BTH, Ext
	tags      uint64 // OuterVID, InnerVID, DstOpts, HopOpts
	ports     uint64 // SrcPort, DstPort, IPEnd
	extent    uint64 // ICRC, Payload, Opcode, BTHFlags
	qps       uint64 // DestQP, SourceQP
	psn, none uint32
}

// What is the same in all plain frames of a kind.
const (
	kind4    = uint64(RoCEv2) | 4<<8 | ProtoUDP<<32 | EtherTypeIPv4<<48
	kind6    = uint64(RoCEv2) | 6<<8 | ProtoUDP<<32 | EtherTypeIPv6<<48
	offsets4 = EthernetLen | (plain4-BTHLen-UDPLen)<<16 | (plain4-BTHLen)<<32 | plain4<<48
	offsets6 = EthernetLen | (plain6-BTHLen-UDPLen)<<16 | (plain6-BTHLen)<<32 | plain6<<48
)

func class(dscp, ecn uint8) uint64 { return uint64(dscp)<<16 | uint64(ecn)<<24 }

func ports(src uint16, ipEnd uint32) uint64 {
	return uint64(src) | RoCEv2Port<<16 | uint64(ipEnd)<<32
}

// extent takes the first word of the BTH, as a number.
func extent(icrc, payload uint32, opcode uint8, qp uint32) uint64 {
	return uint64(icrc) | uint64(payload)<<32 | uint64(opcode)<<48 | uint64(qp>>24)<<56
}

// parsePlain is for frames of IPv4, and hands on those that are of IPv6 or have a tag: a function more would take as long as a tenth of it.
func parsePlain(b []byte, frameLen uint32, p *Parsed) bool {
	const l4, bth = EthernetLen + IPv4Len, plain4 - BTHLen
	if len(b) < plain4 {
		return false
	}
	h := (*[plain4]byte)(b)
	if etherType := binary.LittleEndian.Uint16(h[12:]); etherType != etherTypeIPv4 {
		return etherType == etherTypeIPv6 && parsePlain6(b, frameLen, p) || etherType == etherTypeCTag && parseTagged(b, frameLen, p)
	}
	ip, ext := binary.BigEndian.Uint64(h[EthernetLen:]), uint32(plainExt[h[bth]])
	if ip&(0xff<<56|ipv4MFOffset) != 0x45<<56 || h[EthernetLen+9] != ProtoUDP || binary.LittleEndian.Uint16(h[l4+2:]) != roceV2Port ||
		ext == 0 || h[bth+1]&0xf != 0 {
		return false
	}
	end, udpEnd, payload := EthernetLen+uint32(ip>>ipv4TotalLen)&0xffff, l4+uint32(binary.BigEndian.Uint16(h[l4+4:])), plain4-1+ext
	if payload+ICRCLen > udpEnd || udpEnd > end || end > frameLen || int(payload) > len(b) {
		return false
	}
	tos, qp, w := uint8(ip>>ipv4TOS), binary.BigEndian.Uint32(h[bth+4:]), (*words)(unsafe.Pointer(p))
	w.src = Addr{0, mapped | uint64(binary.BigEndian.Uint32(h[EthernetLen+12:]))}
	w.dst = Addr{0, mapped | uint64(binary.BigEndian.Uint32(h[EthernetLen+16:]))}
	w.kind, w.offsets, w.tags = kind4|class(tos>>2, tos&3), offsets4, 0
	w.ports = ports(binary.BigEndian.Uint16(h[l4:]), end)
	w.extent = extent(udpEnd-ICRCLen, payload, h[bth], qp)
	w.qps, w.psn = uint64(qp&0xffffff), binary.BigEndian.Uint32(h[bth+8:])&0xffffff
	return true
}

func parsePlain6(b []byte, frameLen uint32, p *Parsed) bool {
	const l4, bth = EthernetLen + IPv6Len, plain6 - BTHLen
	if len(b) < plain6 {
		return false
	}
	h := (*[plain6]byte)(b)
	ip, ext := binary.BigEndian.Uint64(h[EthernetLen:]), uint32(plainExt[h[bth]])
	if ip>>60 != 6 || h[EthernetLen+6] != ProtoUDP || binary.LittleEndian.Uint16(h[l4+2:]) != roceV2Port || ext == 0 || h[bth+1]&0xf != 0 {
		return false
	}
	end, udpEnd, payload := l4+uint32(ip>>ipv6PayloadLen)&0xffff, l4+uint32(binary.BigEndian.Uint16(h[l4+4:])), plain6-1+ext
	if payload+ICRCLen > udpEnd || udpEnd > end || end > frameLen || int(payload) > len(b) {
		return false
	}
	tc, qp, w := uint8(ip>>ipv6Class), binary.BigEndian.Uint32(h[bth+4:]), (*words)(unsafe.Pointer(p))
	w.src = Addr{binary.BigEndian.Uint64(h[EthernetLen+8:]), binary.BigEndian.Uint64(h[EthernetLen+16:])}
	w.dst = Addr{binary.BigEndian.Uint64(h[EthernetLen+24:]), binary.BigEndian.Uint64(h[EthernetLen+32:])}
	w.kind, w.offsets, w.tags = kind6|class(tc>>2, tc&3), offsets6, 0
	w.ports = ports(binary.BigEndian.Uint16(h[l4:]), end)
	w.extent = extent(udpEnd-ICRCLen, payload, h[bth], qp)
	w.qps, w.psn = uint64(qp&0xffffff), binary.BigEndian.Uint32(h[bth+8:])&0xffffff
	return true
}

// parseTagged takes a plain frame behind one VLAN tag: what follows its addresses and the tag is an untagged one's.
func parseTagged(b []byte, frameLen uint32, p *Parsed) bool {
	if len(b) < VLANTagLen+plain4 || frameLen < VLANTagLen+plain4 {
		return false
	}
	behind := b[VLANTagLen:]
	if binary.LittleEndian.Uint16(behind[12:]) == etherTypeCTag || !parsePlain(behind, frameLen-VLANTagLen, p) {
		return false
	}
	const each = VLANTagLen * (1<<48 | 1<<32 | 1<<16 | 1)
	w := (*words)(unsafe.Pointer(p))
	w.kind |= 1 << 40
	w.offsets += each
	w.tags = uint64(binary.BigEndian.Uint16(b[EthernetLen:]) & 0xfff)
	w.ports += VLANTagLen << 32
	w.extent += VLANTagLen<<32 | VLANTagLen
	return true
}
