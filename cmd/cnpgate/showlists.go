package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/advertise"
	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/columns"
)

// lists are the commands that show one answer of the API.
var lists = []list{
	{"episodes", "Print the congestion episodes of the running gateway: when, how bad, which flows, and which senders slowed down",
		`A line for each time that a queue was above the depth from which senders are notified, the latest last: the queue, start and duration, its peak, packets marked and notifications sent.
Below it, a line for each of the flows that sent most and for each flow whose sender was notified: the bytes that arrived in the episode, the most bytes
queued, notifications, and the rates before and after the first notification. An episode ends when the queue has stayed below that for 1 s. The gateway
keeps the latest 256 episodes.`,
		printed(api.EpisodesPath, printEpisodes), nil},
	{"fleet", "Print the gateways of the running gateway's fleet: who is silent, what is shared, and the connections",
		`One line per gateway that may take part, with these columns:` + columns.Help(api.Members.Text()) + `

Then what this gateway shares, a line for each connection to a nats-server, and what was refused and dropped (docs/fleet.md). -o json prints the API's answer to
GET /v1/fleet.`,
		showable{resource: api.FleetPath, print: printed(api.FleetPath, printFleetStatus).print}, nil},
	{"health", "Print whether all ports of the running gateway forward; the exit status is 1 if not",
		`Prints "healthy", or each port that doesn't forward every frame, with the cause.`,
		judged(api.HealthPath, printHealth, isHealthy),
		&instead{"rdma", "print what is wrong with the RDMA connections that pass, and what to change; the exit status is 0 also if something is",
			printed(api.RDMAPath, printRDMA)}},
	{"proxies", "Print which proxies the running gateway notifies, and for which senders",
		`One line per prefix of senders behind a proxy, with these columns:` + columns.Help(api.Proxies.Text()) + `

With --bgp, a line on the BGP speaker, and one per peer (docs/proxy.md):` + columns.Help(api.Peers.Text()) + `

-o json prints the API's answer to GET /v1/proxies, or to GET /v1/bgp.`,
		printed(api.ProxiesPath, printProxies),
		&instead{"bgp", "print the BGP sessions, and what they announce and learn", printed(api.BGPPath, printBGP)}},
	{"queues", "Print the queues of the running gateway, and the thresholds in force",
		`One line per traffic class of a port's queue, with these columns:` + columns.Help(queueColumns.Text()) + `

-o json prints the API's answer to GET /v1/counters.`,
		printed(api.CountersPath, printQueues), nil},
}

// list is a command that shows one answer of the API, or with a flag another one.
type list struct {
	name, short, long string
	showable
	*instead // nil: no other one
}

type instead struct {
	flag, usage string
	showable
}

func (l *list) command(f *showFlags) *cobra.Command {
	options, other := "", false
	if l.instead != nil {
		options = " [--" + l.flag + "]"
	}
	c := f.command(&cobra.Command{Use: l.name + options + " [-o text|json] [--watch TIME] [--socket PATH | --config FILE]", Short: l.short, Long: l.long}, l.showable)
	if l.instead != nil {
		c.Flags().BoolVar(&other, l.flag, false, l.usage)
		c.RunE = func(c *cobra.Command, _ []string) error {
			if other {
				return f.show(c, l.instead.showable)
			}
			return f.show(c, l.showable)
		}
	}
	return c
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
	if len(all.Proxies) == 0 {
		return printHung(to, "", "No sender is behind a proxy: the configuration has no proxy.senders, or proxy.enabled is false, and no protocol has learned one.")
	}
	return printTable(to, api.Proxies, all.Proxies)
}

func printReloads(to io.Writer, all *api.Reloads) error {
	return printTable(to, api.ReloadRecords, all.Reloads)
}
