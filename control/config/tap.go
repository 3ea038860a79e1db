package config

import "strings"

// roleTap is the number of the word tap in the schema. The numbers before it are Roles.
const roleTap = 2

// resolveTaps gives mirror ports the role of the side that they mirror, and reports settings that would make the gateway transmit. taps: there are some.
func (r *resolver) resolveTaps() (taps bool) {
	for i := range r.doc.Ports.Items {
		s := &r.doc.Ports.Items[i]
		if s.tap = s.Role.valid && s.Role.V == roleTap; !s.tap {
			if s.Mirrors.given {
				r.problem(s.Mirrors.place, "only a port with role tap is a mirror port; set role: tap, or remove mirrors")
			}
			if s.FabricHosts.given {
				r.problem(s.FabricHosts.place, "only a port with role tap and mirrors: both needs it; remove it")
			}
			continue
		}
		taps = true
		if !s.Mirrors.given {
			r.problem(s.Role.place, "a mirror port needs the key mirrors; expected mirrors: fabric for frames that come from the data centre, "+
				"mirrors: wan for those from the WAN, mirrors: both for one port with both")
		}
		r.resolveBoth(s)
		s.Role.V, s.Role.valid = s.Mirrors.V%mirrorsBoth, s.Mirrors.valid && s.Mirrors.given
		r.checkTap(s)
	}
	if taps {
		r.checkTapped()
	}
	return taps
}

const (
	// mirrorsBoth is the number of the word both in the schema; such a port is the fabric's, and gives its peer the WAN's frames.
	mirrorsBoth = 2
	// receivesNothing is the device of the peer of such a port.
	receivesNothing = "no-rx=1"
)

// resolveBoth checks a mirror port of both directions, or that no other port says which hosts are the fabric's.
func (r *resolver) resolveBoth(s *portSection) {
	if s.Mirrors.V != mirrorsBoth || !s.Mirrors.valid {
		if s.FabricHosts.given {
			r.problem(s.FabricHosts.place, "only a port with mirrors: both needs it, to know where frames come from; set mirrors: both, or remove it")
		}
		return
	}
	if !s.FabricHosts.given || s.FabricHosts.valid && len(s.FabricHosts.Items) == 0 {
		r.problem(s.Mirrors.place, "both directions arrive by one port; expected fabric_hosts, the prefixes of the data centre's hosts, such as [10.1.0.0/16]")
	}
	for i := range r.doc.Ports.Items {
		if peer := &r.doc.Ports.Items[i]; peer.Name.V == s.Peer.V && peer.Device.valid && !strings.Contains(peer.Device.V, receivesNothing) {
			r.problem(peer.Device.place, "the frames from the WAN arrive by %s, which mirrors both directions; expected a device that receives nothing: net_null0,%s", s.Name.V, receivesNothing)
		}
	}
}

const neverTransmits = "a gateway with a mirror port (role: tap) never transmits; "

// checkTap reports settings of a mirror port that need transmission.
func (r *resolver) checkTap(s *portSection) {
	if s.FlowControl.given {
		r.problem(s.FlowControl.place, neverTransmits+"remove flow_control")
	}
	if s.Pacing.Enabled.V {
		r.problem(s.Pacing.Enabled.place, neverTransmits+"pacing can't hold anything back: remove it")
	}
	for i := range s.RTTSources.Items {
		if item := &s.RTTSources.Items[i]; item.valid && s.RTTSources.given && rttSources[item.V] != rttSources[0] {
			r.problem(item.place, "when a mirrored packet leaves can't be seen, and no test packet can be sent; expected [configured], with rtt")
		}
	}
	for i := range s.TrafficClasses.Items {
		if c := &s.TrafficClasses.Items[i]; c.Lossless.V {
			r.problem(c.Lossless.place, neverTransmits+"no class can be lossless")
		}
	}
}

// checkTapped reports settings of the gateway that need transmission.
func (r *resolver) checkTapped() {
	if n := &r.doc.Notifications.Mode; n.given && n.valid && n.V != modeObserve {
		r.problem(n.place, neverTransmits+"expected observe, or leave it out")
	}
	if r.doc.Proxy.Enabled.V {
		r.problem(r.doc.Proxy.Enabled.place, neverTransmits+"it can't be a proxy")
	}
	if p := &r.doc.Gateway.STAMPReflector.Peers; len(p.Items) > 0 {
		r.problem(p.place, neverTransmits+"it can't answer test packets")
	}
}
