package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/cnpgate/cnpgate/control/advertise"
	"github.com/cnpgate/cnpgate/control/api"
)

// lists are the commands that show one answer of the API.
var lists = []struct {
	name, short, long string
	showable
}{
	{"bgp", "Print the BGP sessions of the running gateway, and what they announce and learn",
		`A line on the speaker, and one for each peer: its state, for how long the session has been established, the routes announced to it and received
from it, the prefixes whose proxies were learned from it, and the number of its routes from which no proxy is learned, by reason. docs/proxy.md explains the
reasons; cnpgate show proxies prints the proxies learned. -o json prints the API's answer to GET /v1/bgp.`,
		printed(api.BGPPath, printBGP)},
	{"episodes", "Print the congestion episodes of the running gateway: when, how bad, which flows, and which senders slowed down",
		`A line for each time that a queue was above the depth from which senders are notified, the latest last: the queue, start and duration, its peak, packets marked and notifications sent.
Below it, a line for each of the flows that sent most and for each flow whose sender was notified: the bytes that arrived in the episode, the most bytes
queued, notifications, and the rates before and after the first notification. An episode ends when the queue has stayed below that for 1 s. The gateway
keeps the latest 256 episodes.`,
		printed(api.EpisodesPath, printEpisodes)},
	{"fleet", "Print the gateways of the running gateway's fleet: who is silent, what is shared, and the connections",
		`A line for each gateway that may take part: its state (active, silent for more than 5 s, or unheard since the start), version, how long it has been up,
how long ago it was heard, the time of a message to it and back, the flows and pairs that it knows of others, and the pairs of hosts that it asks about. Then
what this gateway shares, a line for each connection to a nats-server, and what was refused and dropped. docs/fleet.md explains all. -o json prints the API's
answer to GET /v1/fleet.`,
		showable{resource: api.FleetPath, print: printed(api.FleetPath, printFleetStatus).print}},
	{"health", "Print whether all ports of the running gateway forward; the exit status is 1 if not",
		`Prints "healthy", or each port that doesn't forward every frame, with the cause.`,
		judged(api.HealthPath, printHealth, isHealthy)},
	{"hints", "Print which QPs are connected by the hints that host agents gave the running gateway",
		`One line for each hint: the QPs that it states to be connected, and its VLAN tags and tunnel. A hint without both applies where only one VLAN or tunnel
has such flows. Then one line for each hint of a host's agent (cnpgate agent), about packets from the host only: the host's name, or - for an agent that
uses the socket, and the time until the hint dies unless it is repeated. One without a destination applies where exactly one flow goes from the source to
that QP. -o json prints the API's answer to GET /v1/hints.`,
		printed(api.HintsPath, printHints)},
	{"pairs", "Print which QPs of the running gateway's flows are connected, and the evidence",
		`One line for each flow whose source QP is confirmed or a candidate: its ingress port, its VLANs and tunnel, the sender and its QP, the receiver and its QP,
the state and the evidence, how long the pair has had them, and how often packets contradicted it. A candidate's QP has a question mark, as no
notification names it. The age is "-" if no packet has arrived since the state changed. A connection has a line for each direction. -o json prints the
API's answer to GET /v1/pairs.`,
		printed(api.PairsPath, printPairs)},
	{"proxies", "Print which proxies the running gateway notifies, and for which senders",
		`One line for each prefix of senders behind a proxy: the prefix, the proxy's address, and the origin: static, which is proxy.senders of the
configuration, or the protocol that learned it. The longest prefix of a sender's address counts. It prints no line if proxy.enabled is false.
-o json prints the API's answer to GET /v1/proxies.`,
		printed(api.ProxiesPath, printProxies)},
	{"queues", "Print the queues of the running gateway, and the thresholds in force",
		`One line per traffic class of a port's queue: the depth, the greatest depth so far, the thresholds above which packets are marked
(K_min) and senders notified (K_max), and the capacity. -o json prints the API's answer to GET /v1/counters.`,
		printed(api.CountersPath, printQueues)},
	{"reloads", "Print the latest reloads of the running gateway: what changed, or why it was refused",
		`One line for each, the latest last: the time, what became of it (started, reloaded, refused, confirmed, reverted), the SHA-256 of the configuration in
force afterwards, and the changed keys or the error. The gateway keeps the latest 64. -o json prints the API's answer to GET /v1/reloads.`,
		printed(api.ReloadsPath, printReloads)},
	{"version", "Print the version of the running gateway, when it started, and the hash of its configuration",
		`Prints the gateway's name, its version, this command's version if it differs, the start time, and the SHA-256 of the configuration in force.
cnpgate version prints only the command's version.`,
		printed(api.VersionPath, printVersion)},
}

