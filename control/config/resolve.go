package config

import (
	"net/netip"
	"strings"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/host"
	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/prefix"
	"github.com/cnpgate/cnpgate/internal/yamldoc"
	"github.com/cnpgate/cnpgate/proxy"
)

// resolver makes a snapshot from a decoded file. It finds the place of a value by its address.
type resolver struct {
	*yamldoc.Document
	doc *document
}

// resolve turns a decoded file into a snapshot, and reports contradictions between keys. It is also called for a file with mistakes, so that all are
// reported together: each check uses only valid values, and the snapshot is then discarded.
func (r *resolver) resolve(root *yamldoc.Node) *Config {
	taps := r.resolveTaps()
	d, g, flows := r.doc, &r.doc.Gateway, &r.doc.Flows
	policy := &dataplane.Policy{Who: &congestion.Policy{}, Observe: d.Notifications.Mode == modeObserve || taps}
	cfg := &Config{
		doc: r.Document, root: root, file: d, Name: g.Name, DPDK: d.DPDK, QPMap: d.QPMap, Scopes: d.Pairing.Scopes, Management: d.Management, Bypass: d.Bypass, Fleet: d.Fleet,
		Dataplane: dataplane.Config{Flows: flows.Capacity, Paired: flows.Paired, Followed: flows.Followed, Aging: int64(flows.Aging), StatedScopes: d.Pairing.StatedScopes, Policy: policy},
	}
	policy.Build.HasIPv4, policy.Build.HasIPv6 = r.Valid(&g.IPv4), r.Valid(&g.IPv6)
	policy.Who.HasIPv4, policy.Who.HasIPv6 = policy.Build.HasIPv4, policy.Build.HasIPv6
	if policy.Build.HasIPv4 {
		policy.Build.IPv4 = packet.AddrFrom(g.IPv4)
	}
	if policy.Build.HasIPv6 {
		policy.Build.IPv6 = packet.AddrFrom(g.IPv6)
	}
	for i := range g.STAMPReflector.Peers {
		if peer := &g.STAMPReflector.Peers[i]; r.Valid(peer) {
			policy.Reflects = append(policy.Reflects, packet.AddrFrom(*peer))
			r.checkPeer(peer)
		}
	}
	r.checkDPDK()
	cfg.Endpoints = r.resolveEndpoints()
	policy.Who.Endpoints = prefix.New(cfg.Endpoints)
	notifications := &notificationResolver{r}
	notifications.resolve(policy)
	r.checkQPMap()
	r.checkScopes()
	r.resolveProxy(cfg)
	r.resolveDomain(policy)
	r.checkWeb()
	r.checkBypass()
	(&fleetResolver{r}).resolve(cfg)
	cfg.Ports = r.resolvePorts()
	r.checkProfiles()
	notifications.checkSources(policy.Who)
	r.checkProxies()
	notifications.warnUnused()
	r.WarnExamples()
	return cfg
}

// modeObserve is the number of the word observe in the schema.
const modeObserve = 1

// resolveProxy makes the gateway's part as a proxy, and what announces and learns proxies.
func (r *resolver) resolveProxy(cfg *Config) {
	s, g := &r.doc.Proxy, &r.doc.Gateway
	protocols := &protocolResolver{r}
	protocols.resolveBGP(s.BGP)
	protocols.resolveOSPF(s.OSPF)
	protocols.resolveOSPF6(s.OSPF6)
	if s.Enabled == kindOff {
		return
	}
	cfg.BGP, cfg.OSPF, cfg.OSPF6 = s.BGP, s.OSPF, s.OSPF6
	for i := range s.Senders {
		cfg.Senders = append(cfg.Senders, proxy.Sender{Prefix: s.Senders[i].Prefix, Proxy: s.Senders[i].Proxy, Origin: proxy.OriginStatic})
	}
	if len(s.Sources) > 0 {
		cfg.Dataplane.Policy.Proxy = host.NewProxy(g.IPv4, g.IPv6, s.Listen, r.prefixes(s.Sources), s.Limits.PerSource, s.Limits.Received)
	}
}

// prefixes are the valid ones of a list.
func (r *resolver) prefixes(list []netip.Prefix) (valid []netip.Prefix) {
	for i := range list {
		if r.Valid(&list[i]) {
			valid = append(valid, list[i])
		}
	}
	return valid
}

// resolveDomain makes the domain filter, none if the file has no domain.
func (r *resolver) resolveDomain(p *dataplane.Policy) {
	s := &r.doc.Domain
	if !r.Given(s) {
		return
	}
	if r.Valid(&s.Members) && len(s.Members) == 0 {
		r.Problem(&s.Members, "is empty, so no notification could leave by a WAN port; expected at least one prefix")
	}
	p.Domain = stage.NewDomain(r.prefixes(s.Members), r.prefixes(s.NotificationSources), s.Mode == modeObserve)
}

