package config

import (
	"net/netip"
	"time"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/packet"
)

const (
	rttWindow     = 10 * time.Second // a measured RTT_est is the minimum over it
	stampInterval = time.Second      // between two test packets
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
	from.Min, from.Max, from.Window = int64(s.RTTBounds.Min), int64(s.RTTBounds.Max), int64(rttWindow)
	for i := range s.RTTSources {
		item := &s.RTTSources[i]
		if !r.Valid(item) || r.At(item).Twice {
			continue
		}
		source := rttSources[*item]
		r.checkRTTSource(source, item, s.RTTSources[:i])
		from.Sources[from.Count] = source
		from.Count++
	}
	p.Policy.Trust = from.Trust(p.Policy.RTT)
	if b := &s.RTTBounds; r.Valid(&b.Min) && r.Valid(&b.Max) && b.Min > b.Max {
		r.Problem(&b.Min, "%s is above max, which is %s; expected less", b.Min, b.Max)
	}
	if r.Given(&s.RTTBounds) && !p.measuresRTT() {
		r.Warn(&s.RTTBounds, "has no effect, as rtt_sources names no measurement")
	}
	r.resolveSTAMP()
}

func (r *portResolver) checkRTTSource(source congestion.RTTSource, at *int, before []int) {
	s := r.s
	if source == congestion.RTTConfigured {
		return
	}
	if r.Valid(&s.Role) && dataplane.Role(s.Role) != dataplane.WAN {
		r.Problem(at, "%s measures the path behind a WAN port, and this is a %s port; remove it here", source, dataplane.Role(s.Role))
	}
	for i := range before {
		if first := &before[i]; r.Valid(first) && !r.At(first).Twice && rttSources[*first] == congestion.RTTConfigured {
			r.Warn(at, "is never used, because configured comes before it (%s); put configured last", r.Position(first))
		}
	}
}

// resolveSTAMP makes the STAMP session of a port's path (RFC 8762).
func (r *portResolver) resolveSTAMP() {
	p, s := r.p, r.s
	peer := &s.STAMP.Peer
	if !p.Policy.RTTFrom.Uses(congestion.RTTSTAMP) {
		if r.Given(&s.STAMP) {
			r.Warn(&s.STAMP, "has no effect, as rtt_sources does not name stamp")
		}
		return
	}
	if !r.Given(peer) {
		r.Problem(&s.RTTSources, "stamp needs a destination for test packets; set stamp.peer of this port to an address of another gateway")
		return
	}
	r.checkPeer(peer)
	if p.Policy.STAMP.Interval = int64(stampInterval); r.Valid(peer) {
		p.Policy.STAMP.Peer = packet.AddrFrom(*peer)
	}
}

// checkPeer checks that STAMP packets to an address have a source address, and that the two differ.
func (r *resolver) checkPeer(peer *netip.Addr) {
	g := &r.doc.Gateway
	own, given, key := g.IPv6, r.Given(&g.IPv6), "ipv6"
	if peer.Is4() {
		own, given, key = g.IPv4, r.Given(&g.IPv4), "ipv4"
	}
	switch {
	case !r.Valid(peer) || r.At(peer).Twice:
	case !given:
		r.Problem(peer, "STAMP packets to %s need a source address; set %s in gateway (%s)", *peer, key, r.Position(g))
	case own == *peer:
		r.Problem(peer, "%s is the gateway's own address; expected another gateway's", *peer)
	}
}
