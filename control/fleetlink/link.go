//go:build !nofleet

package fleetlink

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/cnpgate/cnpgate/fleet"
	"github.com/cnpgate/cnpgate/fleet/wire"
)

const tickEvery = 5 * time.Millisecond

// Link is a gateway's part in the fleet. Any goroutine may call its methods.
type Link struct {
	Options
	key      nkeys.KeyPair
	public   string
	trust    []fleet.Party
	server   *server.Server
	own      *nats.Conn   // where this gateway publishes
	conns    []*nats.Conn // own and, with embedded servers, those of the others
	urls     []string
	member   *fleet.Member
	in, out  *queue
	episodes *queue // that the stream has not confirmed yet
	do       chan func()
	begin    time.Time
	mutex    sync.Mutex
	errs     map[string]string // last error, by URL
	stream   bool              // the stream of episodes is there; only storeEpisodes uses it
}

// Open checks the configuration and reads its keys. It starts nothing.
func Open(o Options) (*Link, error) {
	l := &Link{Options: o, in: newQueue(), out: newQueue(), episodes: newQueue(), do: make(chan func(), 16), begin: time.Now(), errs: map[string]string{}}
	var err error
	if l.key, l.public, err = loadKey(o.Config.Key); err != nil {
		return nil, err
	}
	if l.trust, err = parties(o.Config, l.public); err != nil {
		return nil, err
	}
	trust, err := fleet.NewTrust(o.Config.Site, l.trust)
	if err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	if _, err := loadTLS(o.Config.TLS); err != nil {
		return nil, err
	}
	l.member = fleet.NewMember(fleet.Config{
		Site: o.Config.Site, Name: o.Config.Name, Version: o.Version, Trust: trust, Sign: l.key.Sign, Pairing: o.Pairing, Peers: o.Peers,
		Pairs: o.Config.Pairs, Started: time.Now().UnixNano(), Seed: o.Seed, Plane: o.Plane, Hints: o.Hints,
		Send:   func(subject string, data []byte) { l.out.put(message{subject, data}) },
		Answer: l.answer,
	})
	return l, nil
}

// answer answers a question of another gateway.
func (l *Link) answer(request []byte) []byte {
	var path string
	if l.Answer == nil || json.Unmarshal(request, &path) != nil {
		return []byte("null")
	}
	b := l.Answer(path)
	if len(b) > fleet.MaxAnswer || !json.Valid(b) {
		return []byte(`{"error":"the answer is too long to be sent to another gateway: filter it, or ask the gateway itself"}`)
	}
	return b
}

// Run takes part until the context ends. If the server or a connection can't be had, it tries again.
func (l *Link) Run(ctx context.Context) {
	var others sync.WaitGroup
	others.Go(func() { l.publish(ctx) })
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
			l.member.Tick(l.now())
		case <-l.in.ready:
			l.receive()
		case f := <-l.do:
			f()
		}
	}
	others.Wait()
}

func (l *Link) now() int64 { return int64(time.Since(l.begin)) + 1 }

// receive takes some messages, so that ticks aren't late.
func (l *Link) receive() {
	const batch = 64
	for range batch {
		m, ok := l.in.take()
		if !ok {
			return
		}
		l.member.Receive(m.subject, m.data, l.now())
	}
	select {
	case l.in.ready <- struct{}{}:
	default:
	}
}

// publish connects, and sends what is in the queue.
func (l *Link) publish(ctx context.Context) {
	defer l.close()
	for !l.connect() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(2 * time.Second):
		}
	}
	var stream sync.WaitGroup
	stream.Go(func() { l.storeEpisodes(ctx) })
	defer stream.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.out.ready:
			for m, ok := l.out.take(); ok && ctx.Err() == nil; m, ok = l.out.take() {
				l.send(m)
			}
			_ = l.own.FlushTimeout(time.Second) // an error means that the server is slow or gone: meanwhile the queue drops what is oldest
		}
	}
}

// send publishes a message at the own server.
func (l *Link) send(m message) {
	if m.subject == fleet.Subject(l.Config.Site, l.Config.Name, wire.Episode) {
		l.episodes.put(m)
		return
	}
	if err := l.own.Publish(m.subject, m.data); err != nil {
		l.note(l.urls[0], err)
	}
}

