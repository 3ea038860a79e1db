package replay_test

import (
	"encoding/binary"
	"net"
	"slices"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// What a capture's frames are wrapped in.

var outerMAC = [2]net.HardwareAddr{{2, 0, 0, 0, 9, 1}, {2, 0, 0, 0, 9, 2}}

// wrap is headers in front of a frame without its first octets; of a frame that isn't IP, and so can't be in all of them, nothing.
type wrap struct {
	from    int
	headers func(forth, i int) []gopacket.SerializableLayer // forth: 0 or 1
}

// of puts a frame behind the headers.
func (w wrap) of(i int, f frame) frame {
	etherType := binary.BigEndian.Uint16(f.octets[12:])
	if v4, v6 := etherType == packet.EtherTypeIPv4, etherType == packet.EtherTypeIPv6; etherType == packet.EtherTypeMACControl || w.from > 12 && !v4 && !v6 {
		return f
	}
	forth := 0
	if p, b := packetIn(&f); b != nil && forward(&p) {
		forth = 1
	}
	missing := f.length - len(f.octets)
	payload := slices.Concat(f.octets[min(w.from, len(f.octets)):], make([]byte, missing))
	buffer := gopacket.NewSerializeBuffer()
	all := append(w.headers(forth, i), gopacket.Payload(payload))
	for n, l := range all { // which IP version is in there
		next := layers.EthernetType(etherType)
		if n+2 < len(all) || w.from != packet.EthernetLen {
			continue
		}
		switch l := l.(type) {
		case *layers.Ethernet:
			l.EthernetType = next
		case *layers.GRE:
			l.Protocol = next
		case *layers.IPv4:
			l.Protocol = inIP(next)
		case *layers.IPv6:
			l.NextHeader = inIP(next)
		case *layers.PPP:
			if l.PPPType = layers.PPPTypeIPv4; next == layers.EthernetTypeIPv6 {
				l.PPPType = layers.PPPTypeIPv6
			}
		case *segments:
			l.next = inIP(next)
		}
	}
	if err := gopacket.SerializeLayers(buffer, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, all...); err != nil {
		panic(err)
	}
	b := buffer.Bytes()
	return frame{f.at, slices.Clone(b[:len(b)-missing]), len(b)}
}

func inIP(etherType layers.EthernetType) layers.IPProtocol {
	if etherType == layers.EthernetTypeIPv6 {
		return layers.IPProtocolIPv6
	}
	return layers.IPProtocolIPv4
}

// segments is a Segment Routing Header with one segment (RFC 8754 2).
type segments struct{ next layers.IPProtocol }

func (s *segments) LayerType() gopacket.LayerType { return layers.LayerTypeIPv6Routing }

func (s *segments) SerializeTo(b gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	h, err := b.PrependBytes(24)
	clear(h)
	copy(h, []byte{byte(s.next), 2, 4})
	copy(h[8:], net.ParseIP("fd00:9::1"))
	return err
}

func raw(b ...byte) gopacket.SerializableLayer { return gopacket.Payload(b) }

func outerEthernet(forth int, etherType layers.EthernetType) *layers.Ethernet {
	return &layers.Ethernet{SrcMAC: outerMAC[forth], DstMAC: outerMAC[1-forth], EthernetType: etherType}
}

func outerIPv4(forth int, proto layers.IPProtocol) *layers.IPv4 {
	ips := [2]net.IP{{192, 0, 2, 1}, {192, 0, 2, 2}}
	return &layers.IPv4{Version: 4, TTL: 60, Protocol: proto, SrcIP: ips[forth], DstIP: ips[1-forth]}
}

func outerIPv6(forth int, proto layers.IPProtocol) *layers.IPv6 {
	ips := [2]net.IP{net.ParseIP("fd00:9::1"), net.ParseIP("fd00:9::2")}
	return &layers.IPv6{Version: 6, HopLimit: 60, NextHeader: proto, SrcIP: ips[forth], DstIP: ips[1-forth]}
}

type headers = []gopacket.SerializableLayer

// inUDP is Ethernet, IP and UDP to a port, and more headers.
func inUDP(v6 bool, port int, more ...gopacket.SerializableLayer) func(forth, i int) headers {
	return func(forth, _ int) headers {
		udp := &layers.UDP{SrcPort: layers.UDPPort(50000 + forth), DstPort: layers.UDPPort(port)}
		var outer headers
		if v6 {
			ip := outerIPv6(forth, layers.IPProtocolUDP)
			_ = udp.SetNetworkLayerForChecksum(ip)
			outer = headers{outerEthernet(forth, layers.EthernetTypeIPv6), ip, udp}
		} else {
			ip := outerIPv4(forth, layers.IPProtocolUDP)
			_ = udp.SetNetworkLayerForChecksum(ip)
			outer = headers{outerEthernet(forth, layers.EthernetTypeIPv4), ip, udp}
		}
		return append(outer, more...)
	}
}

// mirror is Ethernet, IPv4 and GRE, and more octets.
func mirror(etherType layers.EthernetType, numbered bool, key uint32, more ...byte) func(forth, i int) headers {
	return func(forth, i int) headers {
		gre := &layers.GRE{Protocol: etherType, SeqPresent: numbered, Seq: uint32(i), KeyPresent: key != 0, Key: key}
		all := headers{outerEthernet(forth, layers.EthernetTypeIPv4), outerIPv4(forth, layers.IPProtocolGRE), gre}
		if len(more) > 0 {
			all = append(all, raw(more...))
		}
		return all
	}
}

func labels(each ...uint32) func(forth, i int) headers {
	return func(forth, _ int) headers {
		all := headers{outerEthernet(forth, layers.EthernetTypeMPLSUnicast)}
		for n, label := range each {
			all = append(all, &layers.MPLS{Label: label + uint32(forth), TTL: 60, StackBottom: n == len(each)-1})
		}
		return all
	}
}

// behindMACs are octets between a frame's MAC addresses and its EtherType.
func behindMACs(octets ...byte) func(int, frame) frame {
	return func(_ int, f frame) frame {
		if binary.BigEndian.Uint16(f.octets[12:]) == packet.EtherTypeMACControl {
			return f
		}
		f.octets = slices.Concat(f.octets[:12], octets, f.octets[12:])
		f.length += len(octets)
		return f
	}
}

// one applies to one direction only.
func one(change func(int, frame) frame) func(int, frame) frame {
	return func(i int, f frame) frame {
		if p, b := packetIn(&f); b != nil && forward(&p) {
			return change(i, f)
		}
		return f
	}
}

// both applies one after the other.
func both(first, second func(int, frame) frame) func(int, frame) frame {
	return func(i int, f frame) frame { return second(i, first(i, f)) }
}

var (
	inVLAN     = behindMACs(0x81, 0, 0, 100)
	inQinQ     = behindMACs(0x88, 0xa8, 0, 50, 0x81, 0, 0, 100)
	inVXLAN4   = wrap{0, inUDP(false, 4789, raw(8, 0, 0, 0, 0, 0, 77, 0))}.of
	inGeneve   = wrap{0, inUDP(false, 6081, raw(2, 0, 0x65, 0x58, 0, 0, 77, 0, 1, 2, 3, 1, 9, 9, 9, 9))}.of
	inTeb      = wrap{0, mirror(0x6558, false, 0x4d01)}.of
	inERSPAN1  = wrap{0, mirror(0x88be, false, 0)}.of
	inERSPANII = wrap{0, mirror(0x88be, true, 0, 0x10, 1, 0, 1, 0, 0, 0, 0)}.of
	inERSPAN3  = wrap{0, mirror(0x22eb, true, 0, 0x20, 1, 0, 1, 0, 0, 0, 5, 0, 0, 0, 0)}.of
	inLabels   = wrap{14, labels(1000)}.of
	inIPv4IP   = wrap{14, func(forth, _ int) headers {
		return headers{outerEthernet(forth, layers.EthernetTypeIPv4), outerIPv4(forth, 4)}
	}}.of
	inIPv6IP = wrap{14, func(forth, _ int) headers {
		return headers{outerEthernet(forth, layers.EthernetTypeIPv6), outerIPv6(forth, 4)}
	}}.of
	inPPPoE = wrap{14, func(forth, _ int) headers {
		return headers{outerEthernet(forth, layers.EthernetTypePPPoESession), &layers.PPPoE{Version: 1, Type: 1, SessionId: 7}, &layers.PPP{}}
	}}.of
)

// wraps are by name what doesn't change the answer.
var wraps = map[string]func(int, frame) frame{
	"VLAN":                inVLAN,
	"QinQ":                inQinQ,
	"QinQ 9100":           behindMACs(0x91, 0, 0, 50, 0x81, 0, 0, 100),
	"three tags":          both(inQinQ, behindMACs(0x88, 0xa8, 0, 9)),
	"priority tag":        behindMACs(0x81, 0, 0x60, 0),
	"VXLAN":               inVXLAN4,
	"VXLAN in IPv6":       wrap{0, inUDP(true, 4789, raw(8, 0, 0, 0, 0, 0, 77, 0))}.of,
	"VXLAN, group policy": wrap{0, inUDP(false, 4789, raw(0x88, 0, 0, 5, 0, 0, 77, 0))}.of,
	"VXLAN on 8472":       wrap{0, inUDP(false, 8472, raw(8, 0, 0, 0, 0, 0, 77, 0))}.of,
	"VXLAN-GPE":           wrap{0, inUDP(false, 4790, raw(0x0c, 0, 0, 3, 0, 0, 77, 0))}.of,
	"Geneve":              inGeneve,
	"Geneve in IPv6":      wrap{0, inUDP(true, 6081, raw(0, 0, 0x65, 0x58, 0, 0, 77, 0))}.of,
	"NVGRE":               inTeb,
	"GRE":                 wrap{14, mirror(0x0800, false, 0)}.of,
	"GRE with a key":      wrap{14, mirror(0x0800, true, 9)}.of,
	"ERSPAN I":            inERSPAN1,
	"ERSPAN II":           inERSPANII,
	"ERSPAN III":          inERSPAN3,
	"Everflow":            wrap{0, mirror(0x8949, false, 0)}.of,
	"MPLS":                inLabels,
	"MPLS, three labels":  wrap{14, labels(1000, 2000, 3000)}.of,
	"pseudowire":          wrap{0, func(forth, i int) headers { return append(labels(1000)(forth, i), raw(0, 0, 0, 0)) }}.of,
	"MPLS in UDP":         wrap{14, inUDP(false, 6635, &layers.MPLS{Label: 1000, TTL: 60, StackBottom: true})}.of,
	"IP in IPv4":          inIPv4IP,
	"IP in IPv6":          inIPv6IP,
	"SRv6": wrap{14, func(forth, _ int) headers {
		return headers{outerEthernet(forth, layers.EthernetTypeIPv6), outerIPv6(forth, 43), &segments{}}
	}}.of,
	"Ethernet in SRv6": wrap{0, func(forth, _ int) headers {
		return headers{outerEthernet(forth, layers.EthernetTypeIPv6), outerIPv6(forth, 143)}
	}}.of,
	"PPPoE":           inPPPoE,
	"E-TAG":           behindMACs(0x89, 0x3f, 0, 0, 0, 1, 0, 0),
	"VN-Tag":          behindMACs(0x89, 0x26, 0, 0, 0, 1),
	"Cisco Meta Data": behindMACs(0x89, 0x09, 1, 1, 0, 1, 0, 9),
	"MAC-in-MAC":      wrap{0, func(forth, _ int) headers { return headers{outerEthernet(forth, 0x88e7), raw(0, 0, 0, 9)} }}.of,
	"MAC-in-MAC, tagged": wrap{0, func(forth, _ int) headers {
		return headers{outerEthernet(forth, 0x88a8), raw(0, 5, 0x88, 0xe7, 0, 0, 0, 9)}
	}}.of,
	"VLAN one way":          one(inVLAN),
	"VXLAN one way":         one(inVXLAN4),
	"Geneve one way":        one(inGeneve),
	"MPLS one way":          one(inLabels),
	"GRE one way":           one(inTeb),
	"ERSPAN one way":        one(inERSPANII),
	"IP in IP one way":      one(inIPv4IP),
	"PPPoE one way":         one(inPPPoE),
	"VLAN in VXLAN":         both(inVLAN, inVXLAN4),
	"VXLAN in VLAN":         both(inVXLAN4, inVLAN),
	"VXLAN in ERSPAN II":    both(inVXLAN4, inERSPANII),
	"VXLAN in QinQ":         both(inVXLAN4, inQinQ),
	"Geneve in ERSPAN III":  both(inGeneve, inERSPAN3),
	"VLAN in ERSPAN I":      both(inVLAN, inERSPAN1),
	"MPLS in VLAN":          both(inLabels, inVLAN),
	"MPLS in ERSPAN II":     both(inLabels, inERSPANII),
	"ERSPAN in VXLAN":       both(inERSPANII, inVXLAN4),
	"ERSPAN in ERSPAN":      both(inERSPANII, inERSPAN3),
	"PPPoE in VLAN":         both(inPPPoE, inVLAN),
	"IP in IP in VXLAN":     both(inIPv4IP, inVXLAN4),
	"VXLAN in VXLAN":        both(inVXLAN4, inVXLAN4),
	"IP in IP in IP":        both(inIPv4IP, inIPv6IP),
	"VXLAN in ERSPAN in IP": both(both(inVXLAN4, inERSPANII), inIPv6IP),
	"VXLAN in MPLS":         both(inVXLAN4, inLabels),
	"NVGRE in SRv6":         both(inTeb, inIPv6IP),
}
