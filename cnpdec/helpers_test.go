package cnpdec

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/notifications"
	"github.com/cnpgate/cnpgate/internal/testkit/pcap"
)

// extensions3 are the meanings of ExtensionBit.
var extensions3 = [3]packet.Notification{packet.StandardCNP, packet.LongHaulCNP, packet.PPFC}

var extensions = map[string]packet.Notification{"none": packet.StandardCNP, "long-haul": packet.LongHaulCNP, "ppfc": packet.PPFC}

// receiverOf is a receiver that a golden notification is for: it trusts everybody and has every QP.
func receiverOf(g *notifications.Golden) Receiver {
	r := Receiver{Code: packet.DefaultCodePoints, Extension: extensions[g.Extension]}
	if g.ICRC == "without-extension-headers" {
		r.ICRC = ICRCWithoutExtensionHeaders
	}
	return r
}

// decodeFrame parses and decodes a frame.
func (r *Receiver) decodeFrame(frame []byte) (n Notification, reason Reason) {
	var p packet.Parsed
	packet.Parse(frame, uint32(len(frame)), &p)
	reason = r.Decode(frame, &p, &n)
	return n, reason
}

func golden(name string) (*notifications.Golden, Receiver) {
	g := notifications.Find(name)
	return g, receiverOf(g)
}

// encode puts an accepted notification together again from what n says: envelope is what came before it, link-layer and IP headers.
// ICRC and checksums are computed anew.
func encode(n *Notification, envelope []byte) []byte { return appendEncoded(nil, n, envelope) }

// appendEncoded is encode in place of what out holds.
func appendEncoded(out []byte, n *Notification, envelope []byte) []byte {
	out = append(out[:0], envelope[:n.Start]...)
	var b []byte
	switch n.Kind {
	case packet.LinkPause:
		out, b = extend(out, packet.PauseLen)
		n.Pause.Put(b)
		return out
	case packet.LinkPFC:
		out, b = extend(out, packet.PFCLen)
		n.PFC.Put(b)
		return out
	case packet.LongHaulCNPICMPv6:
		out = append(out, packet.DefaultCodePoints.LongHaulICMPv6Type, codeFlowLevel, 0, 0)
		out = appendLongHaul(out, &n.LongHaul)
		binary.BigEndian.PutUint16(out[n.Start+2:], packet.ICMPv6Checksum(n.Src, n.Dst, out[n.Start:]))
		return out
	case packet.FastCNP:
		out, b = extend(out, n.Fast.Len())
		n.Fast.Put(b)
	}
	udp := len(out)
	out, b = extend(out, packet.UDPLen)
	n.UDP.Put(b)
	if n.Kind == packet.ProxyNotification {
		out, b = extend(out, packet.ProxiedLen(n.Proxy.Version))
		n.Proxy.Put(b)
		return checksummed(n, append(out, n.Proxy.Invoking...), udp)
	}
	out, b = extend(out, packet.BTHLen)
	n.BTH.Put(b)
	switch n.Kind {
	case packet.StandardCNP, packet.FastCNP:
		out = append(out, n.Body...)
	case packet.LongHaulCNP:
		out = appendLongHaul(out, &n.LongHaul)
	case packet.PPFC:
		out, b = extend(out, packet.PPFCLen(n.Family))
		n.PPFC.Put(b, n.Family)
	}
	icrc := packet.ICRC(out, l3Of(out), udp+packet.UDPLen, len(out), n.ICRC == ICRCAsSent)
	return checksummed(n, binary.LittleEndian.AppendUint32(out, icrc), udp)
}

// checksummed computes the UDP checksum, where there is one.
func checksummed(n *Notification, out []byte, udp int) []byte {
	if n.UDP.Checksum != 0 {
		binary.BigEndian.PutUint16(out[udp+6:], packet.UDPChecksum(n.Src, n.Dst, out[udp:]))
	}
	return out
}

// extend appends n octets to out, none of them zero, and returns these too.
func extend(out []byte, n int) (all, appended []byte) {
	at := len(out)
	out = slices.Grow(out, n)[:at+n]
	for i := range out[at:] {
		out[at+i] = 0xa5
	}
	return out, out[at:]
}

