//go:build !nofleet

package fleetlink

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/cnpgate/cnpgate/fleet"
	"github.com/cnpgate/cnpgate/fleet/wire"
)

// The stream has the episodes of all gateways, signed as they were sent.

func (p *Participant) streamName() string { return "cnpgate-episodes-" + p.Config.Site }

// makeStream makes the stream of episodes, unless it exists. An external cluster keeps it on as many servers as it has, at most three.
func (p *Participant) makeStream() {
	p.mutex.Lock()
	c := p.own
	p.mutex.Unlock()
	if p.stream || c == nil || p.Config.Embedded && p.Config.Episodes.Store == "" {
		return
	}
	js, err := c.JetStream(nats.MaxWait(2 * time.Second))
	if err != nil {
		p.note("jetstream", err)
		return
	}
	config := nats.StreamConfig{
		Name: p.streamName(), Subjects: []string{fleet.Subject(p.Config.Site, "*", wire.Episode)}, Discard: nats.DiscardOld,
		MaxAge: p.Config.Episodes.Keep, MaxBytes: int64(p.Config.Episodes.MaxBytes), MaxMsgSize: wire.MaxMessage, Replicas: 1,
	}
	if !p.Config.Embedded {
		config.Replicas = min(len(p.Config.Servers), 3) | 1
	}
	if _, err = js.AddStream(&config); errors.Is(err, nats.ErrStreamNameAlreadyInUse) {
		_, err = js.UpdateStream(&config)
	}
	if err != nil {
		p.note("jetstream", err)
		return
	}
	p.stream = true
}

// storeEpisodes stores this gateway's episodes until the context ends. Each is sent again until the stream has confirmed it, or storeFor has
// passed. With embedded servers it goes to those of the others, too, so that each has the stream of all.
func (p *Participant) storeEpisodes(ctx context.Context) {
	again := time.NewTicker(storeAgain)
	defer again.Stop()
	for ctx.Err() == nil {
		p.makeStream()
		select {
		case <-ctx.Done():
		case <-again.C:
		case <-p.episodes.ready:
			for m, ok := p.episodes.take(); ok; m, ok = p.episodes.take() {
				for _, c := range p.conns[1:] {
					_ = c.Publish(m.subject, m.data)
				}
				p.store(ctx, m)
			}
		}
	}
}

const (
	storeAgain = time.Second
	storeFor   = time.Minute
)

// store stores an episode in the own server's stream, or that of the cluster.
func (p *Participant) store(ctx context.Context, m message) {
	if p.Config.Embedded && p.Config.Episodes.Store == "" {
		return
	}
	id := sha256.Sum256(m.data)
	for range storeFor / storeAgain {
		p.makeStream()
		if p.stream {
			if js, err := p.conns[0].JetStream(nats.MaxWait(2 * time.Second)); err == nil {
				if _, err = js.Publish(m.subject, m.data, nats.MsgId(hex.EncodeToString(id[:]))); err == nil {
					return
				}
				p.note("jetstream", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(storeAgain):
		}
	}
}

// mostEpisodes bounds the answer of Episodes.
const mostEpisodes = 256

// Episodes returns the latest episodes of all gateways, the oldest first.
func (p *Participant) Episodes() ([]Episode, error) {
	p.mutex.Lock()
	c := p.own
	p.mutex.Unlock()
	if c == nil || !c.IsConnected() {
		return nil, errors.New("no connection to the fleet's server; `cnpgate show fleet` shows why")
	}
	js, err := c.JetStream(nats.MaxWait(2 * time.Second))
	if err != nil {
		return nil, err
	}
	info, err := js.StreamInfo(p.streamName())
	if err != nil {
		return nil, errors.New("no stream of episodes: give fleet.episodes.store, or enable JetStream in the cluster (" + err.Error() + ")")
	}
	keys := map[string]*fleet.Party{}
	for i := range p.trust {
		keys[p.trust[i].Name] = &p.trust[i]
	}
	all := []Episode{}
	first := info.State.FirstSeq
	if n := info.State.LastSeq; n >= mostEpisodes {
		first = max(first, n-mostEpisodes+1)
	}
	seen := map[uint64]bool{}
	for seq := first; seq <= info.State.LastSeq; seq++ {
		m, err := js.GetMsg(p.streamName(), seq)
		if err != nil {
			continue // it has aged meanwhile
		}
		h, body, err := wire.Open(m.Data)
		if of := keys[h.Sender]; err != nil || h.Kind != wire.Episode || of == nil || seen[h.Sequence] || wire.Verify(p.Config.Site, m.Data, of.Key) != nil {
			continue
		}
		seen[h.Sequence] = true
		all = append(all, Episode{h.Sender, append([]byte(nil), body...)})
	}
	return all, nil
}
