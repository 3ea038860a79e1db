package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/endpoint/runner"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/yamldoc"
	"github.com/cnpgate/cnpgate/nictest"
)

// nictestFlags are the flags of `nictest`.
type nictestFlags struct {
	deviceFlags
	test nictest.Config

	qp, peerQP, psn          uint32
	gateways                 []string
	quick                    bool
	silence                  time.Duration
	name, info               string
	before, after, ssh, rdma string
	profile, simulate        string
}

func nictestCommand() *cobra.Command {
	const connections, line = 64, 400_000_000_000
	f := nictestFlags{deviceFlags: deviceFlags{Config: runner.Config{
		QPs: connections, Verb: endpoint.Write, Message: defaultMessage, Window: defaultWindow, Timeout: int64(defaultTimeout),
		RTT: int64(defaultRTT), CNPInterval: int64(defaultCNPInterval), NoCNP: true, AnyICRC: true, Load: []runner.Phase{{Rate: line}},
		FirstQP: receiverFirstQP, CMPort: defaultCMPort,
	}}}
	c := &cobra.Command{
		Use:   "nictest --interface IF --address ADDR [--quick] [--nic NAME] [--profile FILE] | --simulate NIC",
		Short: "Measure how a sender's NIC reacts to congestion notifications",
		Long: `Is the peer of a real sender, and measures it. Start it, then on the host with the NIC under test one of
  ib_write_bw -R -D 600 --report_gbits ADDR       (perftest; RDMA-CM)
  rping -c -a ADDR -S 65535 -C 1000000            (librdmacm; a weaker test, as it waits for each answer)
or any program with a connection that --qp, --peer-qp and --psn describe. ADDR is on no kernel interface; nictest answers ARP and Neighbor Discovery for it.
It receives at line rate, and sends CNPs to the sender: one and many, at distances from 1 ms to 2 us, up to 500 thousand a second, and with other source
addresses, DSCPs, flags, P_Keys, ICRCs, QPs and tags; then Fast CNP, Long-haul CNP and PPFC; then pause frames. It reports what each did to the sender's rate,
which formats to grant, and with --profile writes a file of the NIC for hosts.nic of cnpgate sim. Use a sender that nothing else needs. SIGINT ends it with
what it has so far. --simulate NIC tests the software endpoint with a NIC's file, in virtual time, without a device.`,
		Args: noArguments,
		RunE: f.run,
	}
	flags := c.Flags()
	f.add(c, "kernel interface towards the NIC under test", "path MTU: payload bytes of a packet; the sender's")
	flags.Uint32Var(&f.qp, "qp", 0, "for a connection without RDMA-CM: the QP of this end")
	flags.Uint32Var(&f.peerQP, "peer-qp", 0, "the sender's QP of it")
	flags.Uint32Var(&f.psn, "psn", defaultPSN, "the first PSN of both ends of it")
	flags.Var(addressFlag(&f.Peer), "peer", "IP address of the sender; others are then not served")
	flags.StringSliceVar(&f.gateways, "gateway-address", []string{"192.0.2.1", "2001:db8::1"}, "source addresses of notifications as from a gateway, at most one of each IP version")
	flags.Var(valueFlag(&f.test.Addresses.Other, "", "string", parsePacketAddress), "other-peer", "the sender's address of the other IP version, to try CNPs over it")
	flags.Var(valueFlag(&f.test.Addresses.OtherPeer, "", "string", parsePacketAddress), "other-address", "this end's address of the other IP version")
	flags.Uint8Var(&f.test.Addresses.Priority, "priority", 3, "priority of the data, for PFC, 0 to 7")
	flags.BoolVar(&f.quick, "quick", false, "only the most important experiments")
	flags.DurationVar((*time.Duration)(&f.test.Bin), "bin", 20*time.Microsecond, "resolution of the rate over time, 1us to 1ms")
	flags.DurationVar((*time.Duration)(&f.test.Patience), "patience", 100*time.Millisecond, "how long a reaction may take")
	flags.DurationVar((*time.Duration)(&f.test.Longest), "longest", 3*time.Second, "how long an experiment may last after its last notification")
	flags.DurationVar(&f.silence, "silence", 30*time.Second, "how long to wait for a sender that sends no data")
	flags.Var(valueFlag(&f.test.LineRate, "", "string", func(text string) (int64, error) {
		rate, err := yamldoc.ParseRate(text)
		return int64(rate), err
	}), "rate", "rate of the sender's NIC (default the highest that comes; with --simulate 10Gbps)")
	flags.StringVar(&f.name, "nic", "", "name of the NIC under test, for the report")
	flags.StringVar(&f.info, "nic-info", "", "file with what ethtool -i or mlxfwmanager prints about it")
	flags.StringVar(&f.before, "counters-before", "", "file with the sender's counters before the test, such as rp_cnp_handled 17")
	flags.StringVar(&f.after, "counters-after", "", "file with them after the test: it is read at the end")
	flags.StringVar(&f.ssh, "ssh", "", "host at which to read them by ssh instead, such as root@host")
	flags.StringVar(&f.rdma, "rdma-device", "", "RDMA device there, such as mlx5_0")
	flags.StringVar(&f.profile, "profile", "", "write the NIC's file for cnpgate sim")
	flags.StringVar(&f.simulate, "simulate", "", "test the software endpoint with this NIC of cnpgate sim, or file")
	c.MarkFlagsMutuallyExclusive("interface", "device", "simulate")
	c.MarkFlagsOneRequired("interface", "device", "simulate")
	c.MarkFlagsMutuallyExclusive("ssh", "counters-before")
	c.MarkFlagsRequiredTogether("ssh", "rdma-device")
	c.MarkFlagsRequiredTogether("counters-before", "counters-after")
	c.MarkFlagsRequiredTogether("qp", "peer-qp")
	c.MarkFlagsRequiredTogether("other-peer", "other-address")
	return c
}

