package config

import "strings"

const (
	minCapacity = 1 << 20 // octets, of the default for queue_capacity
	minFrames   = 64      // QueueFrames of a small queue
	frameShare  = 1024    // octets of queue for each frame it may hold
)

func (r *report) resolvePorts(doc *document) []Port {
	sections := doc.Ports.Items
	ports := make([]Port, len(sections))
	names, devices := map[string]place{}, map[string]place{}
	for i := range sections {
		s := &sections[i]
		if s.Name.valid {
			unique(r, names, s.Name.V, s.Name.place, "this name")
		}
		if s.Device.valid {
			device, _, _ := strings.Cut(s.Device.V, ",") // EAL knows a device by this part
			unique(r, devices, device, s.Device.place, "the device "+quote(device))
		}
		ports[i] = r.resolvePort(doc, s)
	}
	for i := range sections {
		ports[i].Peer = r.resolvePeer(sections, i)
	}
	return ports
}

func (r *report) resolvePort(doc *document, s *portSection) Port {
	p := Port{
		Name: s.Name.V, Device: s.Device.V, Role: Role(s.Role.V), Rate: s.Rate.V, RTT: s.RTT.V, MTU: int(s.MTU.V),
		Classes: r.resolveClasses(s), PerFlow: resolvePerFlow(&doc.Notifications.Limits, s.RTT.V),
	}
	r.resolveQueue(&p, s, r.profileOf(doc, s))
	p.QueueFrames = max(int(p.QueueCapacity/frameShare), minFrames)
	return p
}

// resolvePeer finds the index of a port's peer: a port of the other role that names this one as its peer. That also puts each port
// in one pair only.
func (r *report) resolvePeer(sections []portSection, i int) int {
	s := &sections[i]
	if !s.Peer.valid {
		return 0
	}
	var names []string
	for j := range sections {
		peer := &sections[j]
		if !peer.Name.valid {
			return 0 // the name may be the one that is wanted: its own mistake is reported
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
	case s.Role.valid && peer.Role.valid && s.Role.V == peer.Role.V:
		r.problem(s.Peer.place, "%s has role %s too (%s); expected a fabric port and a WAN port as a pair",
			peer.Name.V, Role(peer.Role.V), r.position(peer.Role.place))
	case s.Name.valid && peer.Peer.valid && peer.Peer.V != s.Name.V && peer.Peer.V != peer.Name.V:
		r.problem(s.Peer.place, "%s has another peer, %s (%s); expected two ports that name each other",
			peer.Name.V, peer.Peer.V, r.position(peer.Peer.place))
	}
}

// unknownName reports a reference to something that is not there.
func (r *report) unknownName(at place, text, what string, names []string) {
	switch meant := nearest(text, names); {
	case len(names) == 0:
		r.problem(at, "there is no %s %s; none is given", what, quote(text))
	case meant != "":
		r.problem(at, "there is no %s %s; did you mean %s? Expected %s", what, quote(text), meant, either(names))
	default:
		r.problem(at, "there is no %s %s; expected %s", what, quote(text), either(names))
	}
}

// resolveClasses gives every DSCP to one class; the last class takes those that no class names.
func (r *report) resolveClasses(s *portSection) []Class {
	if !s.TrafficClasses.given {
		return []Class{{Name: "default", DSCP: ^uint64(0)}}
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
