package replay_test

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/health/dissect"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// What is changed about a capture's packets.

// each makes another frame of each.
func each(of func(i int, f frame) frame) func([]frame) []frame {
	return func(all []frame) []frame {
		out := make([]frame, len(all))
		for i, f := range all {
			out[i] = of(i, f)
		}
		return out
	}
}

// packetIn finds the RoCEv2 packet in a frame; b is the part of the frame that p describes, nil if there is none.
func packetIn(f *frame) (p packet.Parsed, b []byte) {
	var r dissect.Reader
	o := r.Read(f.octets, uint32(f.length))
	if o.Reason != dissect.None || &o.Wire[len(o.Wire)-1] != &f.octets[len(f.octets)-1] && len(o.Wire) < int(o.Parsed.ICRC) {
		return p, nil
	}
	return *o.Parsed, o.Wire
}

// forward reports whether a packet goes from the lower address to the higher one.
func forward(p *packet.Parsed) bool {
	return p.Src.Hi < p.Dst.Hi || p.Src.Hi == p.Dst.Hi && p.Src.Lo < p.Dst.Lo
}

// rewrite changes the RoCEv2 packet of each frame, and its ICRC, if that is right. It applies to captures of nothing but such packets, of which none but these
// headers names a QP, a PSN or an address.
func rewrite(change func(p *packet.Parsed, b []byte)) func([]frame) []frame {
	return func(all []frame) []frame {
		out := slices.Clone(all)
		for i := range out {
			f := &out[i]
			f.octets = slices.Clone(f.octets)
			p, b := packetIn(f)
			if b == nil || p.DestQP == packet.GSIQP || &b[len(b)-1] != &f.octets[len(f.octets)-1] {
				return nil
			}
			right := len(b) >= int(p.ICRC)+packet.ICRCLen && packet.VerifyICRC(b, &p)
			change(&p, b)
			if p.Family == 4 {
				header := b[p.L3:p.L4]
				binary.BigEndian.PutUint16(header[10:], 0)
				binary.BigEndian.PutUint16(header[10:], checksum(header))
			}
			if right {
				packet.PutICRC(b, int(p.L3), int(p.BTH), int(p.ICRC), true)
			}
		}
		return out
	}
}

func checksum(b []byte) uint16 {
	sum := uint32(0)
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	sum = sum>>16 + sum&0xffff
	return ^uint16(sum + sum>>16)
}

// add24 adds to a field of 24 bits, behind another one of 8.
func add24(b []byte, n uint32) {
	v := binary.BigEndian.Uint32(b)
	binary.BigEndian.PutUint32(b, v&^packet.PSNMask|(v+n)&packet.PSNMask)
}

// shiftPSNs adds numbers to the PSNs of each direction's requests, and of the responses to them.
func shiftPSNs(of func(all []frame) [2]uint32) func([]frame) []frame {
	return func(all []frame) []frame {
		by := of(all)
		return rewrite(func(p *packet.Parsed, b []byte) {
			there := forward(p)
			switch p.Opcode.Role() {
			case packet.Response:
				there = !there
			case packet.Request, packet.ReadRequest:
			default:
				return
			}
			n := by[0]
			if there {
				n = by[1]
			}
			add24(b[p.BTH+8:], n)
		})(all)
	}
}

// overWrap are the numbers that put the wrap of PSNs into the middle of the capture.
func overWrap(all []frame) (by [2]uint32) {
	for i := range all[:len(all)/2+1] {
		if p, b := packetIn(&all[i]); b != nil && p.Opcode.Role() == packet.Request {
			by = [2]uint32{-p.PSN, -p.PSN}
		}
	}
	return by
}

func shiftMSNs(p *packet.Parsed, b []byte) {
	if p.Opcode.Headers()&packet.HasAETH != 0 && len(b) >= p.Ext()+4 {
		add24(b[p.Ext():], 0x345678)
	}
}

// otherQPs renames all QPs but the management's.
func otherQPs(p *packet.Parsed, b []byte) {
	rename := func(at int) {
		if n := binary.BigEndian.Uint32(b[at:]); n&packet.PSNMask > 1 {
			binary.BigEndian.PutUint32(b[at:], n^0x5a5a00)
		}
	}
	if rename(int(p.BTH) + 4); p.SourceQP != 0 {
		rename(p.Ext() + 4)
	}
}

