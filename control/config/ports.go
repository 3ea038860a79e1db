package config

import (
	"cmp"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/prefix"
	"github.com/cnpgate/cnpgate/internal/yamldoc"
	"github.com/cnpgate/cnpgate/ratelimit"
)

const (
	minCapacity = 1 << 20 // bytes, of the default for queue_capacity
	minFrames   = 64      // QueueFrames of a small queue
	frameShare  = 1024    // bytes of queue for each frame it may hold
)

func (r *resolver) resolvePorts() []Port {
	sections := r.doc.Ports
	ports := make([]Port, len(sections))
	devices, interfaces := map[string]*yamldoc.Node{}, map[string]*yamldoc.Node{}
	for i := range sections {
		s := &sections[i]
		if r.Valid(&s.Device) {
			r.checkDevice(&s.Device, devices, interfaces)
		}
		(&portResolver{resolver: r, s: s, p: &ports[i]}).resolvePort()
	}
	for i := range sections {
		ports[i].Peer = r.resolvePeer(sections, i)
	}
	for i := range sections {
		if a, b := &sections[i], &sections[ports[i].Peer]; i < ports[i].Peer && r.Valid(&a.MTU) && r.Valid(&b.MTU) && a.MTU != b.MTU {
			r.Warn(&a.MTU, "%d differs from %d of its peer %s (%s): longer packets from one port are dropped at the other; expected the same", a.MTU, b.MTU, b.Name,
				r.Position(&b.MTU))
		}
	}
	for i := range sections {
		(&portResolver{resolver: r, s: &sections[i], p: &ports[i]}).resolveLossless(ports)
	}
	return ports
}

// portResolver makes one port of the snapshot.
type portResolver struct {
	*resolver
	s       *portSection
	p       *Port
	profile *profileSection // nil: the one that the port names doesn't exist
	law     bool            // it responds by the control law
}

// checkDevice reports a device or a kernel interface that an earlier port uses: both would receive the same frames, and each would forward the
// other's frames. devices and interfaces have those of the earlier ports.
func (r *resolver) checkDevice(s *string, devices, interfaces map[string]*yamldoc.Node) {
	name, args, _ := strings.Cut(*s, ",") // EAL knows a device by the part before the first comma
	if !yamldoc.Unique(r.Document, devices, deviceKey(name), s, "the device "+yamldoc.Quote(name)) {
		return // the same device has the same interface
	}
	for arg := range strings.SplitSeq(args, ",") {
		key, iface, _ := strings.Cut(arg, "=")
		if !slices.Contains(exclusiveArgs, key) || key == "path" && strings.HasPrefix(iface, "/dev/") { // vhost-net supports many users
			continue
		}
		first := interfaces[iface]
		if first == nil {
			interfaces[iface] = r.At(s)
		} else if first != r.At(s) { // net_pcap receives and sends by one interface
			r.Problem(s, "the interface %s is that of %s (%s); expected another one, as each port needs an interface of its own",
				yamldoc.Quote(iface), first.Path, r.Position(first))
		}
	}
}

// exclusiveArgs are a device's arguments that name an interface, tap or socket which only one port can use (internal/dpdk, drivers).
var exclusiveArgs = []string{"iface", "rx_iface", "rx_iface_in", "tx_iface", "remote", "path"}

// deviceKey is the normal form of a PCI address: 3B:00.0 is 0000:3b:00.0.
func deviceKey(name string) string {
	if !pciAddress.MatchString(name) {
		return name
	}
	if strings.Count(name, ":") == 1 {
		name = "0000:" + name
	}
	return strings.ToLower(name)
}

var pciAddress = regexp.MustCompile(`^(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]$`)

func (r *portResolver) resolvePort() {
	s, p := r.s, r.p
	p.Name, p.Device, p.MTU, p.Bottleneck, p.Tap, p.Role, p.Rate = s.Name, s.Device, int(s.MTU), s.Bottleneck, s.tap, dataplane.Role(s.Role), s.Rate
	p.Policy.Rate, p.Policy.RTT, p.Policy.FabricHosts = s.Rate, int64(s.RTT), r.set(s.FabricHosts)
	r.resolveClasses()
	limit := &r.doc.Notifications.Limits.PerFlow
	p.Policy.PerFlow, p.Policy.PerFlowIsRTT = ratelimit.Interval(r.perFlow(s.RTT)), !r.Given(limit)
	r.resolveRTT()
	r.profile = r.profileOf()
	r.law = r.profile != nil && r.usesLaw(r.profile)
	r.resolvePacing()
	if r.profile != nil {
		r.resolveQueue()
		r.resolveResponse(&p.Policy)
	}
	if p.Frames == 0 {
		p.Frames = max(int(p.Capacity/frameShare), minFrames)
	}
	r.resolveFlowControl()
}

