package agent

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/fleet"
	"github.com/cnpgate/cnpgate/fleet/wire"
)

// BrokerOptions are the parameters of Dial.
type BrokerOptions struct {
	Site, Host string // names; see wire.ValidName
	Servers    []string
	CA         string        // file with the certificates that a server's must be signed by; empty: the system's
	Cert       string        // file with the host's certificate, for servers that ask for one; empty: none
	CertKey    string        // file with its private key
	Key        nkeys.KeyPair // signs the messages, and logs in to the broker
	Log        zerolog.Logger
}

// Broker is the Transport to a broker. The broker need not be there yet.
type Broker struct {
	options  BrokerOptions
	conn     *nats.Conn
	subject  string
	sequence uint64
	renewed  atomic.Bool
	failed   string // the last error that was logged; of the client's callbacks, which come one at a time
}

// errNotConnected is why Publish fails while there is no broker.
var errNotConnected = errors.New("not connected to a broker")

// Dial begins to connect to a broker, and goes on trying until Close.
func Dial(o BrokerOptions) (*Broker, error) {
	for _, name := range []string{o.Site, o.Host} {
		if !wire.ValidName(name) {
			return nil, fmt.Errorf("name %q: %w: expected 1 to %d of a-z, 0-9 and -", name, wire.ErrName, wire.MaxName)
		}
	}
	b := &Broker{options: o, subject: fleet.Subject(o.Site, o.Host, wire.Hints)}
	public, err := o.Key.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("the host's key: %w", err)
	}
	settings := []nats.Option{
		nats.Name("cnpgate agent " + o.Host), nats.Nkey(public, o.Key.Sign),
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.CustomReconnectDelay(reconnectDelay), nats.IgnoreAuthErrorAbort(),
		nats.ReconnectBufSize(-1), // what can't be sent now is repeated later anyway
		nats.NoEcho(), nats.Timeout(5 * time.Second), nats.PingInterval(10 * time.Second), nats.MaxPingsOutstanding(2), nats.FlusherTimeout(5 * time.Second),
		nats.ConnectHandler(func(c *nats.Conn) { b.connected(c) }), nats.ReconnectHandler(func(c *nats.Conn) { b.connected(c) }),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { b.unreachable(err) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			o.Log.Warn().Err(err).Msg("The connection to the broker is lost.")
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			o.Log.Warn().Err(err).Msg("The broker refuses something: it must know the host's key, and let it publish below " + fleet.MayPublish(o.Site, o.Host) + ".")
		}),
	}
	if o.CA != "" {
		settings = append(settings, nats.RootCAs(o.CA))
	}
	if o.Cert != "" {
		settings = append(settings, nats.ClientCert(o.Cert, o.CertKey))
	}
	if b.conn, err = nats.Connect(strings.Join(o.Servers, ","), settings...); err != nil {
		return nil, fmt.Errorf("broker %v: %w", o.Servers, err)
	}
	return b, nil
}

// reconnectDelay is the time between two attempts to connect to all brokers.
func reconnectDelay(attempts int) time.Duration {
	d := min(firstRetry<<min(attempts, 10), lastRetry)
	return d/2 + rand.N(d/2)
}

// unreachable logs why there is no connection, once for each reason.
func (b *Broker) unreachable(err error) {
	if text := err.Error(); text != b.failed {
		b.failed = text
		b.options.Log.Warn().Err(err).Msg("No broker can be reached. The agent goes on trying, at most every 30 s.")
	}
}

func (b *Broker) connected(c *nats.Conn) {
	b.renewed.Store(true)
	b.failed = ""
	b.options.Log.Info().Str("server", c.ConnectedUrlRedacted()).Msg("Connected to the broker.")
}

// Publish signs and sends a message.
func (b *Broker) Publish(_ context.Context, m *fleet.HintMessage) error {
	if !b.conn.IsConnected() {
		if err := b.conn.LastError(); err != nil {
			return fmt.Errorf("%w: %w", errNotConnected, err)
		}
		return errNotConnected
	}
	body, err := m.Encode()
	if err != nil {
		return err
	}
	now := time.Now().UnixNano()
	b.sequence = max(b.sequence+1, uint64(now))
	sealed, err := wire.Seal(b.options.Site, wire.Header{Kind: wire.Hints, Sender: b.options.Host, Sequence: b.sequence, Time: now}, body, b.options.Key.Sign)
	if err != nil {
		return err
	}
	return b.conn.Publish(b.subject, sealed)
}

// Renewed reports whether there is another connection than at the last call.
func (b *Broker) Renewed() bool { return b.renewed.Swap(false) }

// Close sends what is under way, and ends the connection.
func (b *Broker) Close() {
	_ = b.conn.FlushTimeout(time.Second) // else the hints are repeated by the next agent
	b.conn.Close()
}
