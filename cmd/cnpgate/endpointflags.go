package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/endpoint/runner"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/yamldoc"
	"github.com/cnpgate/cnpgate/sim/scenario"
)

const (
	senderFirstQP, receiverFirstQP = 0x100, 0x200
	defaultPSN                     = 0x1000
	defaultCMPort                  = 7471 // that of librdmacm's ucmatose
	defaultMTU                     = 1024
	defaultMessage                 = 64 << 10
	defaultPing                    = 64 // of rping
	defaultWindow                  = 4 << 20
	defaultRate                    = "1Gbps"
	defaultTimeout                 = 67 * time.Millisecond // IBTA's timeout 14: 4.096 us * 2^14
	defaultCNPInterval             = 50 * time.Microsecond
	defaultRTT                     = time.Millisecond
)

// endpointFlags are the flags of `endpoint send` and `endpoint receive`, which set the runner's configuration.
type endpointFlags struct {
	deviceFlags
	cm        bool
	verb      string
	rate, nic string
	duration  time.Duration
	remote    endpoint.Region
}

// sizeFlag is a size with a unit; a larger one than most is taken for that.
func sizeFlag[N uint32 | int64](size *N, most N) *textFlag {
	return valueFlag(size, fmt.Sprintf("%dB", *size), "size", func(text string) (N, error) {
		n, err := yamldoc.ParseSize(text)
		return N(min(n, uint64(most))), err
	})
}

// add adds the flags that both commands have, and sets defaults.
func (f *endpointFlags) add(c *cobra.Command) {
	own, peers, rate := uint32(receiverFirstQP), uint32(senderFirstQP), "rate of the host's NIC, for READ responses"
	if f.Send {
		own, peers = peers, own
		rate = "rate to offer, such as 300Mbps; or phases, such as 50Mbps:1s,300Mbps:4s,50Mbps:1s. The highest is the rate of the host's NIC"
	}
	f.Message, f.Window, f.Timeout, f.CNPInterval = defaultMessage, defaultWindow, int64(defaultTimeout), int64(defaultCNPInterval)
	flags := c.Flags()
	f.deviceFlags.add(c, "kernel interface to use", "path MTU: payload bytes of a packet; the same at both ends")
	flags.Var(addressFlag(&f.Peer), "peer", "IP address of the other end")
	flags.IntVar(&f.QPs, "qps", 1, "number of QPs")
	flags.Uint32Var(&f.FirstQP, "first-qp", own, "number of the first QP; the others count upwards")
	flags.Uint32Var(&f.PeerFirstQP, "peer-first-qp", peers, "number of the other end's first QP")
	flags.Uint32Var(&f.PSN, "psn", defaultPSN, "starting PSN of the first QP of both ends; that of each further QP is 4096 higher")
	flags.BoolVar(&f.cm, "cm", false, "set connections up by RDMA-CM, instead of agreeing on QP numbers and PSNs by flags; the same at both ends")
	flags.Uint16Var(&f.CMPort, "cm-port", defaultCMPort, "port of the receiver for RDMA-CM (default for rping 7174)")
	flags.StringVar(&f.rate, "rate", defaultRate, rate)
	flags.DurationVar((*time.Duration)(&f.RTT), "rtt", defaultRTT, "round-trip time of the path (RTT_est), for the reaction point")
	flags.Var(listFlag(&f.Trusted, hosts), "trust", "prefixes or addresses that may send congestion notifications, such as the gateway's")
	flags.Var(listFlag(&f.Accept, func(text string) (packet.Notification, error) {
		return packet.Formats[max(slices.Index(packet.FormatNames, text), 0)], yamldoc.CheckWord(text, packet.FormatNames)
	}), "accept", "formats to obey: "+yamldoc.Either(packet.FormatNames))
	complete(c, "accept", packet.FormatNames...)
	c.MarkFlagsMutuallyExclusive("interface", "device")
	c.MarkFlagsMutuallyExclusive("cm", "psn")
	c.MarkFlagsMutuallyExclusive("cm", "peer-first-qp")
	c.MarkFlagsOneRequired("interface", "device")
	require(c, "address")
}

// config completes the configuration by the flags that depend on others. The caller sets the MAC address of the device, unless the flag did.
func (f *endpointFlags) config(given func(flag string) bool) (c runner.Config, err error) {
	if !f.cm {
		f.CMPort = 0
	} else if f.Seed = rand.Uint64(); f.CMPort == 0 {
		return c, errors.New("--cm-port is 0; expected 1 to 65535")
	}
	if f.Load, err = f.phases(); err == nil {
		err = f.messages(given)
	}
	if err == nil && f.nic != "" {
		nic, failed := scenario.Reaction(f.nic, f.Line(), os.ReadFile)
		if f.NIC = &nic; failed != nil {
			err = fmt.Errorf("--nic: %w", failed)
		}
	}
	if err != nil {
		return c, err
	}
	return f.Config, f.Check()
}

