package config

import (
	"regexp"
	"slices"
	"strings"
)

const (
	minCapacity = 1 << 20 // bytes, of the default for queue_capacity
	minFrames   = 64      // QueueFrames of a small queue
	frameShare  = 1024    // bytes of queue for each frame it may hold
)

func (r *report) resolvePorts(doc *document) []Port {
	sections := doc.Ports.Items
	ports := make([]Port, len(sections))
	names, devices, interfaces := map[string]place{}, map[string]place{}, map[string]place{}
	for i := range sections {
		s := &sections[i]
		if s.Name.valid {
			unique(r, names, s.Name.V, s.Name.place, "this name")
		}
		if s.Device.valid {
			r.checkDevice(s.Device, devices, interfaces)
		}
		ports[i] = r.resolvePort(doc, s)
	}
	for i := range sections {
		ports[i].Peer = r.resolvePeer(sections, i)
	}
	for i := range sections {
		r.resolveLossless(doc, &sections[i], &ports[i], &ports[ports[i].Peer])
	}
	return ports
}

// checkDevice reports a device or a kernel interface that an earlier port uses: both would receive the same frames, and each would forward the
// other's frames. devices and interfaces have those of the earlier ports.
func (r *report) checkDevice(s device, devices, interfaces map[string]place) {
	name, args, _ := strings.Cut(s.V, ",") // EAL knows a device by the part before the first comma
	if !unique(r, devices, deviceKey(name), s.place, "the device "+quote(name)) {
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

func (r *report) resolvePort(doc *document, s *portSection) Port {
	p := Port{
		Name: s.Name.V, Device: s.Device.V, Role: Role(s.Role.V), Tap: s.tap, FabricHosts: r.prefixes(&s.FabricHosts), Rate: s.Rate.V, RTT: s.RTT.V, MTU: int(s.MTU.V),
		Classes: r.resolveClasses(s), PerFlow: resolvePerFlow(&doc.Notifications.Limits, s.RTT.V), PerFlowIsRTT: !doc.Notifications.Limits.PerFlow.given,
	}
	r.resolveRTT(&p, s, &doc.Gateway)
	profile := r.profileOf(doc, s)
	r.resolvePacing(doc, s, &p, profile != nil && usesLaw(profile, &doc.Notifications))
	if r.resolveQueue(&p, s, profile, &doc.Notifications); profile != nil {
		p.Response = resolveResponse(&p, s, profile, &doc.Notifications)
		p.Adjust = resolveAdjust(&profile.Adjust)
	}
	p.QueueFrames = max(int(p.QueueCapacity/frameShare), minFrames)
	p.FlowControl = resolveFlowControl(doc, s)
	r.resolvePriorities(s, &p)
	return p
}

// resolvePeer finds the index of a port's peer: a port of the other role that names this one as its peer. So each port is in only
// one pair.
func (r *report) resolvePeer(sections []portSection, i int) int {
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

func (r *report) checkPair(s, peer *portSection) {
	switch {
	case s == peer:
		r.problem(s.Peer.place, "a port can't be its own peer; expected a port of the other role")
	case s.tap != peer.tap:
		r.problem(s.Peer.place, "%s and %s can't be a pair, because only one of them has role tap; expected two mirror ports, or two ports that forward",
			s.Name.V, peer.Name.V)
	case s.tap && s.Role.valid && peer.Role.valid && s.Role.V == peer.Role.V:
		r.problem(s.Peer.place, "%s mirrors the %s side too (%s); expected one mirror port of the fabric side and one of the WAN side as a pair",
			peer.Name.V, Role(peer.Role.V), r.position(peer.Role.place))
	case s.Role.valid && peer.Role.valid && s.Role.V == peer.Role.V:
		r.problem(s.Peer.place, "%s has role %s too (%s); expected a fabric port and a WAN port as a pair",
			peer.Name.V, Role(peer.Role.V), r.position(peer.Role.place))
	case s.Name.valid && peer.Peer.valid && peer.Peer.V != s.Name.V && peer.Peer.V != peer.Name.V:
		r.problem(s.Peer.place, "%s has another peer, %s (%s); expected two ports that name each other",
			peer.Name.V, peer.Peer.V, r.position(peer.Peer.place))
	}
}

// unknownName reports a reference to a name that doesn't exist.
func (r *report) unknownName(at place, text, what string, names []string) {
	switch meant := nearest(text, names); {
	case len(names) == 0:
		r.problem(at, "there is no %s %s; none is defined", what, quote(text))
	case meant != "":
		r.problem(at, "there is no %s %s; did you mean %s? Expected %s", what, quote(text), meant, either(names))
	default:
		r.problem(at, "there is no %s %s; expected %s", what, quote(text), either(names))
	}
}

// resolveClasses gives every DSCP to one class; the last class takes those that no class names.
func (r *report) resolveClasses(s *portSection) []Class {
	if !s.TrafficClasses.given {
		return []Class{{Name: "default", DSCP: ^uint64(0), Priority: -1}}
	}
	sections := s.TrafficClasses.Items
	classes := make([]Class, len(sections))
	names, dscps := map[string]place{}, map[int64]place{}
	named := uint64(0)
	for i := range sections {
		c := &sections[i]
		if c.Name.valid {
			unique(r, names, c.Name.V, c.Name.place, "this name")
		}
		if i < len(sections)-1 && len(c.DSCP.Items) == 0 && (c.DSCP.valid || !c.DSCP.given) {
			r.problem(c.DSCP.place, "names no DSCP, so nothing would use this class; expected at least one (only the last class takes the rest)")
		}
		classes[i].Name = c.Name.V
		for j := range c.DSCP.Items {
			if d := &c.DSCP.Items[j]; d.valid {
				unique(r, dscps, d.V, d.place, "this DSCP")
				classes[i].DSCP |= 1 << d.V
			}
		}
		named |= classes[i].DSCP
	}
	if last := len(classes) - 1; last >= 0 {
		classes[last].DSCP |= ^named
	}
	return classes
}
