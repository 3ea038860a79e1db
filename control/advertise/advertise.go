// Package advertise has what the routing protocols share by which gateways announce and learn proxies (draft-xiao-proxy 5): which routes name a proxy
// that counts, when a changed set of them is used, and the state that the API shows. The protocols are in packages below it.
package advertise

import (
	"net/netip"
	"slices"
	"time"

	"github.com/cnpgate/cnpgate/control/advertise/nhc"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/proxy"
)

// OriginBGP is the origin of senders learned by BGP.
const OriginBGP = "bgp"

// Route is the best route of a prefix, as a peer has announced it.
type Route struct {
	Prefix  netip.Prefix
	NextHop netip.Addr
	Peer    netip.Addr
	// Attribute is the value of the Next Hop Dependent Characteristics attribute, and Flags its flags; nil if the route has none.
	Attribute []byte
	Flags     uint8
}

// Reason is why a route's attribute, or its absence, leads to no entry of the map.
type Reason uint8

const (
	Learned     Reason = iota // it leads to an entry
	NoAttribute               // the route has no Next Hop Dependent Characteristics attribute
	NotAccepted               // the configuration doesn't accept the prefix
	Malformed                 // the attribute is malformed, and is discarded (RFC 7606 2)
	OtherFamily               // the attribute is of another address family than the route
	OtherHop                  // the attribute is about another next hop than the route's: a router changed it that doesn't know the attribute
	NoProxy                   // the attribute names no proxy, or one that isn't the address of a host
	OwnProxy                  // the attribute names this gateway
	TooMany                   // the map is full
	Reasons
)

var reasonNames = [Reasons]string{"learned", "no-attribute", "not-accepted", "malformed", "other-family", "other-next-hop", "no-proxy", "own-proxy", "too-many"}

// String gives the name in the API and the metrics.
func (r Reason) String() string { return reasonNames[min(r, Reasons-1)] }

// Rules say which routes count.
type Rules struct {
	Characteristic uint16 // code of the PNC characteristic
	Accept         []config.BGPAccept
	Own            []netip.Addr // addresses of this gateway as a proxy
}

// accepts reports whether an entry accepts the prefix.
func (r *Rules) accepts(p netip.Prefix) bool {
	return slices.ContainsFunc(r.Accept, func(a config.BGPAccept) bool { return a.Accepts(p) })
}

// Judge says whether a route names a proxy that counts, and which.
func (r *Rules) Judge(route *Route) (netip.Addr, Reason) {
	switch {
	case route.Attribute == nil:
		return netip.Addr{}, NoAttribute
	case !r.accepts(route.Prefix):
		return netip.Addr{}, NotAccepted
	case nhc.CheckFlags(route.Flags) != nil:
		return netip.Addr{}, Malformed
	}
	a, err := nhc.Decode(route.Attribute)
	if err != nil {
		return netip.Addr{}, Malformed
	}
	switch {
	case a.Family != nhc.FamilyOf(route.Prefix):
		return netip.Addr{}, OtherFamily
	case a.NextHop != route.NextHop || a.NextHop.IsLinkLocalUnicast(): // a link-local one alone identifies no router (draft-ietf-idr-nhc 2.2.1)
		return netip.Addr{}, OtherHop
	}
	address, ok := a.Proxy(r.Characteristic)
	switch {
	case !ok:
		return netip.Addr{}, NoProxy
	case slices.Contains(r.Own, address):
		return netip.Addr{}, OwnProxy
	}
	return address, Learned
}

// Result is what a set of routes leads to.
type Result struct {
	Senders []proxy.Sender               // by prefix, none twice; at most proxy.MaxSenders
	ByPeer  map[netip.Addr]*[Reasons]int // number of routes by what became of them
}

// Learn makes the map of the routes, at most one of each prefix.
func (r *Rules) Learn(routes []Route) Result {
	result := Result{ByPeer: map[netip.Addr]*[Reasons]int{}}
	sorted := slices.Clone(routes)
	slices.SortFunc(sorted, func(a, b Route) int { return a.Prefix.Compare(b.Prefix) })
	for i := range sorted {
		route := &sorted[i]
		address, reason := r.Judge(route)
		if reason == Learned && len(result.Senders) == proxy.MaxSenders {
			reason = TooMany
		}
		if reason == Learned {
			result.Senders = append(result.Senders, proxy.Sender{Prefix: route.Prefix, Proxy: address, Origin: OriginBGP})
		}
		of := result.ByPeer[route.Peer]
		if of == nil {
			of = new([Reasons]int)
			result.ByPeer[route.Peer] = of
		}
		of[reason]++
	}
	return result
}

// Usable reports whether the gateway can notify a proxy of a prefix. One that isn't usable must not spoil the others.
func Usable(prefix netip.Prefix, address netip.Addr) bool {
	_, err := proxy.NewSenders(proxy.Sender{Prefix: prefix, Proxy: address})
	return err == nil
}