// messages sets what to send. RDMA-CM carries no keys, so SEND is the only verb that needs nothing else.
func (f *endpointFlags) messages(given func(flag string) bool) error {
	verb := cmp.Or(f.verb, map[bool]string{true: "send", false: "write"}[f.cm])
	f.Verb = map[string]endpoint.Op{"write": endpoint.Write, "send": endpoint.Send, "read": endpoint.Read, "rping": endpoint.Send}[verb]
	f.Ping = verb == "rping"
	if f.Ping && !given("message") {
		f.Message = defaultPing
	}
	if f.Ping && !given("cm-port") {
		f.CMPort = endpoint.RpingPort
	}
	key, address, uses := given("rkey"), given("virtual-address"), verb == "write" || verb == "read"
	if key {
		f.Remote = &f.remote
	}
	switch {
	case key != address:
		return errors.New("only one of --rkey and --virtual-address is given; expected both: the key of the receiver's memory, and its address")
	case key && !uses:
		return fmt.Errorf("--verb %s uses no --rkey and --virtual-address; expected them with write and read only", verb)
	case f.Send && f.cm && uses && !key:
		return fmt.Errorf("--verb %s with --cm needs --rkey and --virtual-address of the receiver's memory: RDMA-CM doesn't carry them, and a NIC refuses others "+
			"(cnpgate endpoint receive accepts any); or use --verb send or rping", verb)
	case f.Ping && !f.cm:
		return errors.New("--verb rping needs --cm, by which rping connects")
	case f.Ping && f.Message > endpoint.MaxPing:
		return fmt.Errorf("--message %dB is too large for --verb rping; expected at most %dB, and at most -S of rping -s, 64B by default", f.Message, endpoint.MaxPing)
	case f.Message > math.MaxInt32:
		return errors.New("--message is too large; expected at most 2GiB less a byte")
	}
	return nil
}

// parseAddress reads the address of a host.
func parseAddress(text string) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	if err != nil || a.Zone() != "" || a.IsMulticast() || a.IsUnspecified() {
		return a, fmt.Errorf("%q is not a unicast IP address; expected one such as 10.0.0.1 or fd00::1", text)
	}
	return a.Unmap(), nil
}

func addressFlag(to *netip.Addr) *textFlag { return valueFlag(to, "", "string", parseAddress) }

// macFlag is a MAC address; none is all zeros.
func macFlag(to *[6]byte) *textFlag {
	return valueFlag(to, "", "string", func(text string) (mac [6]byte, err error) {
		m, err := net.ParseMAC(text)
		if err != nil || len(m) != len(mac) || m[0]&1 == 1 {
			return mac, fmt.Errorf("%q is not a unicast MAC address; expected one such as 02:00:00:00:00:01", text)
		}
		return [6]byte(m), nil
	})
}

// phases are those of the rate. The last one lasts until the end of the duration.
func (f *endpointFlags) phases() (all []runner.Phase, err error) {
	phases := strings.Split(f.rate, ",")
	for i, text := range phases {
		rate, length, timed := strings.Cut(text, ":")
		bps, err := yamldoc.ParseRate(rate)
		if err != nil {
			return nil, fmt.Errorf("--rate: %w", err)
		}
		p := runner.Phase{Rate: int64(min(bps, math.MaxInt64))}
		if timed {
			d, err := yamldoc.ParseDuration(length)
			if err == nil && d <= 0 {
				err = fmt.Errorf("%v is no time; expected more than 0", d)
			}
			if err != nil {
				return nil, fmt.Errorf("--rate: phase %q: %w", text, err)
			}
			p.Length = int64(d)
		}
		switch last := i == len(phases)-1; {
		case !timed && !last:
			return nil, fmt.Errorf("--rate: phase %q has no duration; expected one in each but the last, as in 50Mbps:1s,300Mbps", text)
		case timed && !f.Send:
			return nil, fmt.Errorf("--rate %q has phases; expected one rate", f.rate)
		case timed && f.duration > 0:
			return nil, fmt.Errorf("--duration and a duration in each phase of --rate are given; expected one of them")
		case last && !timed:
			p.Length = int64(f.duration)
		}
		all = append(all, p)
	}
	return all, nil
}
