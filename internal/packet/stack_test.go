package packet

import (
	"encoding/binary"
	"hash/crc32"
	"net/netip"
)

// stack describes a frame from the outside in; build returns its octets and what Parse must find in them. It shares no
// code with the package under test but its types. A zero value of a field means an ordinary one.
type stack struct {
	tags    []tag
	family  uint8
	dscp    uint8
	ecn     uint8
	src     netip.Addr
	dst     netip.Addr
	options []byte // IPv4
	frag    uint16 // IPv4 flags and fragment offset
	ext     []extHeader
	proto   uint8 // not 0: an upper layer other than UDP, with body behind
	body    []byte

	srcPort, dstPort uint16 // dstPort 0: 4791
	udpLonger        int    // added to the UDP length
	udpShorter       int    // octets of the IP packet behind the UDP datagram
	opcode           Opcode
	tver             uint8
	bthFlags         uint8
	destQP, psn      uint32
	sourceQP         uint32
	payload          int // octets

	padding int // Ethernet padding, octets
}

type tag struct{ tpid, tci uint16 }

func (t tag) want() Tag {
	return map[uint16]Tag{0x8100: 0x1000, 0x88a8: 0x2000, 0x9100: 0x3000}[t.tpid] | Tag(t.tci&0xfff)
}

// extHeader is an IPv6 extension header; body is what follows its first two octets.
type extHeader struct {
	header uint8
	body   []byte
}

var be = binary.BigEndian

func (s stack) build() ([]byte, Parsed) {
	var p Parsed
	f := []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2}
	for i, t := range s.tags {
		f = be.AppendUint16(be.AppendUint16(f, t.tpid), t.tci)
		if i == 0 {
			p.OuterTag = t.want()
		} else {
			p.InnerTag = t.want()
		}
		p.Tags++
	}
	p.Kind, p.Family, p.DSCP, p.ECN = IP, s.family, s.dscp, s.ecn
	if s.family == 4 {
		f = s.buildIPv4(f, &p)
	} else {
		f = s.buildIPv6(f, &p)
	}
	p.IPEnd = uint32(len(f))
	if p.Kind == RoCEv2 {
		icrc := plainICRC(f[p.L3:p.ICRC], int(p.L4-p.L3))
		binary.LittleEndian.PutUint32(f[p.ICRC:], icrc)
	}
	f = append(f, make([]byte, s.padding)...)
	p.Len = uint32(len(f))
	return f, p
}

func (s stack) buildIPv4(f []byte, p *Parsed) []byte {
	src, dst := s.addrs("198.18.0.1", "198.18.0.2")
	f = append(f, 0x08, 0x00)
	at := len(f)
	p.EtherType, p.L3, p.Outer, p.Src, p.Dst = 0x0800, uint16(at), uint16(at), plainAddr(src), plainAddr(dst)
	f = append(f, 0x45+byte(len(s.options)/4), s.dscp<<2|s.ecn, 0, 0, 0x12, 0x34, byte(s.frag>>8), byte(s.frag), 63, s.upper(), 0, 0)
	f = append(append(f, src.AsSlice()...), dst.AsSlice()...)
	f = append(f, s.options...)
	headerLen := len(f) - at
	f = s.buildUpper(f, p, s.frag&0x3fff == 0)
	be.PutUint16(f[at+2:], uint16(len(f)-at))
	be.PutUint16(f[at+10:], plainChecksum(f[at:at+headerLen]))
	return f
}

func (s stack) buildIPv6(f []byte, p *Parsed) []byte {
	src, dst := s.addrs("fd00:18::1", "fd00:18::2")
	f = append(f, 0x86, 0xdd)
	at := len(f)
	p.EtherType, p.L3, p.Outer, p.Src, p.Dst = 0x86dd, uint16(at), uint16(at), plainAddr(src), plainAddr(dst)
	f = be.AppendUint32(f, 6<<28|uint32(s.dscp)<<22|uint32(s.ecn)<<20|0xabcde)
	f = append(f, 0, 0, 0, 61)
	f = append(append(f, src.AsSlice()...), dst.AsSlice()...)
	next, whole := at+6, true
	for _, e := range s.ext {
		f[next] = e.header
		next = len(f)
		length := byte((len(e.body)+2)/8 - 1)
		switch e.header {
		case 0:
			p.HopOpts = uint16(next)
		case 60:
			p.DstOpts = uint16(next)
		case 51:
			length = byte((len(e.body)+2)/4 - 2)
		case 44:
			length = 0xee // reserved
			whole = be.Uint16(e.body)&0xfff9 == 0
		}
		f = append(append(f, 0, length), e.body...)
		if !whole {
			break
		}
	}
	f[next] = s.upper()
	f = s.buildUpper(f, p, whole)
	be.PutUint16(f[at+4:], uint16(len(f)-at-40))
	return f
}

