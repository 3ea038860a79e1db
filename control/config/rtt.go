package config

import (
	"time"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
)

// A measured RTT_est is the minimum over rttWindow, or over the time of this number of test packets if that is longer.
const (
	rttWindow    = 10 * time.Second
	testsAWindow = 5
)

// rttSources are the sources by their numbers in the schema.
var rttSources = [...]congestion.RTTSource{congestion.RTTConfigured, congestion.RTTPassive, congestion.RTTSTAMP}

// measuresRTT reports whether any source of a port's RTT_est is a measurement.
func (p *Port) measuresRTT() bool {
	return p.Policy.RTTFrom.Uses(congestion.RTTPassive) || p.Policy.RTTFrom.Uses(congestion.RTTSTAMP)
}

// resolveRTT sets the sources of a port's RTT_est (draft-tian 5.3.1).
func (r *portResolver) resolveRTT() {
	p, s := r.p, r.s
	from := &p.Policy.RTTFrom
	from.Window = int64(max(rttWindow, testsAWindow*s.STAMP.Interval.V))
	for i := range s.RTTSources.Items {
		item := &s.RTTSources.Items[i]
		if !item.valid || item.twice {
			continue
		}
		source := rttSources[item.V]
		r.checkRTTSource(source, item.place, s.RTTSources.Items[:i])
		from.Sources[from.Count] = source
		from.Count++
	}
	p.Policy.Trust = from.Trust(p.Policy.RTT)
	if b := &s.RTTBounds; b.Min.valid && b.Max.valid && b.Min.V > b.Max.V {
		r.problem(b.Min.place, "%s is above max, which is %s; expected less", b.Min.V, b.Max.V)
	}
	if s.RTTBounds.given && !p.measuresRTT() {
		r.warn(s.RTTBounds.place, "has no effect, as rtt_sources names no measurement")
	}
	r.resolveSTAMP()
}

func (r *portResolver) checkRTTSource(source congestion.RTTSource, at place, before []choice) {
	s := r.s
	if source == congestion.RTTConfigured {
		return
	}
	if s.Role.valid && dataplane.Role(s.Role.V) != dataplane.WAN {
		r.problem(at, "%s measures the path behind a WAN port, and this is a %s port; remove it here", source, dataplane.Role(s.Role.V))
	}
	for i := range before {
		if first := &before[i]; first.valid && !first.twice && rttSources[first.V] == congestion.RTTConfigured {
			r.warn(at, "is never used, because configured comes before it (%s); put configured last", r.position(first.place))
		}
	}
}

// resolveSTAMP makes the STAMP session of a port's path (RFC 8762).
func (r *portResolver) resolveSTAMP() {
	p, s := r.p, r.s
	peer := &s.STAMP.Peer
	if !p.Policy.RTTFrom.Uses(congestion.RTTSTAMP) {
		if s.STAMP.given {
			r.warn(s.STAMP.place, "has no effect, as rtt_sources does not name stamp")
		}
		return
	}
	if !peer.given {
		r.problem(s.RTTSources.place, "stamp needs a destination for test packets; set stamp.peer of this port to an address of another gateway")
		return
	}
	r.checkPeer(peer)
	fill(&p.Policy.STAMP, &s.STAMP)
}

// checkPeer checks that STAMP packets to an address have a source address, and that the two differ.
func (r *resolver) checkPeer(peer *address) {
	g := &r.doc.Gateway
	own, given, key := g.IPv6.V, g.IPv6.given, "ipv6"
	if peer.V.Is4() {
		own, given, key = g.IPv4.V, g.IPv4.given, "ipv4"
	}
	switch {
	case !peer.valid || peer.twice:
	case !given:
		r.problem(peer.place, "STAMP packets to %s need a source address; set %s in gateway (%s)", peer.V, key, r.position(g.place))
	case own == peer.V:
		r.problem(peer.place, "%s is the gateway's own address; expected another gateway's", peer.V)
	}
}