func (f *nictestFlags) run(c *cobra.Command, _ []string) error {
	nic := nictest.Identity{Name: f.name}
	if f.info != "" {
		text, err := os.ReadFile(f.info)
		if err == nil {
			err = nic.Paste(string(text))
		}
		if err != nil {
			return fmt.Errorf("--nic-info: %w", err)
		}
	}
	config, err := f.config()
	if err != nil {
		return err
	}
	ctx, stop := untilStopped()
	defer stop()
	if f.simulate != "" {
		return f.simulated(ctx, c, config, nic)
	}
	if err := requireFlags(c, "address"); err != nil {
		return err
	}
	return f.measured(ctx, c, config, nic)
}

// parsePacketAddress is parseAddress for package packet.
func parsePacketAddress(text string) (packet.Addr, error) {
	a, err := parseAddress(text)
	if err != nil {
		return packet.Addr{}, err
	}
	return packet.AddrFrom(a), nil
}

// config completes the session's configuration.
func (f *nictestFlags) config() (nictest.Config, error) {
	c := f.test
	if c.Addresses.Priority > 7 {
		return c, fmt.Errorf("--priority %d; expected 0 to 7", c.Addresses.Priority)
	}
	for _, text := range f.gateways {
		a, err := parsePacketAddress(text)
		if err != nil {
			return c, fmt.Errorf("--gateway-address: %w", err)
		}
		to := &c.Addresses.Gateway6
		if a.Is4() {
			to = &c.Addresses.Gateway4
		}
		if *to != (packet.Addr{}) {
			return c, errors.New("--gateway-address has two addresses of one IP version; expected at most one of each")
		}
		*to = a
	}
	if f.silence < time.Second || f.silence > time.Hour {
		return c, fmt.Errorf("--silence %v; expected 1s to 1h", f.silence)
	}
	if err := c.Check(); err != nil {
		return c, fmt.Errorf("--bin, --patience and --longest: %w", err)
	}
	return c, nil
}

// endpoint makes the configuration of the endpoint that receives.
func (f *nictestFlags) endpoint() (runner.Config, error) {
	c := f.Config
	c.Seed = rand.Uint64()
	if f.qp != 0 {
		if f.qp < packet.ManagementQPs || f.peerQP < packet.ManagementQPs {
			return c, fmt.Errorf("--qp %d and --peer-qp %d; expected numbers from 2 on, as QPs 0 and 1 are for management", f.qp, f.peerQP)
		}
		c.QPs, c.FirstQP, c.PeerFirstQP, c.PSN, c.CMPort = 1, f.qp, f.peerQP, f.psn, 0
	}
	if c.Peer == c.Addr {
		return c, fmt.Errorf("--peer and --address are both %v; expected the sender's address and one that no host has", c.Peer)
	}
	if other := f.test.Addresses; other.Other != (packet.Addr{}) && (other.Other.Is4() == c.Addr.Is4() || other.OtherPeer.Is4() == c.Addr.Is4()) {
		return c, fmt.Errorf("--other-peer %v and --other-address %v; expected addresses of the other IP version than %v", other.Other.Netip(), other.OtherPeer.Netip(), c.Addr)
	}
	return c, c.Check()
}
