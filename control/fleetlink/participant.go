//go:build !nofleet

package fleetlink

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
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

const (
	tickEvery = 5 * time.Millisecond
	lookEvery = time.Second // at the connections
)

// Participant is a gateway's part in the fleet. Any goroutine may call its methods.
type Participant struct {
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
func Open(o Options) (*Participant, error) {
	p := &Participant{Options: o, in: newQueue(), out: newQueue(), episodes: newQueue(), do: make(chan func(), 16), begin: time.Now(), errs: map[string]string{}}
	var err error
	if p.key, p.public, err = loadKey(o.Config.Key); err != nil {
		return nil, err
	}
	if p.trust, err = parties(o.Config, p.public); err != nil {
		return nil, err
	}
	trust, err := fleet.NewTrust(o.Config.Site, p.trust)
	if err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	if _, err := loadTLS(o.Config.TLS); err != nil {
		return nil, err
	}
	p.member = fleet.NewMember(fleet.Config{
		Site: o.Config.Site, Name: o.Config.Name, Version: o.Version, Trust: trust, Sign: p.key.Sign, Pairing: o.Pairing, Peers: o.Peers,
		Pairs: o.Config.Pairs, Started: time.Now().UnixNano(), Seed: o.Seed, Plane: o.Plane, Hints: o.Hints,
		Send:   func(subject string, data []byte) { p.out.put(message{subject, data}) },
		Answer: p.answer,
	})
	return p, nil
}

// answer answers a question of another gateway.
func (p *Participant) answer(request []byte) []byte {
	var path string
	if p.Answer == nil || json.Unmarshal(request, &path) != nil {
		return []byte("null")
	}
	b := p.Answer(path)
	if len(b) > fleet.MaxAnswer || !json.Valid(b) {
		return []byte(`{"error":"the answer is too long to be sent to another gateway: filter it, or ask the gateway itself"}`)
	}
	return b
}

// Run takes part until the context ends. If the server or a connection can't be had, it tries again.
func (p *Participant) Run(ctx context.Context) {
	var others sync.WaitGroup
	others.Go(func() { p.publish(ctx) })
	tick, look := time.NewTicker(tickEvery), time.NewTicker(lookEvery)
	defer tick.Stop()
	defer look.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
			p.member.Tick(p.now())
		case <-look.C:
			p.Note(p.down())
		case <-p.in.ready:
			p.receive()
		case f := <-p.do:
			f()
		}
	}
	others.Wait()
}

func (p *Participant) now() int64 { return int64(time.Since(p.begin)) + 1 }

// down is an error that says which connections are not up; nil if all are.
func (p *Participant) down() error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if len(p.conns) == 0 {
		return fmt.Errorf("the gateway can't take part in its fleet: %s", p.errs[""])
	}
	var errs []error
	for i, c := range p.conns {
		if c.Status() != nats.CONNECTED {
			errs = append(errs, fmt.Errorf("there is no connection to %s: %s", p.urls[i], cmp.Or(p.errs[p.urls[i]], "no answer yet")))
		}
	}
	return errors.Join(errs...)
}

// receive takes some messages, so that ticks aren't late.
func (p *Participant) receive() {
	const batch = 64
	for range batch {
		m, ok := p.in.take()
		if !ok {
			return
		}
		p.member.Receive(m.subject, m.data, p.now())
	}
	select {
	case p.in.ready <- struct{}{}:
	default:
	}
}

// publish connects, and sends what is in the queue.
func (p *Participant) publish(ctx context.Context) {
	defer p.close()
	for !p.connect() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(2 * time.Second):
		}
	}
	var stream sync.WaitGroup
	stream.Go(func() { p.storeEpisodes(ctx) })
	defer stream.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.out.ready:
			for m, ok := p.out.take(); ok && ctx.Err() == nil; m, ok = p.out.take() {
				p.send(m)
			}
			_ = p.own.FlushTimeout(time.Second) // an error means that the server is slow or gone: meanwhile the queue drops what is oldest
		}
	}
}

