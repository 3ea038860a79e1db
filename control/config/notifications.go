package config

import (
	"time"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// defaultPerFlow is the least time between notifications of a flow where no round-trip time is known.
const defaultPerFlow = time.Millisecond

func (r *report) resolveNotifications(s *notificationsSection) Notifications {
	traceOption := s.FastCNP.OptionType.V
	if s.FastCNP.TraceOptionType.given {
		traceOption = s.FastCNP.TraceOptionType.V
	}
	return Notifications{
		DSCP: uint8(s.DSCP.V),
		FastCNP: FastCNPConfig{
			Enabled:              s.FastCNP.Enabled.V,
			OptionType:           uint8(s.FastCNP.OptionType.V),
			TraceOptionType:      uint8(traceOption),
			ICRCExtensionHeaders: s.FastCNP.ICRCExtensionHeaders.V,
		},
		LongHaul: LongHaulConfig{
			Enabled:         s.LongHaulCNP.Enabled.V,
			ICMPv6Type:      uint8(s.LongHaulCNP.ICMPv6Type.V),
			ExtensionClass:  uint8(s.LongHaulCNP.ExtensionClass.V),
			ReducePercent:   uint8(s.LongHaulCNP.ReducePercent.V),
			DiscloseMetrics: s.LongHaulCNP.DiscloseMetrics.V,
		},
		Limits: Limits{PerDestination: s.Limits.PerDestination.V, PerPort: s.Limits.PerPort.V},
	}
}

// resolveProxy reads what a gateway has to know of proxies before it talks to any: their port, by which it tells notifications to them.
func (r *report) resolveProxy(s *proxySection) Proxy {
	if s.Port.V == packet.RoCEv2Port {
		r.problem(s.Port.place, "%d is the port of RoCEv2; expected another", packet.RoCEv2Port)
	}
	return Proxy{Port: uint16(s.Port.V)}
}

// resolvePerFlow gives a port its least time between notifications of a flow: draft-tian 5.5 recommends one round-trip time.
func resolvePerFlow(s *limitsSection, rtt time.Duration) time.Duration {
	switch {
	case s.PerFlow.given:
		return s.PerFlow.V
	case rtt > 0:
		return rtt
	}
	return defaultPerFlow
}

// checkSources makes sure that the gateway has an address for the notifications it is to send.
func (r *report) checkSources(doc *document) {
	g, n := &doc.Gateway, &doc.Notifications
	if !g.valid {
		return
	}
	has4, has6 := g.IPv4.given, g.IPv6.given // even a mistaken one shows what was meant
	if n.FastCNP.Enabled.V && !has6 {
		r.problem(n.FastCNP.Enabled.place, "Fast CNP is IPv6 and needs a source address; set ipv6 in gateway (%s)", r.position(g.place))
	}
	if !n.LongHaulCNP.Enabled.V {
		return
	}
	if !has4 && !has6 {
		r.problem(n.LongHaulCNP.Enabled.place, "Long-haul CNP needs a source address; set ipv4, ipv6 or both in gateway (%s)",
			r.position(g.place))
		return
	}
	for i := range doc.Endpoints.Items {
		r.warnUnreachable(&doc.Endpoints.Items[i], has4, has6)
	}
}

// warnUnreachable tells of hosts that Long-haul CNP is meant for but can't be sent to.
func (r *report) warnUnreachable(s *endpointSection, has4, has6 bool) {
	is4 := s.Prefix.V.Addr().Is4()
	if !s.Prefix.valid || is4 && has4 || !is4 && has6 {
		return
	}
	for i := range s.Accepts.Items {
		if f := &s.Accepts.Items[i]; f.valid && (Format(f.V) == congestion.LongHaulCNP || Format(f.V) == congestion.LongHaulCNPICMPv6) {
			family := "ipv6"
			if is4 {
				family = "ipv4"
			}
			r.warn(f.place, "can't be sent to %s, as gateway.%s is not set", s.Prefix.V, family)
			return
		}
	}
}