// addresses replaces each packet's.
func addresses(of func(a []byte)) func(*packet.Parsed, []byte) {
	return func(p *packet.Parsed, b []byte) {
		at, n := int(p.L3)+12, 4
		if p.Family == 6 {
			at, n = int(p.L3)+8, 16
		}
		of(b[at : at+n])
		of(b[at+n : at+2*n])
	}
}

// turned makes the higher address the lower one, in the same prefixes.
func turned(a []byte) { a[1] ^= 0xff; a[2] ^= 0xff; a[len(a)-1] ^= 0xff }

func otherMACs(_ int, f frame) frame {
	f.octets = slices.Clone(f.octets)
	for _, at := range []int{0, 6} {
		if f.octets[at]&1 == 0 {
			f.octets[at+3] ^= 0x5a
		}
	}
	return f
}

// hops changes how far each direction's packets may still go.
func hops(forth, back uint8) func(*packet.Parsed, []byte) {
	return func(p *packet.Parsed, b []byte) {
		n, at := back, int(p.L3)+8
		if forward(p) {
			n = forth
		}
		if p.Family == 6 {
			at--
		}
		b[at] += n
	}
}

// class changes the DSCP, and ECT(0) into ECT(1) and back.
func class(p *packet.Parsed, b []byte) {
	c := b[p.L3+1]
	if p.Family == 6 {
		c = b[p.L3]<<4 | b[p.L3+1]>>4
	}
	c ^= 5 << 2
	if c&3 == 1 || c&3 == 2 {
		c ^= 3
	}
	if p.Family == 4 {
		b[p.L3+1] = c
		return
	}
	b[p.L3], b[p.L3+1] = b[p.L3]&0xf0|c>>4, b[p.L3+1]&0xf|c<<4
}

// identities gives each IPv4 packet another identification, DF or not.
func identities(of func(uint16) uint16, flags byte) func(*packet.Parsed, []byte) {
	return func(p *packet.Parsed, b []byte) {
		if p.Family == 4 {
			binary.BigEndian.PutUint16(b[p.L3+4:], of(binary.BigEndian.Uint16(b[p.L3+4:])))
			b[p.L3+6] = b[p.L3+6]&0x3f | flags
		}
	}
}

func sourcePort(of func(uint16) uint16) func(*packet.Parsed, []byte) {
	return func(p *packet.Parsed, b []byte) { binary.BigEndian.PutUint16(b[p.L4:], of(p.SrcPort)) }
}

// otherIP puts each packet behind an IP header of the other version, or of the same one with options: more are the octets between the IP header and UDP.
func otherIP(family uint8, more func(next byte) (proto byte, octets []byte)) func([]frame) []frame {
	return func(all []frame) []frame {
		out := make([]frame, len(all))
		for i, f := range all {
			f.octets = slices.Clone(f.octets)
			p, b := packetIn(&f)
			if b == nil || p.L3 != packet.EthernetLen || p.DestQP == packet.GSIQP {
				return nil
			}
			right := len(b) >= int(p.ICRC)+packet.ICRCLen && packet.VerifyICRC(b, &p)
			proto, octets := more(packet.ProtoUDP)
			size := int(p.IPEnd) - int(p.L4) + len(octets)
			src, dst := other(p.Src, family), other(p.Dst, family)
			dscp := p.DSCP<<2 | p.ECN
			header := make([]byte, packet.EthernetLen+packet.IPHeaderLen(src))
			copy(header, b[:12])
			if ttl := b[p.L3+8]; family == 4 {
				if p.Family == 6 {
					ttl = b[p.L3+7]
				}
				header[12], header[13] = 8, 0
				packet.PutIPv4(header[14:], uint16(packet.IPv4Len+size), dscp, ttl, proto, uint32(src.Lo), uint32(dst.Lo))
				if p.Family == 4 {
					copy(header[18:22], b[p.L3+4:])
				}
				header[14] += byte(len(octets) / 4)
				ip := slices.Concat(header[14:], octets)
				binary.BigEndian.PutUint16(ip[10:], 0)
				binary.BigEndian.PutUint16(header[24:], checksum(ip))
			} else {
				if p.Family == 6 {
					ttl = b[p.L3+7]
				}
				header[12], header[13] = 0x86, 0xdd
				packet.PutIPv6(header[14:], uint16(size), dscp, proto, ttl, &src, &dst)
				label := bits.Reverse32(uint32(p.SrcPort)) >> 12
				header[15] |= byte(label >> 16)
				binary.BigEndian.PutUint16(header[16:], uint16(label))
			}
			f.octets = slices.Concat(header, octets, b[p.L4:])
			f.length += len(f.octets) - len(b)
			if out[i] = f; right {
				var q packet.Parsed
				packet.Parse(f.octets, uint32(f.length), &q)
				packet.PutICRC(f.octets, int(q.L3), int(q.BTH), int(q.ICRC), true)
			}
		}
		return out
	}
}

