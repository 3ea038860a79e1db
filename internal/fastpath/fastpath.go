// Package fastpath has the passes over a burst that read or write every frame, and what else a worker does in assembly. Each function in
// assembly has a twin in Go that specifies it.
package fastpath

import (
	"encoding/binary"
	"math/bits"
	"sync/atomic"
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
	return parsePlainGo(base, frames, port, records)
}

// parsePlainGo is ParsePlain for any processor, and the specification of parsePlain.
func parsePlainGo(base unsafe.Pointer, frames []burst.Frame, port uint64, records []packet.Record) (r Run) {
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
			// One comparison for the fragment offset, MF and the protocol, with the Time to Live between them.
			if h[14] != 0x45 || binary.LittleEndian.Uint32(h[20:])&0xff00ff3f != packet.ProtoUDP<<24 {
				break run
			}
			udp = (*[packet.UDPLen + packet.BTHLen]byte)(h[packet.EthernetLen+packet.IPv4Len:])
			if uint32(binary.BigEndian.Uint16(h[16:])) != uint32(binary.BigEndian.Uint16(udp[4:]))+packet.IPv4Len {
				break run
			}
			w.Flow.Src, w.Flow.Dst = packet.AddrFrom4(h[26:]), packet.AddrFrom4(h[30:])
			tos, l4 = h[15], packet.EthernetLen+packet.IPv4Len
		case etherTypeIPv6:
			if contiguous < least6 {
				break run
			}
			h := (*[plain6]byte)(unsafe.Pointer(h))
			udp = (*[packet.UDPLen + packet.BTHLen]byte)(h[packet.EthernetLen+packet.IPv6Len:])
			first := binary.BigEndian.Uint32(h[14:])
			if first>>28 != 6 || h[20] != packet.ProtoUDP || binary.BigEndian.Uint16(h[18:]) != binary.BigEndian.Uint16(udp[4:]) {
				break run
			}
			src, dst := packet.AddrFrom16(h[22:]), packet.AddrFrom16(h[38:])
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

// MarkBurst marks, as packet.MarkCE does, the frames that these has a bit for, and returns a bit for each one that it has marked. base is the base
// address of the frames' data; records are those of the frames, which it doesn't change: an IP header is of version 4 or 6. There are at most 64
// frames.
func MarkBurst(base unsafe.Pointer, frames []burst.Frame, records []packet.Record, these uint64) (marked uint64) {
	return markBurst(base, frames, records[:len(frames)], these&(1<<len(frames)-1))
}

// markBurstGo is the specification of markBurst.
func markBurstGo(base unsafe.Pointer, frames []burst.Frame, records []packet.Record, these uint64) (marked uint64) {
	for ; these != 0; these &= these - 1 {
		i := bits.TrailingZeros64(these)
		f := &frames[i]
		if packet.MarkCE(unsafe.Slice((*byte)(unsafe.Add(base, int(f.Data))), f.Head), records[i].IP, records[i].ECN()) {
			marked |= 1 << i
		}
	}
	return marked
}

// Markable returns a bit for each packet that MarkBurst would mark of those that these has a bit for.
func Markable(records []packet.Record, these uint64) (markable uint64) {
	for ; these != 0; these &= these - 1 {
		i := bits.TrailingZeros64(these)
		if ecn := records[i].ECN(); ecn != packet.NotECT && ecn != packet.CE {
			markable |= 1 << i
		}
	}
	return markable
}

// StoreSet stores from[i] in to[i] for each bit i of set. One goroutine stores there, and others read.
func StoreSet(to []atomic.Uint64, from []uint64, set uint64) {
	n := min(len(to), len(from), 64)
	if set &= 1<<n - 1; set != 0 {
		storeSet(&to[0], &from[0], set)
	}
}

// storeSetGo is the specification of storeSet: to and from are the first elements of arrays with an element for each bit of set.
func storeSetGo(to *atomic.Uint64, from *uint64, set uint64) {
	for ; set != 0; set &= set - 1 {
		at := bits.TrailingZeros64(set) * 8
		(*atomic.Uint64)(unsafe.Add(unsafe.Pointer(to), at)).Store(*(*uint64)(unsafe.Add(unsafe.Pointer(from), at)))
	}
}
