package scenario

import (
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/prefix"
)

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

// configure sets a gateway's configuration for the response.
func (s *Scenario) configure(c *config.Config, r Response) {
	if r == Configured {
		return
	}
	who := c.Dataplane.Policy.Who
	who.Enabled, c.Endpoints = [packet.SentNotifications]bool{packet.ProxyNotification: who.Enabled[packet.ProxyNotification] && r == Proxy}, nil
	defer func() { who.Endpoints = prefix.New(c.Endpoints) }()
	if r != Proxy {
		c.Dataplane.Policy.Proxy = nil
	}
	format, notifies := r.format()
	if !notifies {
		for i := range c.Ports {
			c.Ports[i].Policy.Pacing = nil
		}
		return
	}
	who.Enabled[format], who.Enabled[packet.StandardCNP] = true, true
	who.Enabled[packet.LongHaulCNPICMPv6] = format == packet.LongHaulCNP
	for h := range s.hosts {
		e := config.Endpoint{Prefix: hostPrefix(h), Value: congestion.Prefer(format)}
		if o := s.obeys[h]; o != 0 && !o.has(format) { // a gateway obeys in place of a host that obeys nothing
			e.Value = congestion.Prefer(packet.StandardCNP)
		}
		c.Endpoints = append(c.Endpoints, e)
	}
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
		c.HPCC.Hops = int(s.d.Hosts.Hops.V)
		c.HPCC.BaseRTT = int64(s.d.Hosts.HPCCRTT.V) // 0: RTT of the reaction point
	case r == PPFC && obeys.has(packet.PPFC):
		c.Extension = packet.PPFC
	}
}
