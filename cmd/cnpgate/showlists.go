package main

import (
	"fmt"
	"io"

	"github.com/cnpgate/cnpgate/control/advertise"
	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/columns"
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
	{"proxies", "Print which proxies the running gateway notifies, and for which senders",
		`One line for each prefix of senders behind a proxy: the prefix, the proxy's address, and the origin: static, which is proxy.senders of the
configuration, or the protocol that learned it. The longest prefix of a sender's address counts. It prints no line if proxy.enabled is false.
-o json prints the API's answer to GET /v1/proxies.`,
		printed(api.ProxiesPath, printProxies)},
	{"queues", "Print the queues of the running gateway, and the thresholds in force",
		`One line per traffic class of a port's queue, with these columns:` + columns.Help(queueColumns.Text()) + `

-o json prints the API's answer to GET /v1/counters.`,
		printed(api.CountersPath, printQueues)},
	{"reloads", "Print the latest reloads of the running gateway: what changed, or why it was refused",
		`One line for each, the latest last: the time, what became of it (started, reloaded, refused, confirmed, reverted), the SHA-256 of the configuration in
force afterwards, and the changed keys or the error. The gateway keeps the latest 64. -o json prints the API's answer to GET /v1/reloads.`,
		printed(api.ReloadsPath, printReloads)},
}

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
	return printTable(to, api.Peers, s.Peers)
}

func printProxies(to io.Writer, all *api.ProxiesBody) error {
	return printTable(to, api.Proxies, all.Proxies)
}

func printReloads(to io.Writer, all *api.Reloads) error {
	return printTable(to, api.ReloadRecords, all.Reloads)
}
