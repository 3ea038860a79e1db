package config

import (
	"path/filepath"
	"slices"

	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/host"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/prefix"
	"github.com/cnpgate/cnpgate/proxy"
)

// resolve turns a decoded document into a snapshot, and reports contradictions between keys. It is also called for a document with
// mistakes, so that all are reported together: each check uses only valid values, and the snapshot is then discarded. fill writes what a key
// alone determines; the rest is calculated here and in the files of the sections.
func (r *report) resolve(doc *document) *Config {
	taps := r.resolveTaps(doc)
	cfg := &Config{document: doc}
	policy := &dataplane.Policy{Who: &congestion.Policy{}}
	cfg.Dataplane.Policy = policy
	fill(cfg, doc)
	policy.Observe = policy.Observe || taps
	g := &doc.Gateway
	policy.Build.HasIPv4, policy.Build.HasIPv6 = g.IPv4.valid, g.IPv6.valid
	policy.Who.HasIPv4, policy.Who.HasIPv6 = g.IPv4.valid, g.IPv6.valid
	for i := range g.STAMPReflector.Peers.Items {
		r.checkPeer(&g.STAMPReflector.Peers.Items[i], g)
	}
	r.checkDPDK(&doc.DPDK)
	cfg.Endpoints = r.resolveEndpoints(&doc.Endpoints)
	policy.Who.Endpoints = prefix.New(cfg.Endpoints)
	r.resolveKinds(doc, policy)
	r.checkQPMap(&doc.QPMap)
	r.resolveProxy(doc, cfg)
	r.resolveDomain(&doc.Domain, policy)
	r.checkBypass(&doc.Bypass)
	r.resolvePorts(doc, cfg.Ports)
	r.checkProfiles(doc)
	r.checkSources(doc)
	r.checkProxies(doc)
	r.warnUnused(doc)
	r.warnExamples()
	return cfg
}

// unique reports a value that an earlier entry has already, and returns false for it. seen has the values of the earlier entries.
func unique[K comparable](r *report, seen map[K]place, key K, at place, what string) bool {
	if first, twice := seen[key]; twice {
		r.problem(at, "%s is given twice; %s at %s also has it", what, first.path, r.position(first))
		return false
	}
	seen[key] = at
	return true
}

// kindSection is what a file says about a kind of notification, which may have several formats.
type kindSection struct {
	enabled *toggle
	mode    *choice
	formats []Format
}

// kindsOf are the kinds of a document, the one to proxies last.
func kindsOf(doc *document) []kindSection {
	n := &doc.Notifications
	return []kindSection{
		{&n.FastCNP.Enabled, &n.FastCNP.Mode, []Format{packet.FastCNP}},
		{&n.LongHaulCNP.Enabled, &n.LongHaulCNP.Mode, []Format{packet.LongHaulCNP, packet.LongHaulCNPICMPv6}},
		{&n.PPFC.Enabled, &n.PPFC.Mode, []Format{packet.PPFC}},
		{&n.StandardCNP.Enabled, &n.StandardCNP.Mode, []Format{packet.StandardCNP}},
		{&doc.Proxy.Enabled, &doc.Proxy.Mode, []Format{packet.ProxyNotification}},
	}
}

// resolveKinds sets what is sent and what is in it.
func (r *report) resolveKinds(doc *document, p *dataplane.Policy) {
	n := &doc.Notifications
	for _, k := range kindsOf(doc) {
		for _, f := range k.formats {
			p.Who.Enabled[f], p.ObserveKind[f] = k.enabled.V, k.mode.V == modeObserve
		}
	}
	s, own := &n.StandardCNP, &p.Build.CNP
	dscp := p.Build.DSCP
	if s.DSCP.given {
		dscp = uint8(s.DSCP.V)
	}
	own.Own, own.Class, own.MayFragment = true, dscp<<2|uint8(s.ECN.V), !s.DontFragment.V
	own.OwnPort, own.Port = s.SourcePort.given, uint16(s.SourcePort.V)
	p.Who.CNPFromGateway = own.FromGateway
	p.Build.Code.FastCNPTraceOption = p.Build.Code.FastCNPOption
	if n.FastCNP.TraceOptionType.given {
		p.Build.Code.FastCNPTraceOption = uint8(n.FastCNP.TraceOptionType.V)
	}
	if x := &n.LongHaulCNP.Extensions; x.Timestamp.V || x.Device.V != "" || x.Path.V != "" {
		p.Extension = &cnpgen.Extension{Device: []byte(x.Device.V), Path: []byte(x.Path.V)}
	}
	r.checkICMPv6Type(&n.LongHaulCNP.ICMPv6Type)
}

