package main

import (
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

// endpointFlags are the flags of `endpoint send` and `endpoint receive`.
type endpointFlags struct {
	deviceFlags
	send bool

	peer, peerMAC             string
	qps                       int
	firstQP, peerFirstQP, psn uint32
	cm                        bool
	cmPort                    uint16
	verb                      string
	message, window           uint64
	rkey                      uint32
	virtualAddress            uint64
	rate                      string
	duration, timeout, rtt    time.Duration
	trust, accept             []string
	nic                       string
	noCNP                     bool
	cnpInterval               time.Duration

	memory *endpoint.Region // by rkey and virtualAddress; nil: none is given
}

// sizeFlag is a size with a unit.
func sizeFlag(size *uint64) *textFlag {
	return &textFlag{fmt.Sprintf("%dB", *size), "size", func(text string) (err error) {
		*size, err = yamldoc.ParseSize(text)
		return err
	}}
}

// add adds the flags that both commands have, and sets defaults.
func (f *endpointFlags) add(c *cobra.Command) {
	own, peers, rate := uint32(receiverFirstQP), uint32(senderFirstQP), "rate of the host's NIC, for READ responses"
	if f.send {
		own, peers = peers, own
		rate = "rate to offer, such as 300Mbps; or phases, such as 50Mbps:1s,300Mbps:4s,50Mbps:1s. The highest is the rate of the host's NIC"
	}
	f.message, f.window, f.timeout, f.cnpInterval = defaultMessage, defaultWindow, defaultTimeout, defaultCNPInterval
	flags := c.Flags()
	f.deviceFlags.add(c, "kernel interface to use", "path MTU: payload bytes of a packet; the same at both ends")
	flags.StringVar(&f.peer, "peer", "", "IP address of the other end")
	flags.IntVar(&f.qps, "qps", 1, "number of QPs")
	flags.Uint32Var(&f.firstQP, "first-qp", own, "number of the first QP; the others count upwards")
	flags.Uint32Var(&f.peerFirstQP, "peer-first-qp", peers, "number of the other end's first QP")
	flags.Uint32Var(&f.psn, "psn", defaultPSN, "starting PSN of the first QP of both ends; that of each further QP is 4096 higher")
	flags.BoolVar(&f.cm, "cm", false, "set connections up by RDMA-CM, instead of agreeing on QP numbers and PSNs by flags; the same at both ends")
	flags.Uint16Var(&f.cmPort, "cm-port", defaultCMPort, "port of the receiver for RDMA-CM (default for rping 7174)")
	flags.StringVar(&f.rate, "rate", defaultRate, rate)
	flags.DurationVar(&f.rtt, "rtt", defaultRTT, "round-trip time of the path (RTT_est), for the reaction point")
	flags.StringSliceVar(&f.trust, "trust", nil, "prefixes or addresses that may send congestion notifications, such as the gateway's")
	flags.StringSliceVar(&f.accept, "accept", nil, "formats to obey: "+yamldoc.Either(obeyed()))
	complete(c, "accept", obeyed()...)
	c.MarkFlagsMutuallyExclusive("interface", "device")
	c.MarkFlagsMutuallyExclusive("cm", "psn")
	c.MarkFlagsMutuallyExclusive("cm", "peer-first-qp")
	c.MarkFlagsOneRequired("interface", "device")
	require(c, "address")
}

// config is the runner's configuration by the flags. The caller sets the MAC address, from the flag or the device.
func (f *endpointFlags) config() (c runner.Config, err error) {
	c = runner.Config{
		Send: f.send, QPs: f.qps, FirstQP: f.firstQP, PeerFirstQP: f.peerFirstQP, PSN: f.psn, MTU: f.mtu, Window: int64(min(f.window, math.MaxInt64)),
		Timeout: int64(f.timeout), RTT: int64(f.rtt), NoCNP: f.noCNP, CNPInterval: int64(f.cnpInterval),
	}
	if f.cm {
		if c.CMPort, c.Seed = f.cmPort, rand.Uint64(); c.CMPort == 0 {
			return c, fmt.Errorf("--cm-port is 0; expected 1 to 65535")
		}
	}
	for _, step := range []func(*runner.Config) error{f.addresses, f.notifications, f.load, f.messages, f.reaction} {
		if err := step(&c); err != nil {
			return c, err
		}
	}
	return c, c.Check()
}

// reaction reads the NIC to react as.
func (f *endpointFlags) reaction(c *runner.Config) error {
	if f.nic == "" {
		return nil
	}
	nic, err := scenario.Reaction(f.nic, c.Line(), os.ReadFile)
	if err != nil {
		return fmt.Errorf("--nic: %w", err)
	}
	c.NIC = &nic
	return nil
}

// messages reads what to send.
func (f *endpointFlags) messages(c *runner.Config) error {
	verbs := map[string]endpoint.Op{"write": endpoint.Write, "send": endpoint.Send, "read": endpoint.Read, "rping": endpoint.Send}
	c.Verb, c.Ping, c.Remote = verbs[f.defaultVerb()], f.verb == "rping", f.memory
	switch {
	case c.Ping && !f.cm:
		return fmt.Errorf("--verb rping needs --cm, by which rping connects")
	case c.Ping && f.message > endpoint.MaxPing:
		return fmt.Errorf("--message %dB is too large for --verb rping; expected at most %dB, and at most -S of rping -s, 64B by default", f.message, endpoint.MaxPing)
	case f.message > math.MaxInt32:
		return fmt.Errorf("--message %dB is too large; expected at most 2GiB less a byte", f.message)
	}
	c.Message = uint32(f.message)
	return nil
}

// defaultVerb is the verb, or its default. RDMA-CM carries no keys, so SEND is the only one that needs nothing else.
func (f *endpointFlags) defaultVerb() string {
	switch {
	case f.verb != "":
		return f.verb
	case f.cm:
		return "send"
	}
	return "write"
}

// readGiven reads flags whose meaning depends on whether they are given: the receiver's memory, and rping's port and size of buffers.
func (f *endpointFlags) readGiven(given func(flag string) bool) error {
	if f.verb == "rping" && !given("message") {
		f.message = defaultPing
	}
	if f.verb == "rping" && !given("cm-port") {
		f.cmPort = endpoint.RpingPort
	}
	verb, key, address := f.defaultVerb(), given("rkey"), given("virtual-address")
	uses := verb == "write" || verb == "read"
	switch {
	case key != address:
		return fmt.Errorf("only one of --rkey and --virtual-address is given; expected both: the key of the receiver's memory, and its address")
	case key && !uses:
		return fmt.Errorf("--verb %s uses no --rkey and --virtual-address; expected them with write and read only", verb)
	case f.send && f.cm && uses && !key:
		return fmt.Errorf("--verb %s with --cm needs --rkey and --virtual-address of the receiver's memory: RDMA-CM doesn't carry them, and a NIC refuses others "+
			"(cnpgate endpoint receive accepts any); or use --verb send or rping", verb)
	case key:
		f.memory = &endpoint.Region{Address: f.virtualAddress, RKey: f.rkey}
	}
	return nil
}

func (f *endpointFlags) addresses(c *runner.Config) (err error) {
	if err = f.ends(c, f.peer); err == nil {
		c.PeerMAC, err = parseMAC("peer-mac", f.peerMAC)
	}
	return err
}

// ends reads the addresses of this end, and that of the other one unless it is "".
func (f *deviceFlags) ends(c *runner.Config, peer string) (err error) {
	if c.Addr, err = parseAddress("address", f.address); err == nil && peer != "" {
		c.Peer, err = parseAddress("peer", peer)
	}
	if err == nil {
		c.MAC, err = parseMAC("mac", f.mac)
	}
	return err
}

func parseAddress(flag, text string) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	if err != nil || a.Zone() != "" || a.IsMulticast() || a.IsUnspecified() {
		return a, fmt.Errorf("--%s %q is not a unicast IP address; expected one such as 10.0.0.1 or fd00::1", flag, text)
	}
	return a.Unmap(), nil
}

