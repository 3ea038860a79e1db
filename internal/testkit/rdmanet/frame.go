package rdmanet

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// epoch is the time of 0, ns since 1970.
const epoch = int64(1_700_000_000e9)

// Write writes the capture as a pcap file.
func (c *Capture) Write(w io.Writer) error {
	buffered := bufio.NewWriterSize(w, 1<<16)
	f := pcapgo.NewWriterNanos(buffered)
	if err := f.WriteFileHeader(uint32(c.View.Snap), layers.LinkTypeEthernet); err != nil {
		return fmt.Errorf("the header of a drawn capture: %w", err)
	}
	b := make([]byte, 16384)
	for i := range c.Records {
		n := c.frame(&c.Records[i], b, i)
		cut := b[:min(n, c.View.Snap)]
		info := gopacket.CaptureInfo{Timestamp: time.Unix(0, epoch+c.Records[i].At).UTC(), CaptureLength: len(cut), Length: n}
		if err := f.WritePacket(info, cut); err != nil {
			return fmt.Errorf("frame %d of a drawn capture: %w", i+1, err)
		}
	}
	if err := buffered.Flush(); err != nil {
		return fmt.Errorf("a drawn capture: %w", err)
	}
	return nil
}

// overhead is the length of what is in front of a frame, bytes; of a VLAN tag, what is in it.
func (w Wrap) overhead() int {
	switch w {
	case VLAN:
		return 4
	case VXLAN:
		return 14 + packet.IPv4Len + packet.UDPLen + 8
	case ERSPAN:
		return 14 + packet.IPv4Len + 8 + 8
	}
	return 0
}

func ipLen(n *NIC) int {
	if n.IPv6 {
		return packet.IPv6Len
	}
	return packet.IPv4Len
}

func (c *Capture) wireLen(p *Packet) int {
	return c.View.Wrap.overhead() + 14 + ipLen(p.Half.Conn.NIC) + packet.UDPLen + packet.BTHLen + p.Opcode.HeadersLen() + (p.Payload+3)&^3 + packet.ICRCLen
}

// frame builds a record's frame in b, and returns its length on the wire. The payload and the ICRC are there if the capture doesn't cut them.
func (c *Capture) frame(r *Record, b []byte, number int) int {
	if r.Pause != nil {
		clear(b[:60])
		copy(b, packet.MACControlAddr[:])
		copy(b[6:], r.Pause.From[:])
		b[12], b[13] = 0x88, 0x08
		f := packet.PFC{Enabled: 1 << r.Pause.Priority}
		f.Time[r.Pause.Priority] = r.Pause.Quanta
		f.Put(b[14:])
		return 60
	}
	p := r.Packet
	n := c.wireLen(p)
	clear(b[:min(n, 512)])
	at := c.wrap(p, b, n, number)
	at += c.ethernet(r, b[at:])
	c.rocev2(r, b, at, n)
	return n
}

// wrap writes what is in front of the frame.
func (c *Capture) wrap(p *Packet, b []byte, n, number int) int {
	w := c.View.Wrap
	if w != VXLAN && w != ERSPAN {
		return 0
	}
	copy(b, []byte{2, 0, 0, 0, 9, byte(p.From), 2, 0, 0, 0, 8, byte(p.From), 8, 0})
	proto := uint8(17)
	if w == ERSPAN {
		proto = 47
	}
	packet.PutIPv4(b[14:], uint16(n-14), 0, 60, proto, 0x0aff0001+uint32(p.From), 0x0aff0002-uint32(p.From))
	rest := b[14+packet.IPv4Len:]
	if w == VXLAN {
		port := 0xc000 | p.Half.Conn.Port[p.From]
		(&packet.UDPHeader{SrcPort: port, DstPort: 4789, Length: uint16(n - 14 - packet.IPv4Len)}).Put(rest)
		rest[8] = 8
		binary.BigEndian.PutUint32(rest[12:], 4242<<8)
	} else {
		binary.BigEndian.PutUint32(rest, 0x1000_88be) // a sequence number follows
		binary.BigEndian.PutUint32(rest[4:], uint32(number))
		binary.BigEndian.PutUint32(rest[8:], 0x1000_0000|7) // version 1, session 7
	}
	return w.overhead()
}

