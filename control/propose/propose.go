// Package propose makes a configuration from what is seen at two interfaces: it runs copies of frames through the gateway's own parser and
// dataplane, without forwarding, and notes the hosts, DSCPs, priorities and VLANs of RoCEv2. It opens no interface: frames come from its caller.
package propose

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/cnpgate/cnpgate/control/capturefile"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/replay"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/netif"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// Plan is what is known before any frame is seen.
type Plan struct {
	Command     string // that makes the proposal, for the file's first line
	Name        string // of the gateway
	Fabric, WAN netif.Facts
	Tap         bool           // the interfaces receive mirrored frames
	Hosts       []netip.Prefix // of the fabric, if Fabric is a mirror port of both directions and there is no other; else nil
	Rate        uint64         // bit/s of the line behind the WAN port; 0: that of the interface
	Core        int            // of the worker
	Socket      string         // of the API
}

// unknownRate is proposed for an interface that doesn't tell its rate (bit/s).
const unknownRate = 10e9

// Proposal is a configuration that grows with what is seen.
type Proposal struct {
	Plan
	fabric, wan *side
	listened    time.Duration
	live        *replay.Live
	result      *report.Report // nil if nothing was seen
	lost        uint64
	parsed      packet.Parsed
}

// New starts a proposal. The caller must call End.
func New(p Plan) *Proposal { return &Proposal{Plan: p, fabric: newSide(), wan: newSide()} }

// Add notes a frame, and runs it through a dataplane that is configured as proposed so far. The frame's time counts from the first one.
func (p *Proposal) Add(fromFabric bool, first time.Time, f capturefile.Frame) error {
	if p.live == nil {
		cfg, err := config.Parse("the proposal", []byte(p.YAML()))
		if err != nil {
			return fmt.Errorf("the proposal isn't a valid configuration, which is a bug in cnpgate; please report it: %w", err)
		}
		if p.live, err = replay.NewLive(cfg, first, max(len(f.Octets), netif.Captured)); err != nil {
			return err
		}
	}
	if p.Hosts != nil {
		packet.Parse(f.Octets, f.Length, &p.parsed)
		fromFabric = slices.ContainsFunc(p.Hosts, func(hosts netip.Prefix) bool { return hosts.Contains(p.parsed.Src.Netip().Unmap()) })
	}
	if fromFabric {
		p.fabric.add(f.Octets, f.Length)
	} else {
		p.wan.add(f.Octets, f.Length)
	}
	return p.live.Add(fromFabric, f)
}

// End says how long frames were seen, and how many were lost before they could be. It returns the configuration and its summary.
func (p *Proposal) End(listened time.Duration, lost uint64) (yaml string, said []string, err error) {
	p.listened, p.lost = listened, lost
	if p.live != nil {
		if p.result, err = p.live.End(); err != nil {
			return "", nil, err
		}
	}
	yaml = p.YAML()
	if _, err := config.Parse("the proposal", []byte(yaml)); err != nil {
		return "", nil, fmt.Errorf("the proposal isn't a valid configuration, which is a bug in cnpgate; please report it: %w", err)
	}
	return yaml, p.said(), nil
}

// rtt is the round-trip time over the WAN that the dataplane has measured, 0 for none.
func (p *Proposal) rtt() time.Duration {
	if p.result == nil {
		return 0
	}
	for i := range p.result.Ports {
		if port := &p.result.Ports[i]; port.Role == dataplane.WAN.String() && port.RTTSource == "passive" {
			return time.Duration(port.RTTNanoseconds)
		}
	}
	return 0
}

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
