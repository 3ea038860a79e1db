package config

import (
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/host"
	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/prefix"
	"github.com/cnpgate/cnpgate/proxy"
)

// resolve turns a decoded document into a snapshot, and reports contradictions between keys. It is also called for a document with
// mistakes, so that all are reported together: each check uses only valid values, and the snapshot is then discarded. fill writes what a key
// alone determines; the rest is calculated here and in the files of the sections.
func (r *resolver) resolve() *Config {
	taps := r.resolveTaps()
	cfg := &Config{document: r.doc}
	policy := &dataplane.Policy{Who: &congestion.Policy{}}
	cfg.Dataplane.Policy = policy
	fill(cfg, r.doc)
	policy.Observe = policy.Observe || taps
	g := &r.doc.Gateway
	policy.Build.HasIPv4, policy.Build.HasIPv6 = g.IPv4.valid, g.IPv6.valid
	policy.Who.HasIPv4, policy.Who.HasIPv6 = g.IPv4.valid, g.IPv6.valid
	for i := range g.STAMPReflector.Peers.Items {
		r.checkPeer(&g.STAMPReflector.Peers.Items[i])
	}
	r.checkDPDK()
	cfg.Endpoints = r.resolveEndpoints()
	policy.Who.Endpoints = prefix.New(cfg.Endpoints)
	r.resolveKinds(policy)
	checkQPMap(r.report, &r.doc.QPMap)
	checkScopes(r.report, &r.doc.Pairing.Scopes)
	r.resolveProxy(cfg)
	r.resolveDomain(policy)
	r.checkWeb()
	r.checkBypass()
	(&fleetResolver{r}).resolve(cfg)
	r.resolvePorts(cfg.Ports)
	r.checkProfiles()
	r.checkSources()
	r.checkProxies()
	r.warnUnused()
	r.warnExamples()
	return cfg
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
func (r *resolver) resolveKinds(p *dataplane.Policy) {
	n := &r.doc.Notifications
	for _, k := range kindsOf(r.doc) {
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
	r.checkICMPv6Type()
}

// modeObserve is the number of the word observe in the schema.
const modeObserve = 1

// resolveProxy makes the gateway's part as a proxy, and what announces and learns proxies.
func (r *resolver) resolveProxy(cfg *Config) {
	s, g, p := &r.doc.Proxy, &r.doc.Gateway, cfg.Dataplane.Policy
	for i := range cfg.Senders {
		cfg.Senders[i].Origin = proxy.OriginStatic
	}
	protocols := &protocolResolver{r}
	protocols.resolveBGP(cfg.BGP)
	protocols.resolveOSPF(cfg.OSPF)
	protocols.resolveOSPF6(cfg.OSPF6)
	if !s.Enabled.V {
		cfg.Senders, cfg.BGP, cfg.OSPF, cfg.OSPF6 = nil, nil, nil, nil
	} else if len(s.Sources.Items) > 0 {
		p.Proxy = host.NewProxy(g.IPv4.V, g.IPv6.V, s.Listen.V, prefixesOf(&s.Sources), s.Limits.PerSource.V, s.Limits.Received.V)
	}
}

// resolveDomain makes the domain filter, none if the file has no domain.
func (r *resolver) resolveDomain(p *dataplane.Policy) {
	s := &r.doc.Domain
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
	p.Border = stage.NewBorder(prefixesOf(&s.Members), prefixesOf(&s.NotificationSources), s.Mode.V == modeObserve)
}

// checkWeb checks that who isn't on this machine needs TLS and a token to see the page.
func (r *resolver) checkWeb() {
	s := &r.doc.Management.Web
	files := []struct {
		key  string
		file *text
	}{{"certificate", &s.Certificate}, {"key", &s.Key}, {"token_file", &s.TokenFile}}
	at, err := netip.ParseAddrPort(s.Listen.V)
	var missing []string
	for _, f := range files {
		if f.file.given && f.file.valid && !filepath.IsAbs(f.file.V) {
			r.problem(f.file.place, "%s is not an absolute path; expected such as /etc/cnpgate/web-%s", quote(f.file.V), f.key)
		}
		if !f.file.given {
			missing = append(missing, f.key)
		}
	}
	switch {
	case !s.given || !s.valid:
	case !s.Listen.given:
		r.problem(s.place, "listen is not given; expected such as listen: 127.0.0.1:8420, or no web section for no page")
	case s.Listen.valid && err == nil && !at.Addr().IsLoopback() && len(missing) > 0:
		r.problem(s.Listen.place, "%s can be reached from other machines, and %s is not given; expected certificate, key and token_file, or a loopback address such as 127.0.0.1:8420",
			s.Listen.V, strings.Join(missing, " and "))
	case s.Certificate.given != s.Key.given:
		r.problem(s.place, "only one of certificate and key is given; expected both, or neither for a page without TLS on this machine")
	case overlap(s.Listen.V, r.doc.Management.Metrics.V):
		r.problem(s.Listen.place, "%s is also the address of management.metrics (%s); expected another port, as only one of them can have it", s.Listen.V, r.position(r.doc.Management.Metrics.place))
	}
}

// overlap reports whether only one server can listen at two addresses.
func overlap(a, b string) bool {
	x, errX := netip.ParseAddrPort(a)
	y, errY := netip.ParseAddrPort(b)
	return errX == nil && errY == nil && x.Port() == y.Port() && x.Port() != 0 && x.Addr().Is4() == y.Addr().Is4() &&
		(x.Addr() == y.Addr() || x.Addr().IsUnspecified() || y.Addr().IsUnspecified())
}

// checkBypass checks where the heartbeat goes.
func (r *resolver) checkBypass() {
	switch s := &r.doc.Bypass; {
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
func (r *resolver) resolveEndpoints() (endpoints []Endpoint) {
	for i := range r.doc.Endpoints.Items {
		e := &r.doc.Endpoints.Items[i]
		endpoints = append(endpoints, Endpoint{Prefix: e.Prefix.V, Value: congestion.Prefer(r.resolveAccepts(e)...)})
	}
	return endpoints
}

func (r *resolver) resolveAccepts(s *endpointSection) (formats []Format) {
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
func (r *resolver) checkSharedBit(f Format, at place, before []accepted) {
	for _, pair := range [][2]Format{{packet.LongHaulCNP, packet.PPFC}, {packet.PPFC, packet.LongHaulCNP}} {
		other := slices.IndexFunc(before, func(a accepted) bool { return a.valid && Format(a.V) == pair[1] })
		if other >= 0 && f == pair[0] {
			r.problem(at, "%s and %s (%s) can't go together, both use the same bit of the BTH; keep the one these hosts understand",
				f, pair[1], r.position(before[other].place))
		}
	}
}

func (r *resolver) checkDPDK() {
	s := &r.doc.DPDK
	if s.Hugepages.valid && !s.Hugepages.V && s.InMemory.V {
		r.problem(s.InMemory.place, "true contradicts hugepages: false at %s; EAL's in-memory mode needs hugepages, leave it out",
			r.position(s.Hugepages.place))
	}
	for i := range s.EALArgs.Items {
		switch arg := &s.EALArgs.Items[i]; {
		case !arg.valid:
		case !strings.HasPrefix(arg.V, "-") && i == 0, arg.V == "-", arg.V == "--":
			r.problem(arg.place, "%s is not an EAL option; expected one such as --log-level=lib.eal:debug", quote(arg.V))
		case strings.HasPrefix(arg.V, "-"):
			r.checkEALArg(arg)
		}
	}
}

// ownArgs are the EAL arguments that the gateway sets itself, and the replacement for each.
var ownArgs = []struct{ short, long, use string }{
	{"a", "allow", usePorts},
	{"b", "block", usePorts},
	{"", "vdev", usePorts},
	{"", "no-pci", "the gateway adds it when no port's device is a PCI address"},
	{"l", "lcores", useWorkers},
	{"c", "", useWorkers},
	{"", "main-lcore", useWorkers},
	{"m", "", "memory is sized from ports[].queue_capacity and ports[].mtu"},
	{"", "no-huge", useHugepages},
	{"", "no-shconf", useHugepages},
	{"", "in-memory", "set dpdk.in_memory: true"},
	{"", "file-prefix", "the gateway makes one of its own"},
	{"", "proc-type", "the gateway is always the primary process"},
	{"h", "help", "it would end the gateway; dpdk-testpmd --help lists EAL's options"},
}

const (
	usePorts     = "name the devices in ports[].device"
	useWorkers   = "name the cores in dpdk.workers"
	useHugepages = "set dpdk.hugepages: false"
)

// checkEALArg refuses the arguments in ownArgs, in every form that getopt_long(3) accepts: long options may be abbreviated, short
// ones combined.
func (r *resolver) checkEALArg(arg *text) {
	long, isLong := strings.CutPrefix(arg.V, "--")
	long, _, _ = strings.Cut(long, "=")
	for _, own := range ownArgs {
		if isLong && strings.HasPrefix(own.long, long) || !isLong && own.short != "" && hasShort(arg.V[1:], own.short[0]) {
			r.problem(arg.place, "%s is not allowed in eal_args, because the gateway sets it; %s", quote(arg.V), own.use)
			return
		}
	}
}

// hasShort reports whether a cluster of short options contains one. All but -h and -v take the rest of the cluster as their value.
func hasShort(cluster string, option byte) bool {
	for i := range len(cluster) {
		if cluster[i] == option {
			return true
		}
		if cluster[i] != 'h' && cluster[i] != 'v' {
			return false
		}
	}
	return false
}
