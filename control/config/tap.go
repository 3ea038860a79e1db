package config

// roleTap is the number of the word tap in the schema. The numbers before it are Roles.
const roleTap = 2

// resolveTaps gives mirror ports the role of the side that they mirror, and reports settings that would make the gateway transmit. taps: there are some.
func (r *report) resolveTaps(doc *document) (taps bool) {
	for i := range doc.Ports.Items {
		s := &doc.Ports.Items[i]
		if s.tap = s.Role.valid && s.Role.V == roleTap; !s.tap {
			if s.Mirrors.given {
				r.problem(s.Mirrors.place, "only a port with role tap is a mirror port; set role: tap, or remove mirrors")
			}
			continue
		}
		taps = true
		if !s.Mirrors.given {
			r.problem(s.Role.place, "a mirror port needs the key mirrors; expected mirrors: fabric for frames that come from the data centre, "+
				"mirrors: wan for those from the WAN")
		}
		s.Role.V, s.Role.valid = s.Mirrors.V, s.Mirrors.valid && s.Mirrors.given
		r.checkTap(s)
	}
	if taps {
		r.checkTapped(doc)
	}
	return taps
}

const neverTransmits = "a gateway with a mirror port (role: tap) never transmits; "

// checkTap reports settings of a mirror port that need transmission.
func (r *report) checkTap(s *portSection) {
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
func (r *report) checkTapped(doc *document) {
	if n := &doc.Notifications.Mode; n.given && n.valid && n.V != modeObserve {
		r.problem(n.place, neverTransmits+"expected observe, or leave it out")
	}
	if doc.Proxy.Enabled.V {
		r.problem(doc.Proxy.Enabled.place, neverTransmits+"it can't be a proxy")
	}
	if p := &doc.Gateway.STAMPReflector.Peers; len(p.Items) > 0 {
		r.problem(p.place, neverTransmits+"it can't answer test packets")
	}
}