// Best chooses a proxy for each prefix, of those that routers announce by an IGP: the lowest address, so that all gateways choose the same one.
type Best struct {
	Own     netip.Addr              // this gateway's address as a proxy, which is none for itself
	Accepts func(netip.Prefix) bool // whether a prefix may be learned
	Full    bool                    // prefixes beyond proxy.MaxSenders were offered, and are not learned
	proxies map[netip.Prefix]netip.Addr
}

// Offer notes that a prefix has a proxy, which is usable.
func (b *Best) Offer(prefix netip.Prefix, address netip.Addr) {
	if address == b.Own || !b.Accepts(prefix) {
		return
	}
	if b.proxies == nil {
		b.proxies = map[netip.Prefix]netip.Addr{}
	}
	other, ok := b.proxies[prefix]
	if !ok && len(b.proxies) == proxy.MaxSenders {
		b.Full = true
		return
	}
	if !ok || address.Less(other) {
		b.proxies[prefix] = address
	}
}

// Senders returns the senders with their proxies, in the order of their prefixes.
func (b *Best) Senders(origin string) []proxy.Sender {
	all := make([]proxy.Sender, 0, len(b.proxies))
	for prefix, address := range b.proxies {
		all = append(all, proxy.Sender{Prefix: prefix, Proxy: address, Origin: origin})
	}
	slices.SortFunc(all, func(a, b proxy.Sender) int { return a.Prefix.Compare(b.Prefix) })
	return all
}

const (
	// Quiet is how long no route must have changed until a changed map is used.
	Quiet = 100 * time.Millisecond
	// Longest is how long a change waits at most, while others follow it.
	Longest = time.Second
)

// Settling combines changes of routes that come in quick succession: once they are to be used, its timer fires.
type Settling struct {
	*time.Timer
	first time.Time // change that isn't used yet
}

// NewSettling has no changes.
func NewSettling() *Settling {
	t := time.NewTimer(Longest)
	t.Stop()
	return &Settling{Timer: t}
}

// Change notes a change.
func (s *Settling) Change() {
	if s.first.IsZero() {
		s.first = time.Now()
	}
	s.Reset(min(Quiet, time.Until(s.first.Add(Longest))))
}

// Used notes that the timer has fired, and that the changes so far are used.
func (s *Settling) Used() { s.first = time.Time{} }

// Status is the state of BGP, as the API gives it.
type Status struct {
	Running         bool           `json:"running" doc:"Whether the configuration has proxy.bgp and the speaker runs."`
	Error           string         `json:"error,omitempty" doc:"Why the speaker doesn't run, although the configuration has proxy.bgp."`
	AS              uint32         `json:"as,omitempty" doc:"The speaker's autonomous system."`
	RouterID        string         `json:"router_id,omitempty" doc:"The speaker's BGP Identifier."`
	Announced       []netip.Prefix `json:"announced" doc:"The prefixes for which this gateway announces itself as the proxy."`
	PrefixesLearned int            `json:"prefixes_learned" doc:"The prefixes whose proxies were learned and are in use."`
	Peers           []Peer         `json:"peers" doc:"BGP peers."`
}

// Established is the state of a session that exchanges routes.
const Established = "established"

// Peer is the state of a session.
type Peer struct {
	Address string `json:"address" doc:"Address of the BGP peer." column:"PEER"`
	AS      uint32 `json:"as" doc:"Autonomous system of the peer." column:"AS,,id,1"`
	State   string `json:"session_state" enum:"idle,connect,active,open-sent,open-confirm,established" doc:"State of the session (RFC 4271 8.2.2)." column:"STATE"`
	Problem string `json:"problem,omitempty" doc:"Why the session doesn't come up: it had too many prefixes, or the latest error." column:"PROBLEM,,long"`
	// Uptime is 0 unless the session is established.
	Uptime int64 `json:"uptime_ns" doc:"How long the session has been established, ns." column:"UPTIME,,duration,2"`
	// Announced and Received count routes, Learned those with a proxy that counts.
	Announced int            `json:"announced" doc:"Routes announced to the peer." column:"ANNOUNCED,,count,3"`
	Received  int            `json:"received" doc:"Routes received from the peer." column:"RECEIVED,,count"`
	Learned   int            `json:"learned" doc:"Prefixes whose proxies were learned from the peer: it announces the best route." column:"LEARNED,,count"`
	Ignored   map[string]int `json:"ignored" doc:"Best routes of the peer that name no proxy that counts, by reason." column:"IGNORED,,long"`
	Stale     bool           `json:"stale,omitempty" doc:"The peer restarts; its routes are kept for its restart time."`
}

// Cell implements columns.Celler.
func (p *Peer) Cell(name string) (text string, ok bool) {
	switch {
	case name == "UPTIME" && p.Uptime == 0:
		return "-", true
	case name == "STATE" && p.Stale:
		return p.State + " (restarting)", true
	}
	return "", false
}
