package assemble

import (
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/internal/prefix"
)

// who makes the policy of whom to tell: the endpoints' grants, and what is enabled.
func who(c *config.Config) *congestion.Policy {
	p := &congestion.Policy{
		Enabled: congestion.Enabled{
			FastCNP:           c.Notifications.FastCNP.Enabled,
			LongHaulCNP:       c.Notifications.LongHaul.Enabled,
			LongHaulCNPICMPv6: c.Notifications.LongHaul.Enabled,
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
