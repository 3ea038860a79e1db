package config

import (
	"net/netip"
	"time"

	"github.com/cnpgate/cnpgate/congestion"
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
	return p.RTTFrom.Uses(congestion.RTTPassive) || p.RTTFrom.Uses(congestion.RTTSTAMP)
}

// resolveRTT sets the sources of a port's RTT_est (draft-tian 5.3.1).
func (r *report) resolveRTT(p *Port, s *portSection, g *gatewaySection) {
	p.RTTFrom = congestion.RTTPolicy{
		Min: int64(s.RTTBounds.Min.V), Max: int64(s.RTTBounds.Max.V), Window: int64(max(rttWindow, testsAWindow*s.STAMP.Interval.V)),
	}
	seen := map[congestion.RTTSource]place{}
	for i := range s.RTTSources.Items {
		item := &s.RTTSources.Items[i]
		if !item.valid {
			continue
		}
		source := rttSources[item.V]
		if !unique(r, seen, source, item.place, source.String()) {
			continue
		}
		r.checkRTTSource(source, item.place, s, seen)
		p.RTTFrom.Sources[p.RTTFrom.Count] = source
		p.RTTFrom.Count++
	}
	if b := &s.RTTBounds; b.Min.valid && b.Max.valid && b.Min.V > b.Max.V {
		r.problem(b.Min.place, "%s is above max, which is %s; expected less", b.Min.V, b.Max.V)
	}
	if s.RTTBounds.given && !p.measuresRTT() {
		r.warn(s.RTTBounds.place, "has no effect, as rtt_sources names no measurement")
	}
	r.resolveSTAMP(p, s, g)
}

func (r *report) checkRTTSource(source congestion.RTTSource, at place, s *portSection, seen map[congestion.RTTSource]place) {
	if source == congestion.RTTConfigured {
		return
	}
	if s.Role.valid && Role(s.Role.V) != WAN {
		r.problem(at, "%s measures the path behind a WAN port, and this is a %s port; remove it here", source, Role(s.Role.V))
	}
	if first, before := seen[congestion.RTTConfigured]; before {
		r.warn(at, "is never used, because configured comes before it (%s); put configured last", r.position(first))
	}
}

// resolveSTAMP makes the STAMP session of a port's path (RFC 8762).
func (r *report) resolveSTAMP(p *Port, s *portSection, g *gatewaySection) {
	peer := &s.STAMP.Peer
	if !p.RTTFrom.Uses(congestion.RTTSTAMP) {
		if s.STAMP.given {
			r.warn(s.STAMP.place, "has no effect, as rtt_sources does not name stamp")
		}
		return
	}
	if !peer.given {
		r.problem(s.RTTSources.place, "stamp needs a destination for test packets; set stamp.peer of this port to an address of another gateway")
		return
	}
	if peer.valid {
		r.checkPeer(peer, g)
	}
	p.STAMP = STAMP{peer.V, s.STAMP.Interval.V}
}

// resolveReflector sets the sources whose test packets are answered.
func (r *report) resolveReflector(g *gatewaySection) (peers []netip.Addr) {
	seen := map[netip.Addr]place{}
	for i := range g.STAMPReflector.Peers.Items {
		peer := &g.STAMPReflector.Peers.Items[i]
		if peer.valid && unique(r, seen, peer.V, peer.place, "the address "+peer.V.String()) {
			r.checkPeer(peer, g)
			peers = append(peers, peer.V)
		}
	}
	return peers
}

// checkPeer checks that STAMP packets to an address have a source address, and that the two differ.
func (r *report) checkPeer(peer *address, g *gatewaySection) {
	own, given, key := g.IPv6.V, g.IPv6.given, "ipv6"
	if peer.V.Is4() {
		own, given, key = g.IPv4.V, g.IPv4.given, "ipv4"
	}
	switch {
	case !given:
		r.problem(peer.place, "STAMP packets to %s need a source address; set %s in gateway (%s)", peer.V, key, r.position(g.place))
	case own == peer.V:
		r.problem(peer.place, "%s is the gateway's own address; expected another gateway's", peer.V)
	}
}

// resolveAdjust sets the bounds within which the gateway may adjust a port's parameters (draft-tian 5.8).
func resolveAdjust(s *adjustSection) congestion.AdjustPolicy {
	if !s.Enabled.V {
		return congestion.AdjustPolicy{}
	}
	return congestion.AdjustPolicy{MinPercent: int(s.MinPercent.V), MaxPercent: int(s.MaxPercent.V)}
}
