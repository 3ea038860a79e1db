package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/agent"
	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/fleet"
	"github.com/cnpgate/cnpgate/fleet/wire"
	"github.com/cnpgate/cnpgate/internal/sandbox"
)

func agentCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "agent",
		Short: "On a host: tell gateways which QPs the host's are connected to",
	}
	c.AddCommand(agentRunCommand(), agentShowCommand())
	return c
}

// agentFlags are the flags of agent run.
type agentFlags struct {
	broker   agent.BrokerOptions
	key      string
	socket   string
	interval time.Duration
	lifetime time.Duration
	logLevel string
}

func agentRunCommand() *cobra.Command {
	f := agentFlags{logLevel: "info"}
	c := &cobra.Command{
		Use:   "run --site SITE --server URL,... --key FILE [--name HOST] | run --socket PATH",
		Short: "Publish hints about the host's QPs until SIGTERM or SIGINT",
		Long: `Reads the host's RDMA connections from the kernel (RDMA netlink), and publishes which QP each of the host's QPs is connected to: to the gateways of a
site through a broker (NATS), signed by the host's key, or with --socket to the gateway on this machine. Gateways forget a hint when the agent withdraws
it, as the QP is gone, or at the end of its lifetime. It needs no root: only the network and PID namespace of the host. The log goes to standard error.`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error { return f.run() },
	}
	flags := c.Flags()
	flags.StringVar(&f.broker.Site, "site", "", "name of the site, fleet.site of its gateways")
	flags.StringVar(&f.broker.Host, "name", "", "name of this host in the gateways' fleet.hosts (default: the host's name up to the first dot)")
	flags.StringSliceVar(&f.broker.Servers, "server", nil, "brokers, such as tls://nats-1:4222")
	flags.StringVar(&f.broker.CA, "ca", "", "file with the certificates that sign the brokers' (default: the system's)")
	flags.StringVar(&f.broker.Cert, "tls-cert", "", "file with the host's certificate, for brokers that ask for one, as gateways with fleet.tls do")
	flags.StringVar(&f.broker.CertKey, "tls-key", "", "file with the certificate's private key")
	flags.StringVar(&f.key, "key", "", "file with the host's key, see cnpgate fleet keys")
	flags.StringVar(&f.socket, "socket", "", "socket of a gateway on this machine, instead of a broker")
	flags.DurationVar(&f.interval, "interval", 250*time.Millisecond, "time between two looks at the kernel, at least; longer if it has many QPs")
	flags.DurationVar(&f.lifetime, "lifetime", 10*time.Second, "time after which gateways forget a hint that isn't repeated, at least; longer with many QPs")
	wordFlag(c, &f.logLevel, "log-level", "", "lowest level that is logged", "debug", "info", "warn", "error")
	c.MarkFlagsMutuallyExclusive("socket", "server")
	c.MarkFlagsOneRequired("socket", "server")
	c.MarkFlagsRequiredTogether("server", "site")
	c.MarkFlagsRequiredTogether("tls-cert", "tls-key")
	return c
}

func (f *agentFlags) run() error {
	if f.interval < 10*time.Millisecond || f.interval > time.Minute {
		return fmt.Errorf("--interval %v: expected 10ms to 1m", f.interval)
	}
	if f.lifetime < max(fleet.MinHintLifetime, 4*f.interval) || f.lifetime > fleet.MaxHintLifetime {
		return fmt.Errorf("--lifetime %v: expected %v to %v, and at least four times --interval", f.lifetime, fleet.MinHintLifetime, fleet.MaxHintLifetime)
	}
	kernel, err := rdmaKernel()
	if err != nil {
		return err
	}
	level, _ := zerolog.ParseLevel(f.logLevel) // the flag has been checked
	log := logger().Level(level)
	ctx, _, release := untilSignal(log)
	defer release()
	transport, closing, err := f.transport(log)
	if err != nil {
		return err
	}
	defer closing()
	agent.Run(ctx, agent.Options{
		Scanner: agent.NewScanner(kernel, os.DirFS(infiniband), f.interval), Transport: transport, Interval: f.interval, Lifetime: f.lifetime, Log: log,
	})
	return nil
}

// infiniband is where the kernel describes RDMA devices.
const infiniband = "/sys/class/infiniband"