// checkWeb checks that who isn't on this machine needs TLS and a token to see the page.
func (r *resolver) checkWeb() {
	s, metrics := r.doc.Management.Web, &r.doc.Management.Metrics
	if s == nil || !r.Given(&s.Listen) || !r.Valid(&s.Listen) {
		return
	}
	var missing []string
	for _, n := range r.At(s).Parts[1:] {
		if !n.Given {
			missing = append(missing, n.Key())
		}
	}
	if at, err := netip.ParseAddrPort(s.Listen); err == nil && !at.Addr().IsLoopback() && len(missing) > 0 {
		r.Problem(&s.Listen, "%s can be reached from other machines, which needs %s, too; expected certificate, key and token_file, or a loopback address such as 127.0.0.1:8420",
			s.Listen, strings.Join(missing, " and "))
	} else if overlap(s.Listen, *metrics) {
		r.Problem(&s.Listen, "%s is also the address of management.metrics (%s); expected another port, as only one of them can have it", s.Listen, r.Position(metrics))
	}
}

// overlap reports whether only one server can listen at two addresses.
func overlap(a, b string) bool {
	x, errX := netip.ParseAddrPort(a)
	y, errY := netip.ParseAddrPort(b)
	return errX == nil && errY == nil && x.Port() == y.Port() && x.Port() != 0 && x.Addr().Is4() == y.Addr().Is4() &&
		(x.Addr() == y.Addr() || x.Addr().IsUnspecified() || y.Addr().IsUnspecified())
}

// checkBypass checks that the heartbeat goes somewhere.
func (r *resolver) checkBypass() {
	switch s := r.doc.Bypass; {
	case s == nil || !r.Valid(s):
	case !r.Given(&s.File) && !r.Given(&s.Command):
		r.Problem(s, "neither file nor command is given; expected one of them, or no bypass section for no heartbeat")
	case r.Given(&s.Values) && !r.Given(&s.File):
		r.Problem(&s.Values, "values are written to a file, and command is given; remove values, or give file in place of command")
	}
}

// resolveEndpoints makes the formats that hosts accept.
func (r *resolver) resolveEndpoints() (endpoints []Endpoint) {
	for i := range r.doc.Endpoints {
		e := &r.doc.Endpoints[i]
		endpoints = append(endpoints, Endpoint{Prefix: e.Prefix, Value: congestion.Prefer(r.resolveAccepts(e)...)})
	}
	return endpoints
}

// resolveAccepts also refuses a pair of formats that an endpoint can't distinguish: the E bit of Long-haul CNP and the P bit of PPFC are the same bit.
func (r *resolver) resolveAccepts(s *endpointSection) (formats []Format) {
	var extended *Format // the first one that has the bit
	for i := range s.Accepts {
		f := &s.Accepts[i]
		if !r.Valid(f) {
			continue
		}
		if r.Valid(&s.Prefix) && !f.Over(s.Prefix.Addr().Is4()) {
			r.Problem(f, "%s is for IPv6 only, but the prefix is %s (%s); remove it here", *f, s.Prefix, r.Position(&s.Prefix))
		}
		switch {
		case !f.Extended():
		case extended == nil:
			extended = f
		case *f != *extended:
			r.Problem(f, "%s and %s (%s) can't go together, both use the same bit of the BTH; keep the one these hosts understand", *f, *extended, r.Position(extended))
		}
		formats = append(formats, *f)
	}
	return formats
}

func (r *resolver) checkDPDK() {
	s := &r.doc.DPDK
	if r.Valid(&s.Hugepages) && !s.Hugepages && s.InMemory {
		r.Problem(&s.InMemory, "true contradicts hugepages: false at %s; EAL's in-memory mode needs hugepages, leave it out", r.Position(&s.Hugepages))
	}
	for i := range s.EALArgs {
		switch arg := s.EALArgs[i]; {
		case !r.Valid(&s.EALArgs[i]):
		case !strings.HasPrefix(arg, "-") && i == 0, arg == "-", arg == "--":
			r.Problem(&s.EALArgs[i], "%s is not an EAL option; expected one such as --log-level=lib.eal:debug", yamldoc.Quote(arg))
		case strings.HasPrefix(arg, "-"):
			r.checkEALArg(&s.EALArgs[i])
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
func (r *resolver) checkEALArg(arg *string) {
	long, isLong := strings.CutPrefix(*arg, "--")
	long, _, _ = strings.Cut(long, "=")
	for _, own := range ownArgs {
		if isLong && strings.HasPrefix(own.long, long) || !isLong && own.short != "" && hasShort((*arg)[1:], own.short[0]) {
			r.Problem(arg, "%s is not allowed in eal_args, because the gateway sets it; %s", yamldoc.Quote(*arg), own.use)
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