func nothing(next byte) (byte, []byte) { return next, nil }

// option is an extension header of IPv6 of 8 octets, all padding.
func option(header byte) func(next byte) (byte, []byte) {
	return func(next byte) (byte, []byte) { return header, []byte{next, 0, 1, 4, 0, 0, 0, 0} }
}

func routerAlert(next byte) (byte, []byte) { return next, []byte{148, 4, 0, 0} }

// other is an address of the version that is asked for, the same for the same.
func other(a packet.Addr, family uint8) packet.Addr {
	ip := a.Netip()
	switch b := ip.As16(); {
	case family == 6 && ip.Is4(): // the prefix of 24 bits becomes one of 64
		v4 := ip.As4()
		return packet.AddrFrom(netip.AddrFrom16([16]byte{0: 0xfd, 4: v4[0], 5: v4[1], 6: v4[2], 7: 1, 15: v4[3]}))
	case family == 4 && ip.Is6():
		return packet.AddrFrom(netip.AddrFrom4([4]byte{10, b[0] ^ b[1] ^ b[2] ^ b[3] ^ b[4], b[5] ^ b[6] ^ b[7], b[15]}))
	}
	return a
}

// at moves and scales time.
func at(of func(since, first int64) int64) func([]frame) []frame {
	return func(all []frame) []frame {
		return each(func(_ int, f frame) frame {
			f.at = of(f.at-all[0].at, all[0].at)
			return f
		})(all)
	}
}

// cut is the first octets of each frame.
func cut(n int) func(int, frame) frame {
	return func(_ int, f frame) frame {
		f.octets = f.octets[:min(n, len(f.octets))]
		return f
	}
}

// withoutSetups applies to captures without RDMA-CM, of which each message counts.
func withoutSetups(change func([]frame) []frame) func([]frame) []frame {
	return func(all []frame) []frame {
		if slices.ContainsFunc(all, func(f frame) bool { p, b := packetIn(&f); return b != nil && p.DestQP == packet.GSIQP }) {
			return nil
		}
		return change(all)
	}
}

// with appends octets to each frame, on the wire too, if all of it is there.
func with(n func(length int) int) func(int, frame) frame {
	return func(_ int, f frame) frame {
		if more := n(f.length); more > 0 {
			if len(f.octets) == f.length {
				f.octets = slices.Concat(f.octets, []byte{0xde, 0xad, 0xbe, 0xef}[:min(4, more)], make([]byte, max(0, more-4)))
			}
			f.length += more
		}
		return f
	}
}

// merged puts frames in the order of their times.
func merged(parts ...[]frame) []frame {
	all := slices.Concat(parts...)
	slices.SortStableFunc(all, func(a, b frame) int { return int(min(max(a.at-b.at, -1), 1)) })
	return all
}

// beside are the frames of another capture, from the beginning of this one.
func beside(t *testing.T, path string, change func([]frame) []frame) func([]frame) []frame {
	more := change(framesOf(t, readFile(t, path)))
	return func(all []frame) []frame {
		return merged(all, at(func(since, _ int64) int64 { return all[0].at + since })(more))
	}
}
