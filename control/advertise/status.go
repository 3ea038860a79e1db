package advertise

import "net/netip"

// Status is the state of BGP, as the API gives it.
type Status struct {
	Running         bool           `json:"running" doc:"Whether the configuration has proxy.bgp and the speaker runs."`
	Error           string         `json:"error,omitempty" doc:"Why the speaker doesn't run, although the configuration has proxy.bgp."`
	AS              uint32         `json:"as,omitempty" doc:"The speaker's autonomous system."`
	RouterID        string         `json:"router_id,omitempty" doc:"The speaker's BGP Identifier."`
	Announced       []netip.Prefix `json:"announced" doc:"The prefixes for which this gateway announces itself as the proxy."`
	PrefixesLearned int            `json:"prefixes_learned" doc:"The prefixes whose proxies were learned and are in use."`
	Peers           []Peer         `json:"peers"`
}

// Established is the state of a session that exchanges routes.
const Established = "established"

// Peer is the state of a session.
type Peer struct {
	Address string `json:"address"`
	AS      uint32 `json:"as"`
	State   string `json:"state" enum:"idle,connect,active,open-sent,open-confirm,established" doc:"State of the session (RFC 4271 8.2.2)."`
	Problem string `json:"problem,omitempty" doc:"Why the session doesn't come up: it had too many prefixes, or the latest error."`
	// Uptime is 0 unless the session is established.
	Uptime int64 `json:"uptime_ns" doc:"Time in nanoseconds for which the session has been established."`
	// Announced and Received count routes, Learned those with a proxy that counts.
	Announced int            `json:"announced" doc:"Routes announced to the peer."`
	Received  int            `json:"received" doc:"Routes received from the peer."`
	Learned   int            `json:"learned" doc:"Prefixes whose proxies were learned from the peer: it announces the best route."`
	Ignored   map[string]int `json:"ignored" doc:"Best routes of the peer that name no proxy that counts, by reason."`
	Stale     bool           `json:"stale,omitempty" doc:"The peer restarts; its routes are kept for its restart time."`
}
