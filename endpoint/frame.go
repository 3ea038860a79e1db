package endpoint

import (
	"encoding/binary"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/transport"
)

// template holds the headers that all packets of a QP to its peer begin with: Ethernet, IP and UDP, and the constant part of the BTH.
type template struct {
	b   []byte
	bth int
}

const (
	hopLimit    = 64 // or TTL
	dataDSCP    = 26
	cnpDSCP     = 48
	ackPriority = 6 // of acknowledgements and CNPs: another class of PFC than data's

	l3       = packet.EthernetLen
	ackReq   = 0x80 // octet 8 of the BTH
	padShift = 4    // of PadCount in octet 1 of the BTH
	wordLen  = 4
)

// templates builds the templates of data packets and of acknowledgements.
func (c *Config) templates(q *QP) (data, ack template) {
	trace := c.Reaction.HPCC.traceOption(q.Peer.Addr)
	const plain = l3 + packet.IPv6Len + packet.UDPLen + packet.BTHLen
	data = c.template(make([]byte, 0, plain+len(trace)), q.Peer, q.SrcPort, trace)
	return data, c.template(make([]byte, 0, plain), q.Peer, q.SrcPort, nil)
}

// template builds the headers to a peer in b, with a Hop-by-Hop Options header if there is one.
func (c *Config) template(b []byte, to Peer, srcPort uint16, hopByHop []byte) template {
	b = append(b, to.MAC[:]...)
	b = append(b, c.MAC[:]...)
	var t template
	if to.Addr.Is4() {
		b = binary.BigEndian.AppendUint16(b, packet.EtherTypeIPv4)
		b = b[:l3+packet.IPv4Len]
		packet.PutIPv4(b[l3:], 0, 0, hopLimit, packet.ProtoUDP, uint32(c.Addr.Lo), uint32(to.Addr.Lo))
	} else {
		next := uint8(packet.ProtoUDP)
		if len(hopByHop) > 0 {
			next = packet.ProtoHopByHop
		}
		b = binary.BigEndian.AppendUint16(b, packet.EtherTypeIPv6)
		b = b[:l3+packet.IPv6Len]
		packet.PutIPv6(b[l3:], 0, 0, next, hopLimit, &c.Addr, &to.Addr)
		b = append(b, hopByHop...)
	}
	udp := len(b)
	t.bth = udp + packet.UDPLen
	b = b[:t.bth+packet.BTHLen]
	(&packet.UDPHeader{SrcPort: srcPort, DstPort: packet.RoCEv2Port}).Put(b[udp:])
	(&packet.BTH{PKey: packet.DefaultPKey, DestQP: to.QP}).Put(b[t.bth:])
	t.b = b
	return t
}

// put writes the headers of a packet. length is the number of bytes after the BTH, ICRC included.
func (t *template) put(out []byte, class uint8, opcode packet.Opcode, psn uint32, behind int) {
	copy(out, t.b)
	end := t.bth + packet.BTHLen + behind
	binary.BigEndian.PutUint16(out[t.bth-packet.UDPLen+4:], uint16(end-t.bth+packet.UDPLen))
	out[t.bth] = byte(opcode)
	binary.BigEndian.PutUint32(out[t.bth+8:], psn&packet.PSNMask)
	if out[l3]>>4 == 4 {
		ip := out[l3 : l3+packet.IPv4Len]
		packet.PutIPv4(ip, uint16(end-l3), class, hopLimit, packet.ProtoUDP, binary.BigEndian.Uint32(ip[12:]), binary.BigEndian.Uint32(ip[16:]))
		return
	}
	out[l3], out[l3+1] = 6<<4|class>>4, class<<4
	binary.BigEndian.PutUint16(out[l3+4:], uint16(end-l3-packet.IPv6Len))
}

// putRequest writes a request packet.
func (q *qp) putRequest(p *transport.Packet, out []byte) (n, length int) {
	var content []byte
	switch {
	case q.ping != nil:
		content = q.ping.content(p.Op, p.Index, q.h.transport.MTU)
	case q.perftest != nil:
		content = q.perftest.message
	}
	n, length = q.putData(out, p.Opcode, p.PSN, p.Payload, content)
	if p.AckReq {
		out[q.data.bth+8] |= ackReq
	}
	if p.Opcode.Headers()&packet.HasRETH != 0 {
		offset := uint64(p.Bytes - p.Left)
		(&packet.RETH{VirtualAddress: q.remote.Address + offset, RKey: q.remote.RKey, DMALength: p.Left}).Put(out[q.data.bth+packet.BTHLen:])
	}
	finish(out, q.data.bth, n, length)
	return n, length
}