// modeObserve is the number of the word observe in the schema.
const modeObserve = 1

// resolveProxy makes the gateway's part as a proxy, and what announces and learns proxies.
func (r *report) resolveProxy(doc *document, cfg *Config) {
	s, g, p := &doc.Proxy, &doc.Gateway, cfg.Dataplane.Policy
	for i := range cfg.Senders {
		cfg.Senders[i].Origin = proxy.OriginStatic
	}
	r.resolveBGP(&s.BGP, s, g, cfg.BGP)
	r.resolveOSPF(&s.OSPF, s, g, cfg.OSPF)
	r.resolveOSPF6(&s.OSPF6, s, g, cfg.OSPF6)
	if !s.Enabled.V {
		cfg.Senders, cfg.BGP, cfg.OSPF, cfg.OSPF6 = nil, nil, nil, nil
	} else if len(s.Sources.Items) > 0 {
		p.Proxy = host.NewProxy(g.IPv4.V, g.IPv6.V, s.Listen.V, prefixesOf(&s.Sources), s.Limits.PerSource.V, s.Limits.Received.V)
	}
}

// resolveDomain makes the domain filter, none if the file has no domain.
func (r *report) resolveDomain(s *domainSection, p *dataplane.Policy) {
	if !s.given {
		return
	}
	if s.valid && !s.Members.given {
		r.problem(s.Members.place, "missing; expected %s, or no domain section for no domain filter", s.Members.expects(rule{}))
	}
	if s.valid && !s.NotificationSources.given {
		r.problem(s.NotificationSources.place, "missing; expected %s, which may be empty: []", s.NotificationSources.expects(rule{}))
	}
	if s.Members.valid && len(s.Members.Items) == 0 {
		r.problem(s.Members.place, "is empty, so no notification could leave by a WAN port; expected at least one prefix")
	}
	p.Border = dataplane.NewBorder(prefixesOf(&s.Members), prefixesOf(&s.NotificationSources), s.Mode.V == modeObserve)
}

// checkBypass checks where the heartbeat goes.
func (r *report) checkBypass(s *bypassSection) {
	switch {
	case !s.given:
	case s.valid && !s.File.given && !s.Command.given:
		r.problem(s.place, "neither file nor command is given; expected one of them, or no bypass section for no heartbeat")
	case s.File.valid && s.File.given && !filepath.IsAbs(s.File.V):
		r.problem(s.File.place, "%s is not an absolute path; expected one such as /sys/class/gpio/gpio17/value or /dev/watchdog1", quote(s.File.V))
	case s.File.given && s.Command.given:
		r.problem(s.Command.place, "file is given too (%s); expected one of them", r.position(s.File.place))
	case s.Values.given && s.Command.given:
		r.problem(s.Values.place, "values are written to a file, and command is given; remove values, or give file in place of command")
	}
}

// resolveEndpoints makes the formats that hosts accept.
func (r *report) resolveEndpoints(s *list[endpointSection]) []Endpoint {
	var endpoints []Endpoint
	for i := range s.Items {
		e := &s.Items[i]
		endpoints = append(endpoints, Endpoint{Prefix: e.Prefix.V, Value: congestion.Prefer(r.resolveAccepts(e)...)})
	}
	return endpoints
}

func (r *report) resolveAccepts(s *endpointSection) (formats []Format) {
	for i := range s.Accepts.Items {
		item := &s.Accepts.Items[i]
		if !item.valid {
			continue
		}
		f := Format(item.V)
		if (f == packet.FastCNP || f == packet.LongHaulCNPICMPv6) && s.Prefix.valid && s.Prefix.V.Addr().Is4() {
			r.problem(item.place, "%s is for IPv6 only, but the prefix is %s (%s); remove it here", f, s.Prefix.V, r.position(s.Prefix.place))
		}
		r.checkSharedBit(f, item.place, s.Accepts.Items[:i])
		formats = append(formats, f)
	}
	return formats
}

// checkSharedBit refuses a pair of formats that an endpoint can't distinguish: the E bit of Long-haul CNP and the P bit of PPFC are the
// same bit.
func (r *report) checkSharedBit(f Format, at place, before []accepted) {
	for _, pair := range [][2]Format{{packet.LongHaulCNP, packet.PPFC}, {packet.PPFC, packet.LongHaulCNP}} {
		other := slices.IndexFunc(before, func(a accepted) bool { return a.valid && Format(a.V) == pair[1] })
		if other >= 0 && f == pair[0] {
			r.problem(at, "%s and %s (%s) can't go together, both use the same bit of the BTH; keep the one these hosts understand",
				f, pair[1], r.position(before[other].place))
		}
	}
}
