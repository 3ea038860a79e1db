package config

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/ratelimit"
)

const (
	minCapacity = 1 << 20 // bytes, of the default for queue_capacity
	minFrames   = 64      // QueueFrames of a small queue
	frameShare  = 1024    // bytes of queue for each frame it may hold
)

func (r *resolver) resolvePorts(ports []Port) {
	sections := r.doc.Ports.Items
	devices, interfaces := map[string]place{}, map[string]place{}
	for i := range sections {
		s := &sections[i]
		if s.Device.valid {
			r.checkDevice(s.Device, devices, interfaces)
		}
		(&portResolver{resolver: r, s: s, p: &ports[i]}).resolvePort()
	}
	for i := range sections {
		ports[i].Peer = r.resolvePeer(sections, i)
	}
	for i := range sections {
		if a, b := &sections[i], &sections[ports[i].Peer]; i < ports[i].Peer && a.MTU.valid && b.MTU.valid && a.MTU.V != b.MTU.V {
			r.warn(a.MTU.place, "%d differs from %d of its peer %s (%s): longer packets from one port are dropped at the other; expected the same", a.MTU.V, b.MTU.V, b.Name.V,
				r.position(b.MTU.place))
		}
	}
	for i := range sections {
		(&portResolver{resolver: r, s: &sections[i], p: &ports[i]}).resolveLossless(ports)
	}
}

// checkDevice reports a device or a kernel interface that an earlier port uses: both would receive the same frames, and each would forward the
// other's frames. devices and interfaces have those of the earlier ports.
func (r *resolver) checkDevice(s device, devices, interfaces map[string]place) {
	name, args, _ := strings.Cut(s.V, ",") // EAL knows a device by the part before the first comma
	if !unique(r.report, devices, deviceKey(name), s.place, "the device "+quote(name)) {
		return // the same device has the same interface
	}
	for arg := range strings.SplitSeq(args, ",") {
		key, iface, _ := strings.Cut(arg, "=")
		if !slices.Contains(exclusiveArgs, key) || key == "path" && strings.HasPrefix(iface, "/dev/") { // vhost-net supports many users
			continue
		}
		if first, twice := interfaces[iface]; twice {
			if first.path == s.path {
				continue // net_pcap receives and sends by one interface
			}
			r.problem(s.place, "the interface %s is that of %s (%s); expected another one, as each port needs an interface of its own",
				quote(iface), first.path, r.position(first))
			continue
		}
		interfaces[iface] = s.place
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
	p.Tap, p.Policy.Rate = s.tap, s.Rate.V
	r.resolveClasses()
	limit := &r.doc.Notifications.Limits.PerFlow
	p.Policy.PerFlow, p.Policy.PerFlowIsRTT = ratelimit.Interval(perFlow(limit, s.RTT.V)), !limit.given
	r.resolveRTT()
	r.profile = r.profileOf()
	r.law = r.profile != nil && usesLaw(r.profile, &r.doc.Notifications)
	r.resolvePacing()
	if profile := r.profile; profile != nil {
		fill(&p.Policy, profile)
		r.resolveQueue()
		resolveResponse(&p.Policy.Response, profile, &r.doc.Notifications)
		if !profile.Adjust.Enabled.V {
			p.Policy.Adjust = congestion.AdjustPolicy{}
		}
	}
	p.Frames = max(int(p.Capacity/frameShare), minFrames)
	r.resolveFlowControl()
}

// defaultPerFlow is the least time between notifications of a flow if no round-trip time is known.
const defaultPerFlow = time.Millisecond

// perFlow is a port's least time between notifications of a flow: draft-tian 5.5 recommends one round-trip time.
func perFlow(limit *duration, rtt time.Duration) time.Duration {
	if limit.given {
		return limit.V
	}
	return cmp.Or(rtt, defaultPerFlow)
}

// resolvePeer finds the index of a port's peer: a port of the other role that names this one as its peer. So each port is in only
// one pair.
func (r *resolver) resolvePeer(sections []portSection, i int) int {
	s := &sections[i]
	if !s.Peer.valid {
		return 0
	}
	var names []string
	for j := range sections {
		peer := &sections[j]
		if !peer.Name.valid {
			return 0 // it may be the missing name; its mistake is reported separately
		}
		if peer.Name.V == s.Peer.V {
			r.checkPair(s, peer)
			return j
		}
		if j != i {
			names = append(names, peer.Name.V)
		}
	}
	r.unknownName(s.Peer.place, s.Peer.V, "port", names)
	return 0
}

func (r *resolver) checkPair(s, peer *portSection) {
	switch {
	case s == peer:
		r.problem(s.Peer.place, "a port can't be its own peer; expected a port of the other role")
	case s.tap != peer.tap:
		r.problem(s.Peer.place, "%s and %s can't be a pair, because only one of them has role tap; expected two mirror ports, or two ports that forward",
			s.Name.V, peer.Name.V)
	case s.tap && s.Role.valid && peer.Role.valid && s.Role.V == peer.Role.V:
		r.problem(s.Peer.place, "%s mirrors the %s side too (%s); expected one mirror port of the fabric side and one of the WAN side as a pair",
			peer.Name.V, dataplane.Role(peer.Role.V), r.position(peer.Role.place))
	case s.Role.valid && peer.Role.valid && s.Role.V == peer.Role.V:
		r.problem(s.Peer.place, "%s has role %s too (%s); expected a fabric port and a WAN port as a pair",
			peer.Name.V, dataplane.Role(peer.Role.V), r.position(peer.Role.place))
	case s.Name.valid && peer.Peer.valid && peer.Peer.V != s.Name.V && peer.Peer.V != peer.Name.V:
		r.problem(s.Peer.place, "%s has another peer, %s (%s); expected two ports that name each other",
			peer.Name.V, peer.Peer.V, r.position(peer.Peer.place))
	}
}

// resolveClasses gives every DSCP to one class; the last class takes those that no class names.
func (r *portResolver) resolveClasses() {
	s, p := r.s, r.p
	p.Classes, p.ClassNames = 1, []string{"default"}
	if !s.TrafficClasses.given {
		return
	}
	sections := s.TrafficClasses.Items
	p.Classes, p.ClassNames = len(sections), nil
	for dscp := range p.ClassOf {
		p.ClassOf[dscp] = uint8(max(len(sections)-1, 0))
	}
	dscps := map[int64]place{}
	for i := range sections {
		c := &sections[i]
		if i < len(sections)-1 && len(c.DSCP.Items) == 0 && (c.DSCP.valid || !c.DSCP.given) {
			r.problem(c.DSCP.place, "names no DSCP, so nothing would use this class; expected at least one (only the last class takes the rest)")
		}
		p.ClassNames = append(p.ClassNames, c.Name.V)
		for j := range c.DSCP.Items {
			if d := &c.DSCP.Items[j]; d.valid {
				unique(r.report, dscps, d.V, d.place, "this DSCP")
				p.ClassOf[d.V] = uint8(i)
			}
		}
	}
}
