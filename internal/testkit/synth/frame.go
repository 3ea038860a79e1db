package synth

import (
	"encoding/binary"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// Frame builds the octets of an event's frame, with right checksums and ICRC. Any payload but a MAD's is a pattern.
func Frame(e *Event) []byte {
	b := make([]byte, e.Length())
	Head(e, b)
	p := &e.Packet
	if e.MAD == nil && p.Opcode != packet.CNP {
		for i := int(p.Payload); i < int(p.ICRC)-int(e.Pad); i++ {
			b[i] = byte(i)
		}
	}
	packet.PutICRC(b, int(p.L3), int(p.BTH), int(p.ICRC), true)
	return b
}

// Head writes the frame's headers and its MAD, if it has one, into b and returns their length: what a reader of headers needs to see
// of the frame, which is e.Length() octets long. b must have room for HeadLen octets.
func Head(e *Event, b []byte) int {
	p := &e.Packet
	n := int(p.Payload)
	clear(b[:n])
	putEthernet(e, b)
	putIP(p, b[p.L3:])
	udp := packet.UDPHeader{SrcPort: p.SrcPort, DstPort: p.DstPort, Length: uint16(p.IPEnd) - p.L4}
	udp.Put(b[p.L4:])
	bth := packet.BTH{Opcode: p.Opcode, PadCount: e.Pad, PKey: packet.DefaultPKey, Flags: p.BTHFlags, DestQP: p.DestQP,
		AckReq: e.AckReq, PSN: p.PSN}
	bth.Put(b[p.BTH:])
	putExtended(e, b[p.Ext:])
	if e.MAD != nil {
		n += copy(b[n:], e.MAD[:])
	}
	return n
}

// HeadLen is as long as Head's result can become: Ethernet with a tag, IPv6, UDP, BTH, DETH and a MAD.
const HeadLen = 18 + packet.IPv6Len + packet.UDPLen + packet.BTHLen + packet.DETHLen + MADLen

func putEthernet(e *Event, b []byte) {
	p := &e.Packet
	b[0], b[6] = 2, 2
	binary.BigEndian.PutUint32(b[2:], uint32(p.Dst.Lo))
	binary.BigEndian.PutUint32(b[8:], uint32(p.Src.Lo))
	if p.Tags > 0 {
		binary.BigEndian.PutUint16(b[12:], p.OuterTag.TPID())
		binary.BigEndian.PutUint16(b[14:], p.OuterTag.VID())
	}
	binary.BigEndian.PutUint16(b[p.L3-2:], p.EtherType)
}

func putIP(p *packet.Parsed, b []byte) {
	if p.Family == 6 {
		h := packet.IPv6Header{PayloadLen: uint16(p.IPEnd) - p.L4, DSCP: p.DSCP, NextHeader: p.Proto, HopLimit: 64, Src: p.Src, Dst: p.Dst}
		h.Put(b)
		b[1] |= p.ECN << 4
		return
	}
	h := packet.IPv4Header{TotalLen: uint16(p.IPEnd) - p.L3, DSCP: p.DSCP, TTL: 64, Proto: p.Proto, Src: p.Src, Dst: p.Dst}
	h.Put(b)
	b[1] |= p.ECN
	b[10], b[11] = 0, 0
	sum := uint32(0)
	for i := 0; i < packet.IPv4Len; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	sum = sum&0xffff + sum>>16
	binary.BigEndian.PutUint16(b[10:], ^uint16(sum+sum>>16))
}

const (
	gsiQKey = 0x80010000 // IBTA 9.7.1: of QP 1
	udQKey  = 0x11111111
	slot    = 1 << 24 // octets of the peer's memory for each message
)

// putExtended writes the extended transport headers.
func putExtended(e *Event, b []byte) {
	p := &e.Packet
	h := p.Opcode.Headers()
	at := func(x packet.Headers) []byte { return b[p.Opcode.Offset(x):] }
	address := uint64(e.Message+1)*slot - uint64(e.DMALength) // a READ's remainder ends where the READ would have
	if h&packet.HasDETH != 0 {
		qkey := uint32(udQKey)
		if p.DestQP == gsiQP {
			qkey = gsiQKey
		}
		binary.BigEndian.PutUint32(at(packet.HasDETH), qkey)
		binary.BigEndian.PutUint32(at(packet.HasDETH)[4:], p.SourceQP)
	}
	if h&packet.HasXRCETH != 0 {
		binary.BigEndian.PutUint32(at(packet.HasXRCETH), p.DestQP^0x800000)
	}
	if h&(packet.HasRETH|packet.HasAtomicETH) != 0 { // both begin alike
		x := at(h & (packet.HasRETH | packet.HasAtomicETH))
		binary.BigEndian.PutUint64(x, address)
		binary.BigEndian.PutUint32(x[8:], uint32(mix(uint64(p.DestQP))))
		if h&packet.HasRETH != 0 {
			binary.BigEndian.PutUint32(x[12:], e.DMALength)
		} else {
			binary.BigEndian.PutUint64(x[12:], 1)
		}
	}
	if h&packet.HasAETH != 0 {
		binary.BigEndian.PutUint32(at(packet.HasAETH), uint32(e.Syndrome)<<24|e.MSN)
	}
	if h&packet.HasAtomicAckETH != 0 {
		binary.BigEndian.PutUint64(at(packet.HasAtomicAckETH), uint64(e.Message))
	}
	if h&packet.HasImmDt != 0 {
		binary.BigEndian.PutUint32(at(packet.HasImmDt), e.Message)
	}
}
