package config

import (
	"time"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// defaultPerFlow is the least time between notifications of a flow if no round-trip time is known.
const defaultPerFlow = time.Millisecond

func (r *report) resolveNotifications(doc *document) Notifications {
	s := &doc.Notifications
	traceOption := s.FastCNP.OptionType.V
	if s.FastCNP.TraceOptionType.given {
		traceOption = s.FastCNP.TraceOptionType.V
	}
	r.checkICMPv6Type(&s.LongHaulCNP.ICMPv6Type)
	return Notifications{
		Observe: s.Mode.V == modeObserve, ObserveKind: observedKinds(doc), FlowPKey: s.PKey.V == 1, PPFC: s.PPFC.Enabled.V, Standard: s.StandardCNP.Enabled.V,
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
			Timestamp:       s.LongHaulCNP.Extensions.Timestamp.V,
			Device:          s.LongHaulCNP.Extensions.Device.V,
			Path:            s.LongHaulCNP.Extensions.Path.V,
		},
		Limits: Limits{PerDestination: s.Limits.PerDestination.V, PerPort: s.Limits.PerPort.V},
	}
}

// modeObserve is the number of the word observe in the schema.
const modeObserve = 1

func observedKinds(doc *document) (kinds [packet.SentNotifications]bool) {
	s := &doc.Notifications
	long := s.LongHaulCNP.Mode.V == modeObserve
	kinds[packet.FastCNP], kinds[packet.LongHaulCNP], kinds[packet.LongHaulCNPICMPv6] = s.FastCNP.Mode.V == modeObserve, long, long
	kinds[packet.PPFC], kinds[packet.StandardCNP] = s.PPFC.Mode.V == modeObserve, s.StandardCNP.Mode.V == modeObserve
	kinds[packet.ProxyNotification] = doc.Proxy.Mode.V == modeObserve
	return kinds
}

// resolvePerFlow sets a port's least time between notifications of a flow: draft-tian 5.5 recommends one round-trip time.
func resolvePerFlow(s *limitsSection, rtt time.Duration) time.Duration {
	switch {
	case s.PerFlow.given:
		return s.PerFlow.V
	case rtt > 0:
		return rtt
	}
	return defaultPerFlow
}

// checkSources checks that the gateway has an address for the notifications that it sends.
func (r *report) checkSources(doc *document) {
	g, n := &doc.Gateway, &doc.Notifications
	if !g.valid {
		return
	}
	has4, has6 := g.IPv4.given, g.IPv6.given // even an invalid one shows the intention
	if n.FastCNP.Enabled.V && !has6 {
		r.problem(n.FastCNP.Enabled.place, "Fast CNP is IPv6 and needs a source address; set ipv6 in gateway (%s)", r.position(g.place))
	}
	if n.PPFC.Enabled.V && !has4 && !has6 {
		r.problem(n.PPFC.Enabled.place, "PPFC needs a source address; set ipv4, ipv6 or both in gateway (%s)", r.position(g.place))
	}
	if n.LongHaulCNP.Enabled.V && !has4 && !has6 {
		r.problem(n.LongHaulCNP.Enabled.place, "Long-haul CNP needs a source address; set ipv4, ipv6 or both in gateway (%s)",
			r.position(g.place))
	}
	if !has4 && !has6 {
		return // formats that can't be sent are reported already
	}
	for i := range doc.Endpoints.Items {
		r.warnUnreachable(&doc.Endpoints.Items[i], n, has4, has6)
	}
}

// warnUnreachable warns of hosts that accept a format but can't get it, because the gateway lacks an address. A standard CNP has the receiver's.
func (r *report) warnUnreachable(s *endpointSection, n *notificationsSection, has4, has6 bool) {
	is4 := s.Prefix.V.Addr().Is4()
	if !s.Prefix.valid || is4 && has4 || !is4 && has6 {
		return
	}
	enabled := [packet.SentNotifications]bool{
		packet.LongHaulCNP: n.LongHaulCNP.Enabled.V, packet.LongHaulCNPICMPv6: n.LongHaulCNP.Enabled.V, packet.PPFC: n.PPFC.Enabled.V,
	}
	for i := range s.Accepts.Items {
		if f := &s.Accepts.Items[i]; f.valid && enabled[f.V] {
			family := "ipv6"
			if is4 {
				family = "ipv4"
			}
			r.warn(f.place, "can't be sent to %s, as gateway.%s is not set", s.Prefix.V, family)
			return
		}
	}
}