func (c *Capture) ethernet(r *Record, b []byte) int {
	p := r.Packet
	from, to := p.Half.Conn.Host[p.From].MAC, p.Half.Conn.Host[p.From^1].MAC
	copy(b, to[:])
	copy(b[6:], from[:])
	if r.Twin && c.View.Twins == Routed {
		b[4], b[10] = 0xee, 0xef
	}
	n := 12
	if c.View.Wrap == VLAN {
		binary.BigEndian.PutUint32(b[n:], 0x8100_0000|100)
		n += 4
	}
	b[n], b[n+1] = 8, 0
	if p.Half.Conn.NIC.IPv6 {
		b[n], b[n+1] = 0x86, 0xdd
	}
	return n + 2
}

// rocev2 writes the packet from its IP header, which is at l3, to the end of the frame.
func (c *Capture) rocev2(r *Record, b []byte, l3, end int) {
	p := r.Packet
	conn, to := p.Half.Conn, p.From^1
	src, dst := packet.AddrFrom(conn.Host[p.From].Addr), packet.AddrFrom(conn.Host[to].Addr)
	class, ttl := conn.NIC.DSCP<<2, uint8(61)
	switch {
	case p.Kind == Notification:
		class = 48 << 2
	case p.CE:
		class |= 3
	case conn.NIC.ECT:
		class |= 2
	}
	if r.Twin && c.View.Twins == Routed {
		ttl--
	}
	l4 := l3 + ipLen(conn.NIC)
	if conn.NIC.IPv6 {
		packet.PutIPv6(b[l3:], uint16(end-l4), class, 17, ttl, &src, &dst)
	} else {
		packet.PutIPv4(b[l3:], uint16(end-l3), class, ttl, 17, uint32(src.Lo), uint32(dst.Lo))
		identify(b[l3:l3+packet.IPv4Len], p.id)
	}
	(&packet.UDPHeader{SrcPort: conn.Port[p.From], DstPort: packet.RoCEv2Port, Length: uint16(end - l4)}).Put(b[l4:])
	bth := l4 + packet.UDPLen
	h := packet.BTH{
		Opcode: p.Opcode, PadCount: uint8(-p.Payload & 3), PKey: packet.DefaultPKey, DestQP: conn.QP[to], AckReq: p.AckReq, PSN: p.wire(),
	}
	if p.Kind == Notification {
		h.Flags, h.PSN = packet.BECN, 0
	}
	h.Put(b[bth:])
	ext := bth + packet.BTHLen
	has := p.Opcode.Headers()
	at := func(x packet.Headers) []byte { return b[ext+p.Opcode.Offset(x):] }
	if has&packet.HasRETH != 0 {
		(&packet.RETH{VirtualAddress: uint64(p.Seq) << 12, RKey: 0x1234, DMALength: uint32(p.Length)}).Put(at(packet.HasRETH))
	}
	if has&packet.HasAtomicETH != 0 {
		atomic := at(packet.HasAtomicETH)
		binary.BigEndian.PutUint64(atomic, 64)
		binary.BigEndian.PutUint32(atomic[8:], 0x1234)
		binary.BigEndian.PutUint64(atomic[12:], 1)
		binary.BigEndian.PutUint64(atomic[20:], 0)
	}
	if has&packet.HasAETH != 0 {
		packet.AETH{Syndrome: p.Syndrome, MSN: p.MSN}.Put(at(packet.HasAETH))
	}
	if c.View.Snap < end {
		return
	}
	start, crc := ext+p.Opcode.HeadersLen(), end-packet.ICRCLen
	if p.Kind != Notification {
		for i := start; i < crc; i++ {
			b[i] = byte(int64(i) + p.Seq)
		}
	}
	clear(b[start+p.Payload : crc])
	packet.PutICRC(b, l3, bth, crc, true)
	if p.Fate == CorruptedBefore {
		b[start+p.Payload/2] ^= 4 // in the payload, or the ICRC
	}
}

// identify sets the identification of an IPv4 header, and its checksum.
func identify(b []byte, id uint16) {
	binary.BigEndian.PutUint16(b[4:], id)
	binary.BigEndian.PutUint16(b[10:], 0)
	sum := uint32(0)
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	sum = sum>>16 + sum&0xffff
	binary.BigEndian.PutUint16(b[10:], ^uint16(sum+sum>>16))
}