// putData writes a packet's headers and payload: content, or a pattern if that is nil. Extended transport headers and the ICRC follow.
func (q *qp) putData(out []byte, opcode packet.Opcode, psn, payload uint32, content []byte) (n, length int) {
	ext := opcode.HeadersLen()
	pad := -int(payload) & (wordLen - 1)
	behind := ext + int(payload) + pad + packet.ICRCLen
	q.data.put(out, dataDSCP<<2|packet.ECT0, opcode, psn, behind)
	out[q.data.bth+1] |= uint8(pad << padShift)
	q.h.counters.DataSent++
	n = q.data.bth + packet.BTHLen + ext
	length = q.data.bth + packet.BTHLen + behind
	if q.h.c.Payload == PayloadReal {
		body := out[n : length-packet.ICRCLen]
		if copy(body, content) == 0 {
			for i := range body {
				body[i] = uint8(psn) + uint8(i)
			}
		}
		clear(body[payload:])
		n = length
	}
	return n, length
}

// A host has one memory region for all its QPs, as large as the longest message. Each QP has its own key.
const (
	regionBase = 0x7f00_0000_0000
	regionKey  = 0x1a2b_3c00
)

// putAnswer writes the next response to the oldest READ.
func (q *qp) putAnswer(out []byte) (n, length int) {
	p := q.responder.Answer()
	var content []byte
	if q.ping != nil {
		content = q.ping.content(transport.Read, (p.PSN-q.ping.readPSN)&packet.PSNMask, q.h.transport.MTU)
	}
	n, length = q.putData(out, p.Opcode, p.PSN, p.Payload, content)
	if p.Opcode.Headers()&packet.HasAETH != 0 {
		p.AETH.Put(out[q.data.bth+packet.BTHLen:])
	}
	finish(out, q.data.bth, n, length)
	return n, length
}

// putACK writes the acknowledgement or NAK that the responder owes.
func (q *qp) putACK(out []byte) (n, length int) {
	p := q.responder.Acknowledgement()
	if p.AETH.IsACK() {
		q.h.counters.ACKsSent++
	} else {
		q.h.counters.NAKsSent++
	}
	q.ack.put(out, q.h.c.AckDSCP<<2, p.Opcode, p.PSN, packet.AETHLen+packet.ICRCLen)
	p.AETH.Put(out[q.ack.bth+packet.BTHLen:])
	n = q.ack.bth + packet.BTHLen + packet.AETHLen
	length = n + packet.ICRCLen
	if q.h.c.Payload == PayloadReal {
		n = length
	}
	finish(out, q.ack.bth, n, length)
	return n, length
}

// putCNP writes a standard CNP (IBTA Annex A17). All its bytes are present in every payload mode, as its receiver checks the ICRC.
func (q *qp) putCNP(out []byte) (n, length int) {
	t := &q.ack
	t.put(out, cnpDSCP<<2, packet.CNP, 0, packet.CNPReservedLen+packet.ICRCLen)
	binary.BigEndian.PutUint16(out[t.bth-packet.UDPLen:], 0) // as ConnectX sends it
	out[t.bth+4] = packet.BECN
	length = t.bth + packet.BTHLen + packet.CNPReservedLen + packet.ICRCLen
	clear(out[t.bth+packet.BTHLen : length])
	packet.PutICRC(out, l3, t.bth, length-packet.ICRCLen, true)
	return length, length
}

// finish computes the ICRC of a complete packet in out. The ICRC leaves out the Hop-by-Hop Options header, as nodes on the path change the
// IOAM trace in it.
func finish(out []byte, bth, n, length int) {
	if n == length {
		packet.PutICRC(out, l3, bth, length-packet.ICRCLen, false)
	}
}

// icrcOK verifies the ICRC of a packet from a Host.
func icrcOK(frame []byte, p *packet.Parsed) bool {
	end := int(p.ICRC)
	return len(frame) >= end+packet.ICRCLen &&
		binary.LittleEndian.Uint32(frame[end:]) == packet.ICRC(frame, int(p.L3), int(p.BTH), end, false)
}
