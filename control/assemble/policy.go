package assemble

import (
	"net/netip"

	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/host"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/prefix"
	"github.com/cnpgate/cnpgate/ratelimit"
)

// Policy is the part of a configuration that can change between a worker's bursts. The seed keys the hash of its QP map.
func Policy(c *config.Config, seed uint64) (*dataplane.Policy, error) {
	qpMap, err := qpMap(c, seed)
	if err != nil {
		return nil, err
	}
	proxies, err := proxies(&c.Proxy)
	if err != nil {
		return nil, err
	}
	n := &c.Notifications
	p := &dataplane.Policy{
		Ports: make([]dataplane.PortPolicy, len(c.Ports)),
		Build: gateway(c),
		Who:   who(c),
		QPMap: qpMap,

		Proxies: proxies,

		Extension: extension(&n.LongHaul),
		Timestamp: n.LongHaul.Timestamp,

		Observe:        n.Observe,
		ObserveKind:    n.ObserveKind,
		PerDestination: ratelimit.PerSecond(n.Limits.PerDestination),
		PerPort:        ratelimit.PerSecond(n.Limits.PerPort),
		PerProxy:       ratelimit.PerSecond(c.Proxy.PerProxy),
	}
	for i := range c.Ports {
		port := &c.Ports[i]
		q := queue(port)
		p.Ports[i] = dataplane.PortPolicy{
			Response: port.Response, PerFlow: ratelimit.Interval(port.PerFlow), PerFlowIsRTT: port.PerFlowIsRTT,
			Law: port.Law, RTTFrom: port.RTTFrom, Trust: port.RTTFrom.Trust(int64(port.RTT)), Sizing: port.Sizing, Adjust: port.Adjust, Pacing: port.Pacing, Queue: &q,
		}
		if len(port.Enforce) > 0 {
			p.Ports[i].Enforce = prefix.Set(port.Enforce)
		}
		if len(port.FabricHosts) > 0 {
			p.Ports[i].FabricHosts = prefix.Set(port.FabricHosts)
		}
		if port.STAMP.Peer.IsValid() {
			p.Ports[i].STAMP = host.STAMPSession{Peer: address(port.STAMP.Peer), Interval: int64(port.STAMP.Interval)}
		}
	}
	for _, peer := range c.Gateway.STAMPPeers {
		p.Reflects = append(p.Reflects, address(peer))
	}
	if c.Domain != nil {
		p.Border = dataplane.NewBorder(c.Domain.Members, c.Domain.NotificationSources, c.Domain.Observe)
	}
	if x := &c.Proxy; x.Enabled && len(x.Sources) > 0 {
		p.Proxy = host.NewProxy(c.Gateway.IPv4, c.Gateway.IPv6, x.Listen, x.Sources, x.PerSource, x.Received)
	}
	return p, nil
}

// extension has the Extension Objects of Long-haul CNPs, nil for none.
func extension(l *config.LongHaulConfig) *cnpgen.Extension {
	if !l.Timestamp && l.Device == "" && l.Path == "" {
		return nil
	}
	return &cnpgen.Extension{Device: []byte(l.Device), Path: []byte(l.Path)}
}

func gateway(c *config.Config) cnpgen.Gateway {
	g := cnpgen.Gateway{
		HasIPv4: c.Gateway.IPv4.IsValid(), HasIPv6: c.Gateway.IPv6.IsValid(), DSCP: c.Notifications.DSCP,
		Code:                 CodePoints(c),
		ICRCExtensionHeaders: c.Notifications.FastCNP.ICRCExtensionHeaders,
		FlowPKey:             c.Notifications.FlowPKey,
	}
	g.IPv4, g.IPv6 = address(c.Gateway.IPv4), address(c.Gateway.IPv6)
	return g
}

// CodePoints are the configuration's values for notifications' code points that are not assigned yet.
func CodePoints(c *config.Config) packet.CodePoints {
	fast, long := &c.Notifications.FastCNP, &c.Notifications.LongHaul
	return packet.CodePoints{
		FastCNPOption: fast.OptionType, FastCNPTraceOption: fast.TraceOptionType, LongHaulICMPv6Type: long.ICMPv6Type,
		ExtensionClass: long.ExtensionClass, ProxyPort: c.Proxy.Port,
	}
}

func address(a netip.Addr) packet.Addr {
	if !a.IsValid() {
		return packet.Addr{}
	}
	return packet.AddrFrom(a)
}