// parseMAC reads a MAC address; none is all zeros.
func parseMAC(flag, text string) (mac [6]byte, err error) {
	if text == "" {
		return mac, nil
	}
	m, err := net.ParseMAC(text)
	if err != nil || len(m) != len(mac) || m[0]&1 == 1 {
		return mac, fmt.Errorf("--%s %q is not a unicast MAC address; expected one such as 02:00:00:00:00:01", flag, text)
	}
	return [6]byte(m), nil
}

// notifications reads the access list and the formats to obey.
func (f *endpointFlags) notifications(c *runner.Config) error {
	for _, text := range f.trust {
		p, err := hosts(text)
		if err != nil {
			return fmt.Errorf("--trust: %w", err)
		}
		c.Trusted = append(c.Trusted, p)
	}
	for _, text := range f.accept {
		if err := yamldoc.CheckWord(text, obeyed()); err != nil {
			return fmt.Errorf("--accept: %w", err)
		}
		c.Accept = append(c.Accept, obeyedKinds[slices.Index(obeyed(), text)])
	}
	return nil
}

// obeyedKinds are the notifications that an endpoint can obey.
var obeyedKinds = []packet.Notification{packet.FastCNP, packet.LongHaulCNP, packet.LongHaulCNPICMPv6, packet.PPFC}

// obeyed are their names.
func obeyed() (names []string) {
	for _, k := range obeyedKinds {
		names = append(names, k.String())
	}
	return names
}

// load reads the phases of the rate. The last one lasts until the end of the duration.
func (f *endpointFlags) load(c *runner.Config) error {
	phases := strings.Split(f.rate, ",")
	for i, text := range phases {
		rate, length, timed := strings.Cut(text, ":")
		bps, err := yamldoc.ParseRate(rate)
		if err != nil {
			return fmt.Errorf("--rate: %w", err)
		}
		p := runner.Phase{Rate: int64(min(bps, math.MaxInt64))}
		if timed {
			d, err := yamldoc.ParseDuration(length)
			if err == nil && d <= 0 {
				err = fmt.Errorf("%v is no time; expected more than 0", d)
			}
			if err != nil {
				return fmt.Errorf("--rate: phase %q: %w", text, err)
			}
			p.Length = int64(d)
		}
		switch last := i == len(phases)-1; {
		case !timed && !last:
			return fmt.Errorf("--rate: phase %q has no duration; expected one in each but the last, as in 50Mbps:1s,300Mbps", text)
		case timed && !f.send:
			return fmt.Errorf("--rate %q has phases; expected one rate", f.rate)
		case timed && f.duration > 0:
			return fmt.Errorf("--duration and a duration in each phase of --rate are given; expected one of them")
		case last && !timed:
			p.Length = int64(f.duration)
		}
		c.Load = append(c.Load, p)
	}
	return nil
}
