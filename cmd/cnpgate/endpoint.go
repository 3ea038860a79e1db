package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func endpointCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "endpoint",
		Short: "Send or receive RoCEv2 messages in software, and obey congestion notifications",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return fmt.Errorf("send or receive? Expected %[1]s send or %[1]s receive", c.CommandPath())
		},
	}
	c.AddCommand(endpointSendCommand(), endpointReceiveCommand())
	return c
}

func endpointSendCommand() *cobra.Command {
	f := endpointFlags{send: true}
	c := &cobra.Command{
		Use:   "send --interface IF --address ADDR --peer ADDR --peer-mac MAC --trust PREFIX [--accept FORMAT,...] [--rate RATE]",
		Short: "Send RoCEv2 messages on RC connections, as fast as --rate and the notifications allow",
		Long: `Posts messages on each QP continuously, and sends them as fast as --rate allows, or more slowly after congestion notifications. It ends after --duration,
after the last phase of --rate, or at SIGINT or SIGTERM, and prints a summary. Start the other end, cnpgate endpoint receive, first, with the same --qps
and --psn; the default QP numbers of both ends match. With --cm, RDMA-CM sets up a connection for each QP, and the receiver needs --cm and at least as
many QPs.`,
		Args: cobra.NoArgs,
		RunE: f.run,
	}
	f.add(c)
	c.Flags().StringVar(&f.peerMAC, "peer-mac", "", "MAC address of the receiver, or of the router towards it")
	c.Flags().StringVar(&f.verb, "verb", "write", "write, send or read")
	c.Flags().Var(&f.message, "message", "bytes of a message")
	c.Flags().Var(&f.window, "window", "most bytes in flight per QP")
	c.Flags().DurationVar(&f.duration, "duration", 0, "how long to send; 0: until a signal")
	c.Flags().DurationVar(&f.timeout, "timeout", defaultTimeout, "time without an acknowledgement after which a QP sends again; after 8 times the QP fails")
	require(c, "peer", "peer-mac", "trust")
	return c
}

func endpointReceiveCommand() *cobra.Command {
	f := endpointFlags{verb: "write"}
	c := &cobra.Command{
		Use:   "receive --interface IF --address ADDR [--peer ADDR]",
		Short: "Answer a sender on RC connections until SIGINT or SIGTERM",
		Long: `Acknowledges the messages of one sender, answers its READs, and answers CE with CNPs. It learns the sender's MAC address, and without --peer its IP
address too, from the first packet for one of its QPs. For the next sender, start it again. With --cm, RDMA-CM sets up the connections, and one receiver
serves any number of senders, one after another.`,
		Args: cobra.NoArgs,
		RunE: f.run,
	}
	f.add(c)
	c.Flags().BoolVar(&f.noCNP, "no-cnp", false, "don't answer CE with CNPs")
	c.Flags().DurationVar(&f.cnpInterval, "cnp-interval", defaultCNPInterval, "least time between two CNPs of a QP")
	return c
}

// require marks flags as required.
func require(c *cobra.Command, names ...string) {
	for _, name := range names {
		if err := c.MarkFlagRequired(name); err != nil {
			panic(err) // the flag was added by the caller
		}
	}
}
