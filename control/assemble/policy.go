package assemble

import (
	"net/netip"

	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/ratelimit"
)

// Policy is the part of a configuration that workers go by from burst to burst.
func Policy(c *config.Config) *dataplane.Policy {
	n := &c.Notifications
	p := &dataplane.Policy{
		Ports: make([]dataplane.PortPolicy, len(c.Ports)),
		Build: gateway(c),
		Who:   who(c),

		ReducePercent:   uint16(n.LongHaul.ReducePercent),
		DiscloseMetrics: n.LongHaul.DiscloseMetrics,
		PerDestination:  ratelimit.PerSecond(n.Limits.PerDestination),
		PerPort:         ratelimit.PerSecond(n.Limits.PerPort),
	}
	for i := range c.Ports {
		p.Ports[i] = dataplane.PortPolicy{
			Thresholds: congestion.Thresholds{KMin: c.Ports[i].KMin, KMax: c.Ports[i].KMax},
			PerFlow:    ratelimit.Interval(c.Ports[i].PerFlow),
		}
	}
	if c.Domain != nil {
		p.Border = dataplane.NewBorder(c.Domain.Members, c.Domain.NotificationSources)
	}
	return p
}

func gateway(c *config.Config) cnpgen.Gateway {
	g := cnpgen.Gateway{
		HasIPv4: c.Gateway.IPv4.IsValid(), HasIPv6: c.Gateway.IPv6.IsValid(), DSCP: c.Notifications.DSCP,
		Code:                 CodePoints(c),
		ICRCExtensionHeaders: c.Notifications.FastCNP.ICRCExtensionHeaders,
	}
	g.IPv4, g.IPv6 = address(c.Gateway.IPv4), address(c.Gateway.IPv6)
	return g
}

// CodePoints are the numbers, not assigned yet, that the configuration wants notifications to have.
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
