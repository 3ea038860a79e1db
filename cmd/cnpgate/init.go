package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/propose"
	"github.com/cnpgate/cnpgate/internal/netif"
	"github.com/cnpgate/cnpgate/internal/yamldoc"
)

const (
	longestListen = 24 * time.Hour // --listen
	longestSocket = 107            // bytes of the path (unix(7))
)

type initFlags struct {
	fabric, wan, rate, socket, output string
	hosts                             []netip.Prefix // the fabric's, of a single mirror port
	listen                            time.Duration
	force, tap                        bool
}

func initCommand() *cobra.Command {
	var f initFlags
	c := &cobra.Command{
		Use:   "init --fabric IF {--wan IF [--tap] | --tap --hosts PREFIX,...} [--rate RATE] [--listen 60s] [--socket PATH] [-o FILE [--force]]",
		Short: "Listen on two interfaces and propose a configuration",
		Long: `Reads two interfaces, listens on them without forwarding, and proposes a configuration in observe mode: with it, the gateway forwards all frames and only counts the
notifications that it would send. The hosts that send RoCEv2 from the fabric are granted the standard CNP, which NICs obey.

The configuration goes to standard output unless -o names a file. What was seen, and why it is proposed, goes to standard error. Ctrl-C ends the listening, and the
proposal is made of what was seen until then. It needs root, or CAP_NET_RAW. Interfaces that this machine's own network uses (default route, SSH) are refused.`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return f.propose(c) },
	}
	c.Flags().StringVar(&f.fabric, "fabric", "", "interface on the data centre's side")
	c.Flags().StringVar(&f.wan, "wan", "", "interface on the WAN's side")
	c.Flags().BoolVar(&f.tap, "tap", false, "the interfaces are mirror ports, of the frames from the fabric and of those from the WAN: propose to transmit nothing")
	c.Flags().Var(listFlag(&f.hosts, yamldoc.ParsePrefix), "hosts", "with --tap and without --wan: --fabric mirrors both directions, and what these prefixes send comes from the fabric")
	c.Flags().StringVar(&f.rate, "rate", "", "rate of the line behind the WAN interface, such as 1Gbps (default the interface's)")
	c.Flags().DurationVar(&f.listen, "listen", time.Minute, "how long to listen; 0s: not at all")
	c.Flags().StringVar(&f.socket, "socket", api.DefaultSocket, "Unix socket of the gateway's API")
	c.Flags().StringVarP(&f.output, "output", "o", "", "write the configuration to this file")
	c.Flags().BoolVar(&f.force, "force", false, "write over an existing file")
	require(c, "fabric")
	return c
}

// propose does all that can fail before it listens.
func (f *initFlags) propose(c *cobra.Command) error {
	plan, err := f.plan()
	if err != nil {
		return err
	}
	out := outputs{{flag: "--output", path: f.output}}
	if _, err := os.Lstat(f.output); f.output != "" && err == nil && !f.force && !isDevice(f.output) {
		return fmt.Errorf("--output: %s exists; expected a new file, or --force to write over it", f.output)
	}
	if err := out.open(c.Context()); err != nil {
		return err
	}
	say := func(text string) { fmt.Fprintln(c.ErrOrStderr(), "cnpgate:", text) }
	text, err := f.proposal(plan, say)
	switch {
	case err != nil:
	case f.output == "":
		_, err = fmt.Fprint(c.OutOrStdout(), text)
	default:
		_, err = fmt.Fprint(out[0].writer(), text)
		err = errors.Join(err, out.finish())
	}
	if err != nil || f.output == "" {
		out.discard()
		return err
	}
	say(fmt.Sprintf("%s is written; next: cnpgate run %s, and in another terminal cnpgate show notifications", f.output, f.output))
	return out.rename()
}

// proposal listens, says what it has seen, and returns the configuration.
func (f *initFlags) proposal(plan *propose.Plan, say func(string)) (string, error) {
	p := propose.New(*plan)
	listened, lost, err := f.hear(p, say)
	if err != nil {
		return "", err
	}
	text, said, err := p.End(listened, lost)
	if err != nil {
		return "", err
	}
	for _, line := range said {
		say(line)
	}
	if isVirtual("/") {
		say("this is a virtual machine, whose hypervisor may keep the whole gateway from its cores for seconds; let systemd's watchdog wait that long: " +
			"systemctl edit cnpgate, [Service], WatchdogSec=30s")
	}
	return text, nil
}

// isVirtual reports whether the kernel whose file systems are at root says that it runs on a hypervisor.
func isVirtual(root string) bool {
	for _, path := range []string{"sys/hypervisor/type", "proc/device-tree/hypervisor"} {
		if _, err := os.Stat(filepath.Join(root, path)); err == nil {
			return true
		}
	}
	text, _ := os.ReadFile(filepath.Join(root, "proc/cpuinfo"))
	return cpuFlag.Match(text)
}

// cpuFlag is what x86 processors set on a hypervisor.
var cpuFlag = regexp.MustCompile(`(?m)^flags\s*:.* hypervisor( |$)`)