func put(length int, encode func([]byte)) []byte {
	_, b := extend(nil, length)
	encode(b)
	return b
}

// appendLongHaul encodes object by object.
func appendLongHaul(out []byte, l *LongHaul) []byte {
	out, b := extend(out, packet.LongHaulLen)
	l.Put(b)
	if len(l.Objects) == 0 {
		return out
	}
	out, b = extend(out, packet.ExtensionHeaderLen)
	l.Header.Put(b)
	for list := l.Objects; len(list) > 0; {
		o, size := packet.NextObject(list)
		out, b = extend(out, o.Len())
		o.Put(b)
		list = list[size:]
	}
	return out
}

// l3Of is the offset of the IP header behind any number of tags.
func l3Of(frame []byte) int {
	at := 12
	for frame[at] == 0x81 || frame[at] == 0x88 && frame[at+1] == 0xa8 || frame[at] == 0x91 {
		at += 4
	}
	return at + 2
}

// repair makes a frame's checksums and ICRC right, as far as there are any, so that a decoder has to look further.
func repair(frame []byte, c *packet.CodePoints, coverage ICRCCoverage) {
	var p packet.Parsed
	packet.Parse(frame, uint32(len(frame)), &p)
	l4, end := int(p.L4), int(p.IPEnd)
	if p.Family == 4 && l4 != 0 {
		h := frame[p.L3:l4]
		h[10], h[11] = 0, 0
		binary.BigEndian.PutUint16(h[10:], ^plainSum(h))
	}
	switch {
	case packet.Classify(frame, &p, c) == packet.NotANotification:
	case p.Proto == packet.ProtoICMPv6:
		if m := frame[l4:end]; len(m) >= packet.ICMPv6Len+packet.LongHaulLen {
			repairExtension(m[packet.ICMPv6Len+packet.LongHaulLen:])
			binary.BigEndian.PutUint16(m[2:], packet.ICMPv6Checksum(p.Src, p.Dst, m))
		}
	case p.Kind != packet.RoCEv2: // without an ICRC
		repairUDP(frame[l4:end], &p)
	default:
		if behind := frame[p.Ext():p.ICRC]; len(behind) > packet.LongHaulLen {
			repairExtension(behind[packet.LongHaulLen:])
		}
		icrc := packet.ICRC(frame, int(p.L3), int(p.BTH), int(p.ICRC), coverage != ICRCWithoutExtensionHeaders)
		binary.LittleEndian.PutUint32(frame[p.ICRC:], icrc)
		repairUDP(frame[l4:end], &p)
	}
}

// repairExtension makes the checksum right of what looks like an extension structure: an Extension Header's version.
func repairExtension(b []byte) {
	if len(b) < packet.ExtensionHeaderLen || b[0]>>4 != packet.ExtensionVersion || b[2]|b[3] == 0 {
		return
	}
	b[2], b[3] = 0, 0
	sum := int(plainSum(b))
	if len(b)%2 != 0 {
		sum += int(b[len(b)-1]) << 8
	}
	binary.BigEndian.PutUint16(b[2:], ^uint16(sum+sum>>16))
}

func repairUDP(datagram []byte, p *packet.Parsed) {
	if len(datagram) >= 8 && datagram[6]|datagram[7] != 0 {
		binary.BigEndian.PutUint16(datagram[6:], packet.UDPChecksum(p.Src, p.Dst, datagram))
	}
}

// plainSum is the one's complement sum of 16-bit words (RFC 1071).
func plainSum(b []byte) uint16 {
	sum := 0
	for i := 0; i+1 < len(b); i += 2 {
		sum += int(b[i])<<8 + int(b[i+1])
		if sum > 0xffff {
			sum -= 0xffff
		}
	}
	return uint16(sum)
}

// captured returns the first frames of each capture of real traffic.
func captured(t testing.TB, each int) (all [][]byte) {
	t.Helper()
	for _, path := range pcap.Real(t) {
		all = append(all, pcap.Octets(pcap.Read(t, path)[:each])...)
	}
	return all
}