// send publishes a message at the own server.
func (p *Participant) send(m message) {
	if m.subject == fleet.Subject(p.Config.Site, p.Config.Name, wire.Episode) {
		p.episodes.put(m)
		return
	}
	if err := p.own.Publish(m.subject, m.data); err != nil {
		p.note(p.urls[0], err)
	}
}

// connect starts the embedded server, if there is one, and connects.
func (p *Participant) connect() bool {
	c := p.Config
	t, err := loadTLS(c.TLS)
	if err == nil && c.Embedded {
		p.server, err = startServer(c, t)
	}
	if err != nil {
		p.note("", err)
		return false
	}
	options := []nats.Option{
		nats.Name("cnpgate " + c.Name), nats.Nkey(p.public, p.key.Sign), nats.NoEcho(), nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true),
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
			url = p.server.ClientURL()
			own = append(own, nats.InProcessServer(p.server))
			if t != nil { // within the process there is nobody else, and the listening address is in no certificate
				inside := t.Clone()
				inside.InsecureSkipVerify = true
				own = append(own, nats.Secure(inside))
			}
		}
		if err := p.dial(url, own); err != nil {
			p.note("", fmt.Errorf("%s: %w", url, err))
			p.close()
			return false
		}
	}
	p.mutex.Lock()
	p.own = p.conns[0]
	p.mutex.Unlock()
	return true
}

// dial connects to a server, and subscribes to what concerns this gateway. nats.go connects again, with jitter, whenever the connection ends.
func (p *Participant) dial(url string, options []nats.Option) error {
	options = append(options,
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { p.note(url, err) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { p.note(url, err) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { p.note(url, err) }))
	c, err := nats.Connect(url, options...)
	if err != nil {
		return err
	}
	p.mutex.Lock()
	p.conns, p.urls = append(p.conns, c), append(p.urls, url)
	p.mutex.Unlock()
	site := p.Config.Site
	subjects := []string{fleet.SubjectTo(site, "*", wire.Flows, p.Config.Name), fleet.SubjectTo(site, "*", wire.Snapshot, p.Config.Name),
		fleet.SubjectTo(site, "*", wire.Ask, p.Config.Name), fleet.SubjectTo(site, "*", wire.Answer, p.Config.Name)}
	for _, k := range [...]wire.Kind{wire.Status, wire.Want, wire.Pairs, wire.Notified, wire.Arrivals, wire.Learned, wire.Hints} {
		subjects = append(subjects, fleet.Subject(site, "*", k))
	}
	for _, subject := range subjects {
		s, err := c.Subscribe(subject, func(m *nats.Msg) { p.in.put(message{m.Subject, m.Data}) })
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
func (p *Participant) close() {
	p.mutex.Lock()
	conns := p.conns
	p.conns, p.urls, p.own = nil, nil, nil
	p.mutex.Unlock()
	for _, c := range conns {
		c.Close()
	}
	if p.server != nil {
		p.server.Shutdown()
		p.server = nil
	}
}

func (p *Participant) note(url string, err error) {
	if err == nil {
		return
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.errs[url] = err.Error(); len(p.errs) > 64 {
		clear(p.errs)
	}
}

// lastError is the last error of a connection, "" without. The caller holds the mutex.
func (p *Participant) lastError(i int) string {
	text := p.errs[p.urls[i]]
	if err := p.conns[i].LastError(); text == "" && err != nil {
		text = err.Error()
	}
	return text
}

// ask runs a function on the member's goroutine, and reports whether it has run in time.
func (p *Participant) ask(f func()) bool {
	done := make(chan struct{})
	late := time.After(answerTime)
	select {
	case p.do <- func() { f(); close(done) }:
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
func (p *Participant) Question(path string) map[string]json.RawMessage {
	answers := make(chan map[string]json.RawMessage, 1)
	request, err := json.Marshal(path)
	if err != nil || !p.ask(func() {
		p.member.Question(request, p.now(), int64(answerTime), func(a map[string]json.RawMessage) { answers <- a })
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
func (p *Participant) Publish(episode []byte) {
	select {
	case p.do <- func() { p.member.Broadcast(wire.Episode, episode) }:
	default: // the member is busy for longer than 16 such: the episode stays in this gateway's own list only
	}
}
