package main

import (
	"math"
	"time"

	"github.com/spf13/cobra"
)

func endpointCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "endpoint",
		Short: "Send or receive RoCEv2 messages in software, and obey congestion notifications",
	}
	c.AddCommand(endpointSendCommand(), endpointReceiveCommand())
	return c
}

func endpointSendCommand() *cobra.Command {
	f := endpointFlags{}
	f.Send = true
	c := &cobra.Command{
		Use:   "send --interface IF --address ADDR --peer ADDR --peer-mac MAC --trust PREFIX [--accept FORMAT,...] [--rate RATE]",
		Short: "Send RoCEv2 messages on RC connections, as fast as --rate and the notifications allow",
		Long: `Posts messages on each QP continuously, and sends them as fast as --rate allows, or more slowly after congestion notifications. It ends after --duration,
after the last phase of --rate, or at SIGINT or SIGTERM, and prints a summary. Start the other end, cnpgate endpoint receive, first, with the same --qps
and --psn; the default QP numbers of both ends match. With --cm, RDMA-CM sets up a connection for each QP, and the receiver needs --cm and at least as
many QPs. RDMA-CM carries no keys: WRITE and READ then need --rkey and --virtual-address. --verb rping tests a connection with rping -s.`,
		Args: noArguments,
		RunE: f.run,
	}
	f.add(c)
	c.Flags().Var(macFlag(&f.PeerMAC), "peer-mac", "MAC address of the receiver, or of the router towards it")
	wordFlag(c, &f.verb, "verb", "", "default write, with --cm send; rping is the client of rping's exchange", "write", "send", "read", "rping")
	c.Flags().Var(sizeFlag(&f.Message, math.MaxUint32), "message", "bytes of a message; for rping 64B if not given")
	c.Flags().Uint32Var(&f.remote.RKey, "rkey", 0, "key of the receiver's memory, for --verb write and read; with --cm required, else made up")
	c.Flags().Uint64Var(&f.remote.Address, "virtual-address", 0, "address of the receiver's memory, in the same way")
	c.Flags().Var(sizeFlag(&f.Window, math.MaxInt64), "window", "most bytes in flight per QP")
	c.Flags().DurationVar(&f.duration, "duration", 0, "how long to send; 0: until a signal")
	c.Flags().DurationVar((*time.Duration)(&f.Timeout), "timeout", defaultTimeout, "time without an acknowledgement after which a QP sends again; after 8 times the QP fails")
	c.Flags().StringVar(&f.nic, "nic", "", "react as this NIC of cnpgate sim, or file, such as a profile that nictest wrote (default DCQCN, scaled to --rate)")
	c.MarkFlagsMutuallyExclusive("nic", "accept")
	require(c, "peer", "peer-mac", "trust")
	return c
}

func endpointReceiveCommand() *cobra.Command {
	f := endpointFlags{}
	c := &cobra.Command{
		Use:   "receive --interface IF --address ADDR [--peer ADDR]",
		Short: "Answer a sender on RC connections until SIGINT or SIGTERM",
		Long: `Acknowledges the messages of one sender, answers its READs, and answers CE with CNPs. It learns the sender's MAC address, and without --peer its IP
address too, from the first packet for one of its QPs. For the next sender, start it again. With --cm, RDMA-CM sets up the connections, and one receiver
serves any number of senders, one after another; it answers rping -c too.`,
		Args: noArguments,
		RunE: f.run,
	}
	f.add(c)
	c.Flags().BoolVar(&f.NoCNP, "no-cnp", false, "don't answer CE with CNPs")
	c.Flags().DurationVar((*time.Duration)(&f.CNPInterval), "cnp-interval", defaultCNPInterval, "least time between two CNPs of a QP")
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
