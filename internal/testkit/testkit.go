// Package testkit is what the tests of several packages share: frames made from short descriptions, a dataplane on in-memory backends with
// a clock that only the test advances, and the final check that every frame is accounted for. It is for tests only, and never sleeps.
package testkit

import (
	"encoding/binary"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/pcap"
	"github.com/cnpgate/cnpgate/internal/virtual"
)

// RoCE describes a RoCEv2 frame. Zero fields give a minimal frame: no tags, an RC RDMA WRITE Middle, as short as possible.
type RoCE struct {
	Tags             []uint32 // TPID and TCI of each, in 32 bits
	Src, Dst         string   // of one address family
	DSCP, ECN        uint8
	SrcPort          uint16
	Opcode           packet.Opcode // 0 is RC RDMA WRITE Middle
	Flags            uint8         // BTH octet 4
	DestQP, SourceQP uint32        // SourceQP is used if the opcode has a DETH
	PSN              uint32
	Size             int // bytes of the frame; the minimum is what the headers and the ICRC need
}

// Frame builds the frame, with correct checksums and ICRC.
func (r RoCE) Frame() []byte {
	opcode := r.Opcode
	if opcode == 0 {
		opcode = packet.RCWriteMiddle
	}
	src, dst := netip.MustParseAddr(r.Src), netip.MustParseAddr(r.Dst)
	b := []byte{2, 0, 0, 0, 0, 0xd, 2, 0, 0, 0, 0, 0x5}
	for _, tag := range r.Tags {
		b = binary.BigEndian.AppendUint32(b, tag)
	}
	l3 := len(b) + 2
	ipLen := packet.IPv6Len
	if src.Is4() {
		ipLen = packet.IPv4Len
	}
	l4 := l3 + ipLen
	ext := l4 + packet.UDPLen + packet.BTHLen
	payload := ext + opcode.HeadersLen()
	size := max(r.Size, payload+packet.ICRCLen)
	b = append(b, make([]byte, size-len(b))...)
	if src.Is4() {
		binary.BigEndian.PutUint16(b[l3-2:], packet.EtherTypeIPv4)
		packet.PutIPv4(b[l3:], uint16(size-l3), r.DSCP<<2|r.ECN, 63, packet.ProtoUDP, uint32(packet.AddrFrom(src).Lo), uint32(packet.AddrFrom(dst).Lo))
	} else {
		binary.BigEndian.PutUint16(b[l3-2:], packet.EtherTypeIPv6)
		from, to := packet.AddrFrom(src), packet.AddrFrom(dst)
		packet.PutIPv6(b[l3:], uint16(size-l4), r.DSCP<<2|r.ECN, packet.ProtoUDP, 63, &from, &to)
	}
	udp := packet.UDPHeader{SrcPort: r.SrcPort, DstPort: packet.RoCEv2Port, Length: uint16(size - l4)}
	udp.Put(b[l4:])
	bth := packet.BTH{Opcode: opcode, PKey: packet.DefaultPKey, Flags: r.Flags, DestQP: r.DestQP, PSN: r.PSN}
	bth.Put(b[l4+packet.UDPLen:])
	if opcode.Headers()&packet.HasDETH != 0 {
		binary.BigEndian.PutUint32(b[ext+opcode.Offset(packet.HasDETH)+4:], r.SourceQP)
	}
	for i := payload; i < size-packet.ICRCLen; i++ {
		b[i] = byte(i)
	}
	packet.PutICRC(b, l3, l4+packet.UDPLen, size-packet.ICRCLen, true)
	return b
}

// SetECN writes the ECN field of the IP header at l3 and, for IPv4, the header checksum (RFC 1071).
func SetECN(b []byte, l3 int, ecn uint8) {
	h := b[l3:]
	if h[0]>>4 == 6 {
		h[1] = h[1]&^0x30 | ecn<<4
		return
	}
	h = h[:4*int(h[0]&0xf)]
	h[1] = h[1]&^3 | ecn
	h[10], h[11] = 0, 0
	sum := uint32(0)
	for i := 0; i < len(h); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(h[i:]))
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	binary.BigEndian.PutUint16(h[10:], ^uint16(sum))
}

// Ends of the tunnels that this file makes, and the Ethernet header towards the second one.
var (
	tunnelSrc, tunnelDst = packet.Addr{Lo: 0xffff_c0000211}, packet.Addr{Lo: 0xffff_c0000212} // 192.0.2.17 and 18
	tunnelLink           = []byte{2, 0, 0, 0, 0, 0x1d, 2, 0, 0, 0, 0, 0x15}
)

// VXLAN puts a frame into a VXLAN tunnel over IPv4 (RFC 7348). Both ends are swapped if back is set.
func VXLAN(frame []byte, vni uint32, ecn uint8, back bool) []byte {
	const headers = packet.IPv4Len + packet.UDPLen + 8
	src, dst := tunnelSrc, tunnelDst
	if back {
		src, dst = dst, src
	}
	l3 := packet.EthernetLen
	b := append(binary.BigEndian.AppendUint16(tunnelLink[:len(tunnelLink):len(tunnelLink)], packet.EtherTypeIPv4), make([]byte, headers)...)
	b = append(b, frame...)
	packet.PutIPv4(b[l3:], uint16(len(b)-l3), ecn, 63, packet.ProtoUDP, uint32(src.Lo), uint32(dst.Lo))
	l4 := l3 + packet.IPv4Len
	udp := packet.UDPHeader{SrcPort: 0xc0de, DstPort: 4789, Length: uint16(len(b) - l4)}
	udp.Put(b[l4:])
	binary.BigEndian.PutUint64(b[l4+packet.UDPLen:], 0x08<<56|uint64(vni)<<8)
	return b
}

// MPLS puts the IP packet of an untagged frame below one label (RFC 3032).
func MPLS(frame []byte, label uint32) []byte {
	b := binary.BigEndian.AppendUint16(tunnelLink[:len(tunnelLink):len(tunnelLink)], packet.EtherTypeMPLS)
	b = binary.BigEndian.AppendUint32(b, label<<12|1<<8|63)
	return append(b, frame[packet.EthernetLen:]...)
}

// Pseudowire puts a frame into an Ethernet pseudowire without control word, below one label (RFC 4448).
func Pseudowire(frame []byte, label uint32) []byte {
	b := MPLS(frame, label)
	const at = packet.EthernetLen + 4
	return append(b[:at:at], frame...)
}

// T is the part of *testing.T, *testing.B, *testing.F or *rapid.T that helpers need.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Heap allocates zeroed memory on the Go heap, aligned to 64 bytes, where the race detector sees accesses by workers.
func Heap(octets int) ([]byte, error) { return virtual.Heap(octets) }

// Captures reads the frames of all captures of real traffic in testdata/captures.
func Captures(t T) (frames [][]byte) {
	t.Helper()
	for _, path := range pcap.Real(t) {
		frames = append(frames, pcap.Octets(pcap.Read(t, path))...)
	}
	return frames
}

// Cache is the folder in which scripts/setup stores downloads.
func Cache() string {
	if dir := os.Getenv("CNPGATE_CACHE"); dir != "" {
		return dir
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = "/root/.cache"
	}
	return filepath.Join(dir, "cnpgate")
}