var pciAddress = regexp.MustCompile(`^(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

// refusePCI says which interface a PCI device has, if name is the address of one. devices is the kernel's folder of them.
func refusePCI(devices, name string) error {
	if !pciAddress.MatchString(name) {
		return nil
	}
	if len(name) == len("00:00.0") {
		name = "0000:" + name
	}
	found, _ := filepath.Glob(filepath.Join(devices, name, "net", "*"))
	if len(found) == 0 {
		return fmt.Errorf("%s is a PCI address, of no interface of the kernel's; init listens on interfaces: give the device back to its kernel driver meanwhile (scripts/host-setup)", name)
	}
	return fmt.Errorf("%s is a PCI address; expected its interface, %s", name, filepath.Base(found[0]))
}

// plan checks the flags, and reads the interfaces.
func (f *initFlags) plan() (*propose.Plan, error) {
	if f.listen < 0 || f.listen > longestListen {
		return nil, fmt.Errorf("--listen is %v; expected 0s to %v", f.listen, longestListen)
	}
	if err := f.single(); err != nil {
		return nil, err
	}
	if f.fabric == f.wan {
		return nil, fmt.Errorf("--fabric and --wan are both %s; expected two interfaces", f.fabric)
	}
	command := fmt.Sprintf("cnpgate init --fabric %s --wan %s", f.fabric, f.wan)
	if f.wan == "" {
		command = fmt.Sprintf("cnpgate init --fabric %s --hosts %s", f.fabric, strings.ReplaceAll(strings.Trim(fmt.Sprint(f.hosts), "[]"), " ", ","))
	}
	p := &propose.Plan{Command: command, Hosts: f.hosts, Name: "cnpgate", Socket: strings.TrimPrefix(f.socket, "unix:")}
	if name, err := os.Hostname(); err == nil && name != "" {
		p.Name = name
	}
	if p.Tap = f.tap; f.tap {
		p.Command += " --tap"
	}
	if !filepath.IsAbs(p.Socket) || len(p.Socket) > longestSocket {
		return nil, fmt.Errorf("--socket is %s; expected an absolute path of at most %d bytes", f.socket, longestSocket)
	}
	if f.rate != "" {
		rate, err := yamldoc.ParseRate(f.rate)
		if err != nil {
			return nil, fmt.Errorf("--rate: %w", err)
		}
		if rate < 100e3 || rate > 10e12 {
			return nil, fmt.Errorf("--rate is %s; expected 100kbps to 10Tbps", f.rate)
		}
		p.Rate = rate
	}
	for _, i := range []struct {
		flag, name string
		facts      *netif.Facts
	}{{"--fabric", f.fabric, &p.Fabric}, {"--wan", f.wan, &p.WAN}} {
		if i.name == "" { // a single mirror port
			p.WAN = p.Fabric
			continue
		}
		if strings.ContainsRune(i.name, ',') {
			return nil, fmt.Errorf("%s: interface %q has a comma in its name, which devices' arguments can't have; rename it with `ip link set`", i.flag, i.name)
		}
		facts := netif.Facts{}
		err := refusePCI("/sys/bus/pci/devices", i.name)
		if err == nil {
			facts, err = readInterface(i.name)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", i.flag, err)
		}
		*i.facts = facts
	}
	var err error
	p.Core, err = proposedCore(p)
	return p, err
}

// single checks that either --wan is given, or --hosts for a single mirror port.
func (f *initFlags) single() error {
	switch {
	case f.wan == "" && len(f.hosts) == 0 && f.tap:
		return errors.New("--wan is missing; expected the second mirror port, or --hosts PREFIX,... if --fabric mirrors both directions")
	case f.wan == "" && !f.tap:
		return errors.New("--wan is missing; expected the interface on the WAN's side")
	case f.wan != "" && len(f.hosts) > 0:
		return errors.New("--hosts is for a single mirror port of both directions; leave out --wan, or --hosts")
	}
	return nil
}

// hear listens until the time is over or a signal comes.
func (f *initFlags) hear(p *propose.Proposal, say func(string)) (time.Duration, uint64, error) {
	if f.listen == 0 {
		return 0, 0, nil
	}
	ctx, stop := untilStopped()
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, f.listen)
	defer cancel()
	begin := time.Now()
	lost, err := listen(ctx, f.fabric, f.wan, func() {
		say(fmt.Sprintf("listening on %s for %v; Ctrl-C ends it earlier", strings.TrimSuffix(f.fabric+" and "+f.wan, " and "), f.listen))
	}, p.Add)
	return time.Since(begin), lost, err
}

// sshPeer is the client of the SSH session that the command runs in, as a list.
func sshPeer() []netip.Addr {
	client, _, _ := strings.Cut(os.Getenv("SSH_CONNECTION"), " ")
	a, err := netip.ParseAddr(client)
	if err != nil {
		return nil
	}
	return []netip.Addr{a.WithZone("")}
}
