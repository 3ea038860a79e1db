package cnpgen

import (
	"encoding/binary"

	"github.com/cnpgate/cnpgate/internal/packet"
)

const longHaulIPv4Len = packet.IPv4Len + longHaulUDPLen

// Draft is what the Long-haul CNPs of a gateway over IPv4 have in common while congestion stays as it is. Who builds many, one after
// another, keeps it, and has the sender's address, port and QP put in.
type Draft struct {
	asked, metric uint32 // words 1 and 3 of the Long-haul CNP's fields
	first, second uint64 // the IPv4 header's octets 0 to 15, with the checksum 0
	sum           uint32 // one's complement sum of the header but for the destination, 16 bits
	icrc          uint32 // without destination, UDP source port and QP
	sendable      bool   // there is an address to send from
}

// DraftLongHaulCNP makes a draft for all that LongHaulCNP takes, but for the data packet and the source QP. It has no extension objects.
func DraftLongHaulCNP(g *Gateway, l *LongHaul) (d Draft) {
	flags, parameter, _, metric := l.ranged()
	d.asked = uint32(l.Level)<<24 | uint32(flags)<<16 | uint32(parameter)
	d.metric = metric | uint32(l.MetricType)<<24
	d.sendable = g.HasIPv4
	src := uint32(g.IPv4.Lo)
	var ip [packet.IPv4Len]byte
	packet.PutIPv4(ip[:], longHaulIPv4Len, g.DSCP, hopLimit, packet.ProtoUDP, src, 0)
	const checksum = 10
	d.sum = uint32(^binary.BigEndian.Uint16(ip[checksum:]))
	binary.BigEndian.PutUint16(ip[checksum:], 0)
	d.first, d.second = binary.BigEndian.Uint64(ip[:]), binary.BigEndian.Uint64(ip[8:])
	t := longHaulICRC
	d.icrc = t.zeros ^ word(&t.src, src) ^ word(&t.asked, d.asked) ^ word(&t.metric, d.metric)
	return d
}

// LongHaulCNP is the function of this name for an IPv4 data packet, and the same comes out; of others nothing does.
func (d *Draft) LongHaulCNP(out, frame []byte, p *packet.Parsed, sourceQP uint32) int {
	l3 := ethernetLen(p)
	if !d.sendable || p.Family != 4 || !answerable(frame, p) || len(out) < l3+longHaulIPv4Len {
		return 0
	}
	packet.ReplyEthernet(out, frame, p)
	d.put((*[longHaulIPv4Len]byte)(out[l3:]), uint32(p.Src.Lo), p.SrcPort, sourceQP&0xffffff)
	return l3 + longHaulIPv4Len
}

// put writes the IPv4 packet: what packet.PutIPv4, PutCNP, PutLongHaul and PutICRC would write, in a few wide stores and without
// reading any of it back.
func (d *Draft) put(b *[longHaulIPv4Len]byte, dst uint32, port uint16, qp uint32) {
	sum := d.sum + dst>>16 + dst&0xffff
	sum = sum&0xffff + sum>>16
	sum += sum >> 16
	binary.BigEndian.PutUint64(b[:], d.first)
	binary.BigEndian.PutUint64(b[8:], d.second|uint64(^uint16(sum))<<32)
	binary.BigEndian.PutUint32(b[16:], dst)
	cnp := b[packet.IPv4Len:]
	binary.BigEndian.PutUint64(cnp, uint64(port)<<48|packet.RoCEv2Port<<32|longHaulUDPLen<<16)
	binary.BigEndian.PutUint64(cnp[8:], uint64(packet.CNP)<<56|packet.DefaultPKey<<32|(packet.BECN|packet.ExtensionBit)<<24|uint64(qp))
	binary.BigEndian.PutUint32(cnp[16:], 0) // the rest of the BTH
	binary.BigEndian.PutUint32(cnp[20:], d.asked)
	binary.BigEndian.PutUint32(cnp[24:], qp)
	binary.BigEndian.PutUint32(cnp[28:], d.metric)
	t := longHaulICRC
	binary.LittleEndian.PutUint32(cnp[32:], d.icrc^word(&t.dst, dst)^t.port[0][port>>8]^t.port[1][uint8(port)]^
		t.qp[0][uint8(qp>>16)]^t.qp[1][uint8(qp>>8)]^t.qp[2][uint8(qp)])
}

// octetICRC is what a value of one octet of a packet changes in the packet's ICRC. A CRC is linear: for packets of one length it is the
// exclusive or of what each of their octets gives by its own value and place, whatever the others are.
type octetICRC [256]uint32

// longHaulIPv4ICRC adds the ICRC of a Long-haul CNP over IPv4 up from what its fields give. That takes a fifth of the time of a CRC over
// the packet, as nothing has to wait for anything: not for the packet to be written, not for the octet in front.
type longHaulIPv4ICRC struct {
	zeros         uint32 // ICRC of the packet with all these fields 0
	src, dst      [4]octetICRC
	port          [2]octetICRC
	qp            [3]octetICRC // in both of its places, BTH and Source QP Number
	asked, metric [4]octetICRC // words 1 and 3 of the Long-haul CNP's fields
}

var longHaulICRC = newLongHaulIPv4ICRC()

func word(t *[4]octetICRC, v uint32) uint32 {
	return t[0][v>>24] ^ t[1][uint8(v>>16)] ^ t[2][uint8(v>>8)] ^ t[3][uint8(v)]
}

// newLongHaulIPv4ICRC takes the tables from packet.ICRC, of a packet whose fields are all 0.
func newLongHaulIPv4ICRC() *longHaulIPv4ICRC {
	const src, dst, port, qp, asked, sourceQP, metric = 12, 16, 20, 33, 40, 45, 48 // where fields begin, from the IP header on
	t, b := &longHaulIPv4ICRC{}, make([]byte, longHaulIPv4Len)
	packet.PutIPv4(b, longHaulIPv4Len, 0, hopLimit, packet.ProtoUDP, 0, 0)
	packet.PutCNP(b[packet.IPv4Len:], 0, longHaulUDPLen, 0, 0)
	t.zeros = icrcIPv4(b)
	for i := range 4 {
		t.src[i].learn(b, src+i)
		t.dst[i].learn(b, dst+i)
		t.asked[i].learn(b, asked+i)
		t.metric[i].learn(b, metric+i)
	}
	for i := range t.port {
		t.port[i].learn(b, port+i)
	}
	for i := range t.qp {
		t.qp[i].learn(b, qp+i, sourceQP+i)
	}
	return t
}

// learn fills the table for an octet that is in all these places of b, where it is 0: from its eight bits, which give what they give
// independently of each other, too.
func (t *octetICRC) learn(b []byte, places ...int) {
	zero := icrcIPv4(b)
	for v := 1; v < len(t); v++ {
		if rest := v & (v - 1); rest != 0 {
			t[v] = t[rest] ^ t[v^rest]
			continue
		}
		for _, at := range places {
			b[at] = byte(v)
		}
		t[v] = icrcIPv4(b) ^ zero
		for _, at := range places {
			b[at] = 0
		}
	}
}

func icrcIPv4(b []byte) uint32 {
	return packet.ICRC(b, 0, packet.IPv4Len+packet.UDPLen, len(b)-packet.ICRCLen, true)
}
