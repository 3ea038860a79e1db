// Package propose makes a configuration from what is seen at two interfaces: it runs copies of frames through the gateway's own parser and
// dataplane, without forwarding, and notes the hosts, DSCPs, priorities and VLANs of RoCEv2. It opens no interface: frames come from its caller.
package propose

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/cnpgate/cnpgate/internal/packet"
)

const (
	maxHosts = 4096 // of a side that are noted; further ones are counted as one
	maxVLANs = 256

	opcodeCNP = 0x81 // IBTA A17
	notECT    = 0
)

// vlan is the tags of a frame.
type vlan struct{ outer, inner packet.Tag }

// side is what was seen of the frames that arrived at one port.
type side struct {
	frames, rocev2, cnps, data, notECT, tunneled, linkControl uint64

	hosts      map[netip.Addr]uint64 // sources of RoCEv2, and their packets
	moreHosts  bool                  // there were more than maxHosts
	dscps      [64]uint64            // of RoCEv2 packets but CNPs
	priorities [8]uint64             // of those that have a tag
	vlans      map[vlan]uint64
	longest    uint32 // bytes of the largest IP packet
}

func newSide() *side { return &side{hosts: map[netip.Addr]uint64{}, vlans: map[vlan]uint64{}} }

// add notes a frame. length is the one on the wire.
func (s *side) add(octets []byte, length uint32) {
	var p packet.Parsed
	packet.Parse(octets, length, &p)
	s.frames++
	if p.Kind == packet.MACControl {
		s.linkControl++
	}
	if p.Kind != packet.RoCEv2 {
		return
	}
	s.rocev2++
	if p.Encapsulated() {
		s.tunneled++
	}
	s.longest = max(s.longest, p.Len-packet.EthernetLen-packet.VLANTagLen*uint32(p.Tags))
	if host := p.Src.Netip(); s.hosts[host] > 0 || len(s.hosts) < maxHosts {
		s.hosts[host]++
	} else {
		s.moreHosts = true
	}
	if v := (vlan{p.OuterTag, p.InnerTag}); s.vlans[v] > 0 || len(s.vlans) < maxVLANs {
		s.vlans[v]++
	}
	if p.Opcode == opcodeCNP {
		s.cnps++
		return
	}
	s.dscps[p.DSCP]++
	if p.Tags > 0 {
		s.priorities[binary.BigEndian.Uint16(octets[packet.EthernetLen:])>>13]++
	}
	if p.Opcode.HasPayload() {
		if s.data++; p.ECN == notECT {
			s.notECT++
		}
	}
}

// seen lists the indices of what was counted.
func seen(counts []uint64) (indices []int) {
	for i, n := range counts {
		if n > 0 {
			indices = append(indices, i)
		}
	}
	return indices
}

// fewPrefixes is how many entries of endpoints an operator reads: with more hosts than that, prefixes take their place.
const fewPrefixes = 16

// prefixesOf are the prefixes of hosts, without any of the others: the hosts themselves, or, if they are many, the longest prefixes of a usual length that
// are few. If those would hold one of the others, or are still many, the list is of hosts.
func prefixesOf(hosts map[netip.Addr]uint64, others map[netip.Addr]uint64) []netip.Prefix {
	all := prefixesOfLength(hosts, 32, 128)
	for _, bits := range [][2]int{{32, 128}, {24, 64}, {16, 56}, {12, 48}} {
		p := prefixesOfLength(hosts, bits[0], bits[1])
		if len(p) <= fewPrefixes && !slices.ContainsFunc(p, func(p netip.Prefix) bool { return containsAny(p, hosts, others) }) {
			return p
		}
	}
	return all
}

// containsAny reports whether a prefix contains one of the others that is none of the hosts.
func containsAny(p netip.Prefix, hosts, others map[netip.Addr]uint64) bool {
	for other := range others {
		if hosts[other] == 0 && p.Contains(other) {
			return true
		}
	}
	return false
}

func prefixesOfLength(hosts map[netip.Addr]uint64, bits4, bits6 int) (all []netip.Prefix) {
	for host := range hosts {
		bits := bits6
		if host.Is4() {
			bits = bits4
		}
		all = append(all, netip.PrefixFrom(host, bits).Masked())
	}
	slices.SortFunc(all, netip.Prefix.Compare)
	return slices.Compact(all)
}