// connect starts the embedded server, if there is one, and connects.
func (l *Link) connect() bool {
	c := l.Config
	t, err := loadTLS(c.TLS)
	if err == nil && c.Embedded {
		l.server, err = startServer(c, t)
	}
	if err != nil {
		l.note("", err)
		l.Log.Error().Err(err).Msg("The gateway can't take part in its fleet. Forwarding continues, and another attempt follows.")
		return false
	}
	options := []nats.Option{
		nats.Name("cnpgate " + c.Name), nats.Nkey(l.public, l.key.Sign), nats.NoEcho(), nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true),
		nats.ReconnectWait(500 * time.Millisecond), nats.ReconnectJitter(500*time.Millisecond, time.Second), nats.ReconnectBufSize(-1),
		nats.PingInterval(5 * time.Second), nats.MaxPingsOutstanding(2), nats.Timeout(2 * time.Second), nats.FlusherTimeout(time.Second),
	}
	if t != nil {
		options = append(options, nats.Secure(t))
	}
	targets := []string{""}
	if c.Embedded {
		targets = append(targets, c.Peers...)
	} else {
		targets = []string{strings.Join(c.Servers, ",")}
	}
	for _, url := range targets {
		own := append([]nats.Option{}, options...)
		if url == "" {
			url = l.server.ClientURL()
			own = append(own, nats.InProcessServer(l.server))
			if t != nil { // within the process there is nobody else, and the listening address is in no certificate
				inside := t.Clone()
				inside.InsecureSkipVerify = true
				own = append(own, nats.Secure(inside))
			}
		}
		if err := l.dial(url, own); err != nil {
			l.note(url, err)
			l.Log.Error().Err(err).Str("url", url).Msg("The gateway can't connect to a server of its fleet.")
			l.close()
			return false
		}
	}
	l.mutex.Lock()
	l.own = l.conns[0]
	l.mutex.Unlock()
	return true
}

// dial connects to a server, and subscribes to what concerns this gateway. nats.go connects again, with jitter, whenever the connection ends.
func (l *Link) dial(url string, options []nats.Option) error {
	options = append(options,
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { l.note(url, err) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { l.note(url, err) }))
	c, err := nats.Connect(url, options...)
	if err != nil {
		return err
	}
	l.mutex.Lock()
	l.conns, l.urls = append(l.conns, c), append(l.urls, url)
	l.mutex.Unlock()
	site := l.Config.Site
	subjects := []string{fleet.SubjectTo(site, "*", wire.Flows, l.Config.Name), fleet.SubjectTo(site, "*", wire.Snapshot, l.Config.Name),
		fleet.SubjectTo(site, "*", wire.Ask, l.Config.Name), fleet.SubjectTo(site, "*", wire.Answer, l.Config.Name)}
	for _, k := range [...]wire.Kind{wire.Status, wire.Want, wire.Pairs, wire.Notified, wire.Arrivals, wire.Learned, wire.Hints} {
		subjects = append(subjects, fleet.Subject(site, "*", k))
	}
	for _, subject := range subjects {
		s, err := c.Subscribe(subject, func(m *nats.Msg) { l.in.put(message{m.Subject, m.Data}) })
		if err != nil {
			return err
		}
		if err := s.SetPendingLimits(queueMessages, queueBytes); err != nil {
			return err
		}
	}
	return nil
}

// close ends the connections and the server.
func (l *Link) close() {
	l.mutex.Lock()
	conns := l.conns
	l.conns, l.urls, l.own = nil, nil, nil
	l.mutex.Unlock()
	for _, c := range conns {
		c.Close()
	}
	if l.server != nil {
		l.server.Shutdown()
		l.server = nil
	}
}

func (l *Link) note(url string, err error) {
	if err == nil {
		return
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.errs[url] = err.Error(); len(l.errs) > 64 {
		clear(l.errs)
	}
}

// ask runs a function on the member's goroutine, and reports whether it has run in time.
func (l *Link) ask(f func()) bool {
	done := make(chan struct{})
	late := time.After(answerTime)
	select {
	case l.do <- func() { f(); close(done) }:
	case <-late:
		return false
	}
	select {
	case <-done:
		return true
	case <-late:
		return false
	}
}

// Question asks the other gateways for a path of the API, and returns their answers by name.
func (l *Link) Question(path string) map[string]json.RawMessage {
	answers := make(chan map[string]json.RawMessage, 1)
	request, err := json.Marshal(path)
	if err != nil || !l.ask(func() {
		l.member.Question(request, l.now(), int64(answerTime), func(a map[string]json.RawMessage) { answers <- a })
	}) {
		return nil
	}
	select {
	case a := <-answers:
		return a
	case <-time.After(2 * answerTime):
		return nil
	}
}

// Publish stores an episode in the stream of all gateways.
func (l *Link) Publish(episode []byte) {
	select {
	case l.do <- func() { l.member.Broadcast(wire.Episode, episode) }:
	default: // the member is busy for longer than 16 such: the episode stays in this gateway's own list only
	}
}
