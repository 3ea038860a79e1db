package assemble

import (
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/prefix"
	"github.com/cnpgate/cnpgate/proxy"
)

// proxies are those of the configuration; nil if they are not enabled.
func proxies(p *config.Proxy) (*proxy.Senders, error) {
	if !p.Enabled {
		return nil, nil
	}
	return proxy.NewSenders(p.Senders...)
}

// who makes the policy of which senders to notify, from the formats that endpoints accept and those that are enabled.
func who(c *config.Config) *congestion.Policy {
	n := &c.Notifications
	p := &congestion.Policy{
		Enabled: [packet.SentNotifications]bool{
			packet.FastCNP:           n.FastCNP.Enabled,
			packet.LongHaulCNP:       n.LongHaul.Enabled,
			packet.LongHaulCNPICMPv6: n.LongHaul.Enabled,
			packet.PPFC:              n.PPFC,
			packet.StandardCNP:       n.Standard,
			packet.ProxyNotification: c.Proxy.Enabled,
		},
		HasIPv4: c.Gateway.IPv4.IsValid(), HasIPv6: c.Gateway.IPv6.IsValid(),
	}
	grants := make([]prefix.Entry[congestion.Preference], len(c.Endpoints))
	for i, e := range c.Endpoints {
		grants[i] = prefix.Entry[congestion.Preference]{Prefix: e.Prefix, Value: congestion.Prefer(e.Accepts...)}
	}
	p.Endpoints = prefix.New(grants)
	return p
}
