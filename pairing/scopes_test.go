package pairing

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/synth"
	"pgregory.net/rapid"
)

// scopings are networks in which the packets of the two directions of a connection have other tags, labels or identifiers. One that a packet
// has is of its tenant's VLAN (Parsed.OuterTag), the direction, and its destination.
var scopings = []struct {
	name  string
	scope func(port uint16, p *packet.Parsed) packet.Scope
}{
	{"MPLS, a label for each direction", func(port uint16, p *packet.Parsed) packet.Scope {
		return packet.ScopeInTunnel(port, packet.Tunnel{Kind: packet.MPLS, ID: 100 + uint32(port)}, p.OuterTag)
	}},
	{"MPLS, a label for each destination", func(port uint16, p *packet.Parsed) packet.Scope {
		return packet.ScopeInTunnel(port, packet.Tunnel{Kind: packet.MPLS, ID: 100 + uint32(p.Dst.Lo)&0xfffff}, p.OuterTag)
	}},
	{"a GRE key for each direction", func(port uint16, p *packet.Parsed) packet.Scope {
		return packet.ScopeInTunnel(port, packet.Tunnel{Kind: packet.GRE, ID: 1<<31 + uint32(port)}, p.OuterTag)
	}},
	{"a VNI for each direction", func(port uint16, p *packet.Parsed) packet.Scope {
		return packet.ScopeInTunnel(port, packet.Tunnel{Kind: packet.VXLAN, ID: 1000*uint32(port+1) + uint32(p.OuterTag.VID())}, 0)
	}},
	{"a VNI for each subnet", func(port uint16, p *packet.Parsed) packet.Scope {
		return packet.ScopeInTunnel(port, packet.Tunnel{Kind: packet.VXLAN, ID: 1000*uint32(p.Dst.Lo&1+2*uint64(port)) + uint32(p.OuterTag.VID())}, 0)
	}},
	{"a VLAN for each direction", func(port uint16, p *packet.Parsed) packet.Scope {
		return packet.ScopeInVLAN(port, packet.MakeTag(packet.EtherTypeCTag, 1000*(port+1)+p.OuterTag.VID()), 0)
	}},
	{"a tag in one direction", func(port uint16, p *packet.Parsed) packet.Scope {
		return packet.ScopeInVLAN(port, packet.Tag(port)*packet.MakeTag(packet.EtherTypeCTag, 1000+p.OuterTag.VID()), 0)
	}},
	{"a tag in the other direction", func(port uint16, p *packet.Parsed) packet.Scope {
		return packet.ScopeInVLAN(port, packet.Tag(1-port)*packet.MakeTag(packet.EtherTypeCTag, 1000+p.OuterTag.VID()), 0)
	}},
	{"a label in one direction", func(port uint16, p *packet.Parsed) packet.Scope {
		if port == 0 {
			return packet.ScopeInVLAN(port, p.OuterTag, 0)
		}
		return packet.ScopeInTunnel(port, packet.Tunnel{Kind: packet.MPLS, ID: 17}, p.OuterTag)
	}},
}

// drawTraffic draws traffic as NICs send it.
func drawTraffic(t *rapid.T) synth.Config {
	c := synth.Config{
		Seed:        rapid.Uint64().Draw(t, "seed"),
		Hosts:       [2]int{rapid.IntRange(1, 4).Draw(t, "fabric hosts"), rapid.IntRange(1, 4).Draw(t, "WAN hosts")},
		Connections: rapid.SampledFrom([]int{32, 96, 256}).Draw(t, "connections"),
		Ports:       rapid.SampledFrom([]synth.Ports{synth.PortsSymmetric, synth.PortsFlowLabel, synth.PortsRandom, synth.PortsAsymmetric, synth.PortsEqual}).Draw(t, "ports"),
		StartPSN:    rapid.SampledFrom([]synth.StartPSN{synth.PSNRandom, synth.PSNZero}).Draw(t, "first PSN"),
		QPNs:        rapid.SampledFrom([]synth.QPNs{synth.QPRandom, synth.QPSequential}).Draw(t, "QPNs"),
		Requesters:  rapid.SampledFrom([]synth.Requesters{synth.FromFabric, synth.FromWAN, synth.FromEither, synth.FromBoth}).Draw(t, "requesters"),
		Schedule:    rapid.SampledFrom([]synth.Schedule{synth.Free, synth.Lockstep}).Draw(t, "schedule"),
		Messages:    32,
		Generations: rapid.IntRange(0, 1).Draw(t, "generations"),
		Reuse:       rapid.SampledFrom([]synth.Reuse{synth.ReusePeerQP, synth.ReusePair, synth.ReuseShuffled}).Draw(t, "reuse"),
		Mix:         rapid.SampledFrom([]synth.Mix{{Write: 1}, {Send: 1, Write: 1, Read: 1}}).Draw(t, "mix"),
	}
	if rapid.Bool().Draw(t, "loss") {
		c.LossBefore, c.LossAfter = slightly, slightly
	}
	return c
}

// TestScopesOfOneDirection: where the two directions of a connection differ in what doesn't separate tenants, or always in the same way, at
// least 95 % of the flows are confirmed that equal tags would confirm, and none with a wrong QP.
func TestScopesOfOneDirection(t *testing.T) {
	for i := range scopings {
		in := &scopings[i]
		t.Run(in.name, func(t *testing.T) {
			equal, other := &score{}, &score{}
			rapid.Check(t, func(r *rapid.T) {
				c := drawTraffic(r)
				equal.add(learnIn(t, c, nil))
				s := learnIn(t, c, in.scope)
				if s.wrong > 0 {
					r.Errorf("%v", s)
				}
				other.add(s)
			})
			t.Logf("equal tags: %v\n%s: %v", equal, in.name, other)
			if 100*other.confirmed < 95*equal.confirmed {
				t.Errorf("%d flows confirmed, %d with equal tags", other.confirmed, equal.confirmed)
			}
		})
	}
}
