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
	"github.com/cnpgate/cnpgate/endpoint"
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
	c := s.configuration(p, section, s.gatewayYAML(p, section, r))
	if c == nil {
		return g, s.doc.Err()
	}
	workers := int(section.Workers)
	settings, err := assemble.Settings(c, workers, s.Seed(), nil)
	settings.Flows = c.Dataplane.Flows // at each worker, since one may have all
	g.Gateway = &sim.Gateway{
		Dataplane: settings, Burst: c.DPDK.Burst, Workers: workers, Buffers: assemble.Frames(c, 1), Loop: int64(section.Loop),
		KnowsQPs: section.SourceQPs == 0,
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

// configuration reads the configuration of the gateway at a place. There are two ports, the fabric port first.
func (s *Scenario) configuration(p *place, section *gatewaySection, root *yaml.Node) *config.Config {
	e := &section.Config
	c := config.Embedded(s.doc, e, root)
	if c == nil {
		return nil
	}
	if len(c.Ports) != 2 || c.Ports[portFabric].Role != dataplane.Fabric || c.Ports[portWAN].Role != dataplane.WAN {
		s.doc.Problem(e, "%d ports; expected a fabric port and then a WAN port", len(c.Ports))
		return nil
	}
	for _, port := range []struct{ number, link int }{{portFabric, p.fabric}, {portWAN, p.wan}} {
		if rate, link := c.Ports[port.number].Rate, s.network.Links[port.link].Rate; rate > link {
			s.doc.Problem(e, "port %s has %d bit/s, and its link %d: expected at most the link's rate", c.Ports[port.number].Name, rate, link)
		}
	}
	return c
}

// gatewayYAML is a gateway's configuration for a response. Keys that its section leaves out come from the network.
func (s *Scenario) gatewayYAML(p *place, section *gatewaySection, r Response) *yaml.Node {
	root := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	if section.Config.Node != nil {
		root = clone(section.Config.Node)
	}
	s.fill(p, root)
	s.respond(root, r)
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
	setDefault(flows, "followed", "0") // nothing here reads the connections' health, and 18 MB are slow to clear
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

// Response is a way to respond to congestion.
type Response uint8

const (
	ECN         Response = iota // marking only: receivers' CNPs and DCQCN; gateways neither notify nor pace
	FastCNP                     // the gateway's Fast CNPs drive DCQCN
	LongHaulCNP                 // senders obey the gateway's Long-haul CNPs
	StandardCNP                 // the gateway's standard CNPs drive DCQCN
	FastCNPHPCC                 // the gateway's Fast CNPs carry the packet's trace, which drives HPCC
	PPFC                        // the gateway's PPFC notifications pause senders
	Configured                  // as the gateways are configured
	Proxy                       // as StandardCNP, by way of the proxies that the gateways' configurations name
)

var responseNames = [...]string{"ecn", "fast-cnp", "long-haul-cnp", "standard-cnp", "fast-cnp-hpcc", "ppfc", "configured", "proxy"}

// String is the response's name in scenarios and reports.
func (r Response) String() string { return responseNames[r] }

// format is the format of the gateway's notifications; false if the response doesn't choose one.
func (r Response) format() (packet.Notification, bool) {
	switch r {
	case FastCNP, FastCNPHPCC:
		return packet.FastCNP, true
	case LongHaulCNP:
		return packet.LongHaulCNP, true
	case StandardCNP, Proxy:
		return packet.StandardCNP, true
	case PPFC:
		return packet.PPFC, true
	}
	return 0, false
}

// react sets a host's reaction point for the response.
func (s *Scenario) react(c *endpoint.ReactionConfig, host int, r Response) {
	obeys := s.obeys[host]
	if obeys == 0 {
		c.Algorithm = endpoint.NoControl
		return
	}
	c.Algorithm = endpoint.DCQCN
	c.FastCNP = obeys.has(packet.FastCNP)
	if obeys.has(packet.LongHaulCNP) {
		c.LongHaulICMPv6, c.Extension = true, packet.LongHaulCNP
	}
	switch {
	case r == FastCNPHPCC && c.FastCNP:
		c.Algorithm = endpoint.HPCC
		c.HPCC.Hops = int(s.d.Hosts.Hops)
		c.HPCC.BaseRTT = int64(s.d.Hosts.HPCCRTT) // 0: RTT of the reaction point
	case r == PPFC && obeys.has(packet.PPFC):
		c.Extension = packet.PPFC
	}
}