func (f *agentFlags) transport(log zerolog.Logger) (t agent.Transport, closing func(), err error) {
	if f.socket != "" {
		return &localGateway{client: api.NewClient(f.socket)}, func() {}, nil
	}
	if f.key == "" {
		return nil, nil, errors.New("--server needs --key, the file with this host's key: gateways take only what it has signed; make FILE.nk: cnpgate fleet keys FILE")
	}
	if f.broker.Host == "" {
		if f.broker.Host, err = hostName(); err != nil {
			return nil, nil, err
		}
	}
	if err := sandbox.KeepFromCores(); err != nil {
		return nil, nil, fmt.Errorf("a core dump would have the host's key: %w", err)
	}
	if f.broker.Key, err = agent.ReadKey(f.key); err != nil {
		return nil, nil, err
	}
	f.broker.Log = log
	b, err := agent.Dial(f.broker)
	if err != nil {
		return nil, nil, err
	}
	return b, b.Close, nil
}

// hostName is the first label of the host's name, if that can be a name in a fleet.
func hostName() (string, error) {
	full, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("%w; give the host's name: --name", err)
	}
	name, _, _ := strings.Cut(strings.ToLower(full), ".")
	if !wire.ValidName(name) {
		return "", fmt.Errorf("the host's name %q can't be its name in the fleet: expected 1 to %d of a-z, 0-9 and -; give another one: --name", full, wire.MaxName)
	}
	return name, nil
}

// localGateway is the Transport to the API of a gateway on this machine.
type localGateway struct{ client *api.Client }

// socketTime bounds a request.
const socketTime = 5 * time.Second

func (g *localGateway) Publish(ctx context.Context, m *fleet.HintMessage) error {
	ctx, cancel := context.WithTimeout(ctx, socketTime)
	defer cancel()
	_, err := api.Do[api.HintsTaken](ctx, g.client, http.MethodPost, api.HintsPath, m)
	return err
}

// Renewed: a gateway that has started again refuses connections meanwhile, or gets all hints within their lifetime.
func (g *localGateway) Renewed() bool { return false }

// agentView is what agent show prints as JSON.
type agentView struct {
	Devices []string     `json:"devices"`
	Hints   []fleet.Hint `json:"hints"`
	Left    agent.Left   `json:"left_out"`
}

func agentShowCommand() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "show [-o text|json]",
		Short: "Print the hints that agent run would publish now",
		Long: `One line for each hint: a QP of this host and an address that it may send from, and the QP that it is connected to, with the address of that one's host
if RDMA-CM knows it. Without, gateways take the hint where only one flow from the source goes to a QP of this number. The last lines say which connected
QPs have no hint.`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			kernel, err := rdmaKernel()
			if err != nil {
				return err
			}
			var v agentView
			err = agent.NewScanner(kernel, os.DirFS(infiniband), 0).Scan(func(s *agent.Snapshot) {
				for _, d := range s.Devices {
					v.Devices = append(v.Devices, d.Name)
				}
				v.Hints, v.Left = agent.Derive(s)
			})
			if err == nil && len(v.Devices) == 0 {
				err = errors.New("this host has no RDMA device in this network namespace; expected one: `rdma link` lists them")
			}
			if err != nil {
				return err
			}
			return v.print(c.OutOrStdout(), output)
		},
	}
	outputFlag(c, &output)
	return c
}

func (v *agentView) print(to io.Writer, output string) error {
	if output == "json" {
		return writeIndented(to, v)
	}
	w := newTable(to, "SOURCE\tSOURCE_QP\tDESTINATION\tDESTINATION_QP")
	for _, h := range v.Hints {
		destination := "-"
		if h.Destination.IsValid() {
			destination = h.Destination.String()
		}
		w.row(h.Source, h.SourceQP, destination, h.DestinationQP)
	}
	err := w.Flush()
	for _, left := range []struct {
		n   int
		why string
	}{
		{v.Left.Ambiguous, "another QP is connected to a QP of the same number, and RDMA-CM knows neither host"},
		{v.Left.NoAddress, "their port has no RoCEv2 address but link-local ones"},
		{v.Left.Local, "they are connected to this host"},
		{v.Left.TooMany, fmt.Sprintf("there are more than %d", agent.MaxHints)},
	} {
		if left.n > 0 && err == nil {
			_, err = fmt.Fprintf(to, "%d connected QPs have no hint: %s\n", left.n, left.why)
		}
	}
	return err
}
