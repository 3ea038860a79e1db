package scenario

import (
	"net/netip"
	"slices"
	"strconv"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/cnpgate/cnpgate/control/assemble"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/link"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/sim"
)

// gateway is a gateway, whether it has lossless classes, and the hosts to which it sends PPFC notifications.
type gateway struct {
	*sim.Gateway
	lossless bool
	ppfc     []netip.Prefix
}

// gateway makes the gateway at a place from its section, to respond with r.
func (s *Scenario) gateway(p *place, r Response) (g gateway, err error) {
	section := s.section(p)
	if section == nil {
		return g, s.doc.Err()
	}
	c, err := s.configured(p, section, r)
	if err != nil {
		return g, err
	}
	workers := int(section.Workers.V)
	settings, err := assemble.Settings(c, workers, s.Seed(), nil)
	settings.Flows = c.Dataplane.Flows // at each worker, since one may have all
	g.Gateway = &sim.Gateway{
		Dataplane: settings, Burst: c.DPDK.Burst, Workers: workers, Buffers: assemble.Frames(c, 1), Loop: int64(section.Loop.V),
		KnowsQPs: section.SourceQPs.V == 0,
	}
	for i := range c.Ports {
		f := c.Ports[i].FlowControl
		g.lossless = g.lossless || f != nil && slices.ContainsFunc(f.Lossless[:], func(class link.Lossless) bool { return class.On })
	}
	for _, e := range c.Endpoints {
		if e.Value.Accepts(packet.PPFC) {
			g.ppfc = append(g.ppfc, e.Prefix)
		}
	}
	return g, err
}

// givePFC enables PFC on a gateway's short links.
func (s *Scenario) givePFC(n *sim.Network, p *place) {
	for _, link := range []int{p.fabric, p.wan} {
		n.Links[link].PFC = s.short(&n.Links[link])
	}
}

// section finds a gateway's section. If the scenario has no sections of gateways at all, a gateway has the defaults.
func (s *Scenario) section(p *place) *gatewaySection {
	table := &s.d.Gateways
	for i, name := range table.Names {
		if name == p.name {
			return &table.Entries[i]
		}
	}
	s.doc.UnknownName(p.at, p.name, "gateway", table.Names)
	return nil
}

// configuration makes a gateway's configuration from its section. Keys that the section leaves out come from the network. There are two
// ports, the fabric port first.
func (s *Scenario) configuration(p *place, section *gatewaySection) *config.Config {
	e := section.Config
	e.Node = s.filled(p, section)
	c := s.doc.Configuration(&e)
	if c == nil {
		return nil
	}
	if len(c.Ports) != 2 || c.Ports[portFabric].Role != dataplane.Fabric || c.Ports[portWAN].Role != dataplane.WAN {
		s.doc.Problem(e.At(), "%d ports; expected a fabric port and then a WAN port", len(c.Ports))
		return nil
	}
	for _, port := range []struct{ number, link int }{{portFabric, p.fabric}, {portWAN, p.wan}} {
		if rate, link := c.Ports[port.number].Rate, s.network.Links[port.link].Rate; rate > link {
			s.doc.Problem(e.At(), "port %s has %d bit/s, and its link %d: expected at most the link's rate", c.Ports[port.number].Name, rate, link)
		}
	}
	return c
}

// filled is the YAML of a gateway's configuration, with what the network determines.
func (s *Scenario) filled(p *place, section *gatewaySection) *yaml.Node {
	root := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	if section.Config.Node != nil {
		root = clone(section.Config.Node)
	}
	s.fill(p, root)
	return root
}

// fill adds what the network determines to a gateway's configuration: its name and address, and its ports' names, devices, rates and RTT.
func (s *Scenario) fill(p *place, root *yaml.Node) {
	identity := entry(root, "gateway")
	setDefault(identity, "name", p.name)
	setDefault(identity, "ipv6", s.gatewayAddr(p).String())
	ports := entry(root, "ports")
	if len(ports.Content) == 0 {
		*ports = yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Line: root.Line, Column: root.Column, Content: []*yaml.Node{
			{Kind: yaml.MappingNode, Tag: "!!map"}, {Kind: yaml.MappingNode, Tag: "!!map"},
		}}
	}
	for i, port := range ports.Content {
		if port.Kind != yaml.MappingNode || i > portWAN {
			continue
		}
		name, peer, rate := "fabric", "wan", p.fabricRate
		if i == portWAN {
			name, peer, rate = "wan", "fabric", p.rate
			setDefault(port, "rtt", time.Duration(s.rtt).String())
		}
		setDefault(port, "name", name)
		setDefault(port, "role", name)
		setDefault(port, "peer", peer)
		setDefault(port, "device", "sim"+strconv.Itoa(i))
		setDefault(port, "rate", strconv.FormatUint(rate, 10)+"bps")
	}
	if len(s.places) > 1 && find(root, "domain") == nil { // gateways on one path know of each other, as an operator's do
		domain := entry(root, "domain")
		setPrefix(domain, "members", hostNet)
		setPrefix(domain, "notification_sources", gatewayNet)
	}
	flows := entry(root, "flows")
	setDefault(flows, "capacity", strconv.Itoa(max(minFlows, 4*len(s.flows))))
	setDefault(flows, "paired", strconv.Itoa(max(minPaired, 2*len(s.flows))))
}

// The minimum sizes of a simulated gateway's flow table and pairing table.
const (
	minFlows  = 4096
	minPaired = 1024
)

// gatewayNet and hostNet are the prefixes of the addresses of gateways and hosts.
var (
	gatewayNet = netip.MustParsePrefix("fd00:ffff::/32")
	hostNet    = netip.MustParsePrefix("fd00::/32")
)

// gatewayAddr is the address of the gateway at a place: fd00:ffff::n+1 for the nth.
func (s *Scenario) gatewayAddr(p *place) netip.Addr {
	a := gatewayNet.Addr().As16()
	for i := range s.places {
		if s.places[i].node == p.node {
			a[15] = byte(i + 1)
		}
	}
	return netip.AddrFrom16(a)
}

// hostPrefix is the address of a host.
func hostPrefix(h int) netip.Prefix {
	a := sim.HostAddr(h).Netip()
	return netip.PrefixFrom(a, a.BitLen())
}