// bgpBelow is the first of the columns that are lists or texts.
const bgpBelow = 7

func printBGP(to io.Writer, s *advertise.Status) error {
	switch {
	case s.Error != "":
		_, err := fmt.Fprintf(to, "BGP doesn't run: %s\n", s.Error)
		return err
	case !s.Running:
		_, err := fmt.Fprintln(to, "The configuration has no proxy.bgp, or proxy.enabled is false.")
		return err
	}
	fmt.Fprintf(to, "AS %d, router ID %s; %d prefixes announced, %d learned\n", s.AS, s.RouterID, len(s.Announced), s.PrefixesLearned)
	w := newTable(to, "PEER\tAS\tSTATE\tUPTIME\tANNOUNCED\tRECEIVED\tLEARNED\tIGNORED\tPROBLEM", "AS", "UPTIME", "ANNOUNCED")
	w.below = bgpBelow
	for i := range s.Peers {
		p := &s.Peers[i]
		state, uptime := p.State, "-"
		if p.Stale {
			state += " (restarting)"
		}
		if p.Uptime > 0 {
			uptime = time.Duration(p.Uptime).Round(time.Second).String()
		}
		w.row(p.Address, p.AS, state, uptime, p.Announced, p.Received, p.Learned, listCounts(p.Ignored), cmp.Or(p.Problem, "-"))
	}
	return w.Flush()
}

func printHints(to io.Writer, all *api.HintsBody) error {
	w := newTable(to, "SOURCE\tSOURCE_QP\tDESTINATION\tDESTINATION_QP\tTAGS\tTUNNEL")
	for _, h := range all.Hints {
		w.row(h.Source, h.SourceQP, h.Destination, h.DestinationQP, cmp.Or(h.Tags, "-"), cmp.Or(h.Tunnel, "-"))
	}
	if err := w.Flush(); err != nil || len(all.HostHints) == 0 {
		return err
	}
	fmt.Fprintln(to)
	w = newTable(to, "HOST\tSOURCE\tSOURCE_QP\tDESTINATION\tDESTINATION_QP\tTAGS\tTUNNEL\tREMAINING")
	for _, h := range all.HostHints {
		destination := "-"
		if h.Destination != nil {
			destination = h.Destination.String()
		}
		w.row(cmp.Or(h.Host, "-"), h.Source, h.SourceQP, destination, h.DestinationQP, cmp.Or(h.Tags, "-"), cmp.Or(h.Tunnel, "-"),
			(time.Duration(h.Remaining) * time.Millisecond).String())
	}
	return w.Flush()
}

func printPairs(to io.Writer, all *api.PairsBody) error {
	pairs := all.Pairs
	slices.SortStableFunc(pairs, func(a, b api.Pair) int {
		return cmp.Or(a.SourceIP.Compare(b.SourceIP), a.DestinationIP.Compare(b.DestinationIP), cmp.Compare(a.DestinationQP, b.DestinationQP), cmp.Compare(a.Port, b.Port))
	})
	w := newTable(to, "PORT\tVLAN\tSOURCE\tSOURCE QP\tDESTINATION\tDESTINATION QP\tSTATE\tEVIDENCE\tAGE\tCONTRADICTIONS", "CONTRADICTIONS", "AGE", "PORT", "VLAN")
	for i := range pairs {
		p := &pairs[i]
		qp, state, age := orDash(p.SourceQP), p.QPState, "-"
		if p.CandidateQP != nil {
			qp = fmt.Sprint(*p.CandidateQP, "?")
		}
		if p.Ended != "" {
			state += " (" + p.Ended + ")"
		}
		if p.QPAge != nil {
			age = time.Duration(*p.QPAge).Truncate(time.Second / 10).String()
		}
		w.row(p.Port, vlans(p.Tunnel, p.TunnelID, p.VLAN), p.SourceIP, qp, p.DestinationIP, p.DestinationQP, state, orDash(p.QPEvidence), age, p.QPConflicts)
	}
	return w.Flush()
}

func printProxies(to io.Writer, all *api.ProxiesBody) error {
	w := newTable(to, "PREFIX\tPROXY\tORIGIN")
	for _, p := range all.Proxies {
		w.row(p.Prefix, p.Proxy, p.Origin)
	}
	return w.Flush()
}

func printVersion(to io.Writer, v *api.Version) error {
	w := newTable(to, "")
	w.row("gateway", v.Gateway)
	w.row("version", fmt.Sprintf("%s (%s, %s)", v.Version, v.GoVersion, v.Platform))
	if own := describe(); v.Version != own {
		w.row("this command", own)
	}
	if v.StartTime != nil {
		w.row("start time", v.StartTime.Format(time.RFC3339))
	}
	w.row("config hash", v.ConfigHash)
	return w.Flush()
}