// set is the set of a list's valid prefixes, nil without any.
func (r *resolver) set(list []netip.Prefix) *prefix.Table[struct{}] {
	if valid := r.prefixes(list); len(valid) > 0 {
		return prefix.Set(valid)
	}
	return nil
}

// defaultPerFlow is the least time between notifications of a flow if no round-trip time is known.
const defaultPerFlow = time.Millisecond

// perFlow is a port's least time between notifications of a flow: draft-tian 5.5 recommends one round-trip time.
func (r *resolver) perFlow(rtt time.Duration) time.Duration {
	if limit := &r.doc.Notifications.Limits.PerFlow; r.Given(limit) {
		return *limit
	}
	return cmp.Or(rtt, defaultPerFlow)
}

// resolvePeer finds the index of a port's peer: a port of the other role that names this one as its peer. So each port is in only
// one pair.
func (r *resolver) resolvePeer(sections []portSection, i int) int {
	s := &sections[i]
	if !r.Valid(&s.Peer) {
		return 0
	}
	var names []string
	for j := range sections {
		peer := &sections[j]
		if !r.Valid(&peer.Name) {
			return 0 // it may be the missing name; its mistake is reported separately
		}
		if peer.Name == s.Peer {
			r.checkPair(s, peer)
			return j
		}
		if j != i {
			names = append(names, peer.Name)
		}
	}
	r.UnknownName(&s.Peer, s.Peer, "port", names)
	return 0
}

func (r *resolver) checkPair(s, peer *portSection) {
	switch {
	case s == peer:
		r.Problem(&s.Peer, "a port can't be its own peer; expected a port of the other role")
	case s.tap != peer.tap:
		r.Problem(&s.Peer, "%s and %s can't be a pair, because only one of them has role tap; expected two mirror ports, or two ports that forward",
			s.Name, peer.Name)
	case s.tap && r.Valid(&s.Role) && r.Valid(&peer.Role) && s.Role == peer.Role:
		r.Problem(&s.Peer, "%s mirrors the %s side too (%s); expected one mirror port of the fabric side and one of the WAN side as a pair",
			peer.Name, dataplane.Role(peer.Role), r.Position(&peer.Role))
	case r.Valid(&s.Role) && r.Valid(&peer.Role) && s.Role == peer.Role:
		r.Problem(&s.Peer, "%s has role %s too (%s); expected a fabric port and a WAN port as a pair",
			peer.Name, dataplane.Role(peer.Role), r.Position(&peer.Role))
	case r.Valid(&s.Name) && r.Valid(&peer.Peer) && peer.Peer != s.Name && peer.Peer != peer.Name:
		r.Problem(&s.Peer, "%s has another peer, %s (%s); expected two ports that name each other",
			peer.Name, peer.Peer, r.Position(&peer.Peer))
	}
}

// resolveClasses gives every DSCP to one class; the last class takes those that no class names.
func (r *portResolver) resolveClasses() {
	s, p := r.s, r.p
	p.Classes, p.ClassNames = 1, []string{"default"}
	if !r.Given(&s.TrafficClasses) {
		return
	}
	sections := s.TrafficClasses
	p.Classes, p.ClassNames = len(sections), nil
	for dscp := range p.ClassOf {
		p.ClassOf[dscp] = uint8(max(len(sections)-1, 0))
	}
	dscps := map[int64]*yamldoc.Node{}
	for i := range sections {
		c := &sections[i]
		if i < len(sections)-1 && len(c.DSCP) == 0 && (r.Valid(&c.DSCP) || !r.Given(&c.DSCP)) {
			r.Problem(&c.DSCP, "names no DSCP, so nothing would use this class; expected at least one (only the last class takes the rest)")
		}
		p.ClassNames = append(p.ClassNames, c.Name)
		for j := range c.DSCP {
			if d := &c.DSCP[j]; r.Valid(d) {
				yamldoc.Unique(r.Document, dscps, *d, d, "this DSCP")
				p.ClassOf[*d] = uint8(i)
			}
		}
	}
}
