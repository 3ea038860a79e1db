package config

import "strings"

// roleTap is the number of the word tap in the schema. The numbers before it are Roles.
const roleTap = 2

// resolveTaps gives mirror ports the role of the side that they mirror, and reports settings that would make the gateway transmit. taps: there are some.
func (r *resolver) resolveTaps() (taps bool) {
	for i := range r.doc.Ports {
		s := &r.doc.Ports[i]
		if s.tap = r.Valid(&s.Role) && s.Role == roleTap; !s.tap {
			if r.Given(&s.Mirrors) {
				r.Problem(&s.Mirrors, "only a port with role tap is a mirror port; set role: tap, or remove mirrors")
			}
			if r.Given(&s.FabricHosts) {
				r.Problem(&s.FabricHosts, "only a port with role tap and mirrors: both needs it; remove it")
			}
			continue
		}
		taps = true
		if !r.Given(&s.Mirrors) {
			r.Problem(&s.Role, "a mirror port needs the key mirrors; expected mirrors: fabric for frames that come from the data centre, "+
				"mirrors: wan for those from the WAN, mirrors: both for one port with both")
		}
		r.resolveBoth(s)
		s.Role, r.At(&s.Role).Valid = s.Mirrors%mirrorsBoth, r.Valid(&s.Mirrors) && r.Given(&s.Mirrors)
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
	if s.Mirrors != mirrorsBoth || !r.Valid(&s.Mirrors) {
		if r.Given(&s.FabricHosts) {
			r.Problem(&s.FabricHosts, "only a port with mirrors: both needs it, to know where frames come from; set mirrors: both, or remove it")
		}
		return
	}
	if !r.Given(&s.FabricHosts) || r.Valid(&s.FabricHosts) && len(s.FabricHosts) == 0 {
		r.Problem(&s.Mirrors, "both directions arrive by one port; expected fabric_hosts, the prefixes of the data centre's hosts, such as [10.1.0.0/16]")
	}
	for i := range r.doc.Ports {
		if peer := &r.doc.Ports[i]; peer.Name == s.Peer && r.Valid(&peer.Device) && !strings.Contains(peer.Device, receivesNothing) {
			r.Problem(&peer.Device, "the frames from the WAN arrive by %s, which mirrors both directions; expected a device that receives nothing: net_null0,%s", s.Name, receivesNothing)
		}
	}
}

const neverTransmits = "a gateway with a mirror port (role: tap) never transmits; "

// checkTap reports settings of a mirror port that need transmission.
func (r *resolver) checkTap(s *portSection) {
	if r.Given(&s.FlowControl) {
		r.Problem(&s.FlowControl, neverTransmits+"remove flow_control")
	}
	if s.Pacing.Enabled {
		r.Problem(&s.Pacing.Enabled, neverTransmits+"pacing can't hold anything back: remove it")
	}
	for i := range s.RTTSources {
		if item := &s.RTTSources[i]; r.Valid(item) && r.Given(&s.RTTSources) && rttSources[*item] != rttSources[0] {
			r.Problem(item, "when a mirrored packet leaves can't be seen, and no test packet can be sent; expected [configured], with rtt")
		}
	}
	for i := range s.TrafficClasses {
		if c := &s.TrafficClasses[i]; c.Lossless {
			r.Problem(&c.Lossless, neverTransmits+"no class can be lossless")
		}
	}
}

// checkTapped reports settings of the gateway that need transmission.
func (r *resolver) checkTapped() {
	if n := &r.doc.Notifications.Mode; r.Given(n) && r.Valid(n) && *n != modeObserve {
		r.Problem(n, neverTransmits+"expected observe, or leave it out")
	}
	if r.doc.Proxy.Enabled != kindOff {
		r.Problem(&r.doc.Proxy.Enabled, neverTransmits+"it can't be a proxy")
	}
	if p := &r.doc.Gateway.STAMPReflector.Peers; len(*p) > 0 {
		r.Problem(p, neverTransmits+"it can't answer test packets")
	}
}