func (s stack) addrs(src, dst string) (netip.Addr, netip.Addr) {
	if s.src.IsValid() {
		return s.src, s.dst
	}
	return netip.MustParseAddr(src), netip.MustParseAddr(dst)
}

func (s stack) upper() uint8 {
	if s.proto != 0 {
		return s.proto
	}
	return 17
}

// buildUpper appends UDP and what follows it; of a packet that isn't whole only the protocol is expected to be found.
func (s stack) buildUpper(f []byte, p *Parsed, whole bool) []byte {
	p.Proto = s.upper()
	found := p
	if !whole {
		found = &Parsed{}
	}
	l4 := len(f)
	found.L4 = uint16(l4)
	if s.proto != 0 {
		return append(f, s.body...)
	}
	if s.dstPort == 0 {
		s.dstPort = 4791
	}
	found.SrcPort, found.DstPort = s.srcPort, s.dstPort
	f = be.AppendUint16(be.AppendUint16(f, s.srcPort), s.dstPort)
	f = append(f, 0, 0, 0xbe, 0xef)
	f = append(f, byte(s.opcode), 0x40|s.tver, 0xff, 0xff)
	f = be.AppendUint32(f, uint32(s.bthFlags)<<24|s.destQP)
	f = be.AppendUint32(f, 0x7f<<24|s.psn) // reserved bits set: they aren't part of the PSN
	ext := len(f)
	o, known := opcodeTruth[s.opcode]
	f = append(f, make([]byte, o.ext)...)
	if o.sourceQP != 0 {
		be.PutUint32(f[ext+o.sourceQP:], 0x55<<24|s.sourceQP)
	}
	payload := len(f)
	for i := range s.payload {
		f = append(f, byte(i))
	}
	icrc := len(f)
	f = append(f, 0, 0, 0, 0)
	be.PutUint16(f[l4+4:], uint16(len(f)-l4+s.udpLonger))
	f = append(f, make([]byte, s.udpShorter)...)
	if !known || s.tver != 0 || s.dstPort != 4791 || s.udpLonger != 0 {
		return f
	}
	found.Kind, found.Opcode, found.BTHFlags, found.DestQP, found.PSN = RoCEv2, s.opcode, s.bthFlags, s.destQP, s.psn
	found.BTH, found.Payload, found.ICRC = uint16(l4+8), uint16(payload), uint32(icrc)
	if o.sourceQP != 0 {
		found.SourceQP = s.sourceQP
	}
	return f
}

func plainAddr(a netip.Addr) Addr {
	b := a.As16()
	return Addr{be.Uint64(b[:8]), be.Uint64(b[8:])}
}

// plainChecksum is RFC 1071's, a word at a time with the carry added at once.
func plainChecksum(b []byte) uint16 {
	sum := 0
	for i := 0; i < len(b); i += 2 {
		sum += int(b[i])*256 + int(b[i+1])
		if sum > 0xffff {
			sum -= 0xffff
		}
	}
	return ^uint16(sum)
}

// plainICRC makes a copy of the IP packet up to the ICRC, puts ones into it and runs the CRC over it in one go.
func plainICRC(packet []byte, l4 int) uint32 {
	b := append([]byte("\xff\xff\xff\xff\xff\xff\xff\xff"), packet...)
	ip := b[8:]
	ones := []int{1, 8, 10, 11}
	if ip[0]>>4 == 6 {
		ip[0] |= 0x0f
		ones = []int{1, 2, 3, 7}
	}
	for _, i := range append(ones, l4+6, l4+7, l4+8+4) {
		ip[i] = 0xff
	}
	return crc32.ChecksumIEEE(b)
}

// markCE marks a parsed frame, and says so in p.
func markCE(b []byte, p *Parsed) bool {
	if !MarkCE(b, p.Outer, p.ECN) {
		return false
	}
	p.ECN = CE
	return true
}

// clearCE undoes markCE.
func clearCE(b []byte, p *Parsed) bool {
	if !ClearCE(b, p.Outer, p.ECN) {
		return false
	}
	p.ECN = ECT0
	return true
}
