// Package ospfapi announces and learns the proxies of senders by OSPFv2 (draft-xiao-proxy 5.2), through the API server of FRR's ospfd (`ospfd -a`). So
// cnpgate needs no OSPF of its own. A client originates Extended Prefix Opaque LSAs of AS scope with the P-flag, and reads those of other
// routers. docs/proxy-igp.md says how to run it.
package ospfapi

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control/advertise"
	"github.com/cnpgate/cnpgate/internal/igp/ospfv2"
	"github.com/cnpgate/cnpgate/proxy"
)

// Client announces and learns proxies.
type Client struct {
	Server   netip.AddrPort // the API: an IPv4 address
	Own      netip.Addr     // this gateway's address as a proxy; the zero Addr if it is none
	Announce []netip.Prefix // IPv4 prefixes whose proxy it is
	// Learned gets all senders that are known, in the order of their prefixes, whenever they have changed: from one goroutine, the caller of Run.
	Learned func([]proxy.Sender) error
	Accepts func(netip.Prefix) bool // whether a prefix may be learned
	Note    func(error)             // gets nil when there is a connection to ospfd, and the reason when there is none
	Log     zerolog.Logger

	last  []proxy.Sender // what Learned got last
	again time.Duration  // until LSAs that couldn't be originated are tried again; 0 for retryOriginate
}

const (
	firstRetry = time.Second // after a connection failed; then twice as long each time
	lastRetry  = 30 * time.Second

	retryOriginate = 10 * time.Second
)

// Run works until the context ends. Then it withdraws what it has announced, and what Learned got. While ospfd isn't there it tries to connect, and
// Learned gets no senders: whether their proxies still exist is not known.
func (c *Client) Run(ctx context.Context) error {
	wanted, err := c.wanted()
	if err != nil {
		return err
	}
	defer c.learned(nil)
	retry := firstRetry
	for ctx.Err() == nil {
		started, err := c.session(ctx, wanted)
		if ctx.Err() != nil {
			break
		}
		c.learned(nil)
		if started {
			retry = firstRetry
		}
		c.Note(err)
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		}
		retry = min(2*retry, lastRetry)
	}
	return nil
}

// wanted has the LSAs to originate, by opaque ID.
func (c *Client) wanted() (map[uint32][]byte, error) {
	if len(c.Announce) == 0 {
		return nil, nil
	}
	if !c.Own.IsValid() {
		return nil, errors.New("prefixes are announced, but the gateway has no address as their proxy")
	}
	return announcement(c.Own, c.Announce)
}

// session connects and works until the connection or the context ends. started says whether ospfd has accepted all requests.
func (c *Client) session(ctx context.Context, wanted map[uint32][]byte) (started bool, err error) {
	s, err := dial(ctx, c.Server, c.Accepts)
	if err != nil {
		return false, err
	}
	defer s.close()
	if err = s.start(ctx, len(wanted) > 0); err != nil {
		return false, err
	}
	c.Log.Info().Stringer("ospfd", c.Server).Int("prefixes", len(c.Announce)).Msg("The gateway is connected to ospfd.")
	c.Note(nil)
	err = c.work(ctx, s, wanted)
	if err == nil {
		c.withdraw(s)
	}
	return true, err
}

// work originates LSAs and passes on what is learned. It returns nil when the context ends.
func (c *Client) work(ctx context.Context, s *session, wanted map[uint32][]byte) error {
	tick := time.NewTicker(cmp.Or(c.again, retryOriginate))
	defer tick.Stop()
	settling := advertise.NewSettling()
	defer settling.Stop()
	signal(s.ready)
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-s.ended:
			return err
		case <-s.ready:
		case <-tick.C:
		case <-s.changed:
			settling.Change()
			continue
		case <-settling.C:
			settling.Used()
			c.publish(s)
			continue
		}
		if err := c.announce(s, wanted); err != nil {
			return err
		}
	}
}

// announce originates the LSAs that ospfd doesn't have, and deletes others that a gateway before this one has left.
func (c *Client) announce(s *session, wanted map[uint32][]byte) error {
	if len(wanted) == 0 {
		return nil // nothing is registered: the LSAs belong to another client
	}
	s.mutex.Lock()
	own := maps.Clone(s.database.own)
	s.mutex.Unlock()
	for _, id := range slices.Sorted(maps.Keys(wanted)) {
		if s.originated[id] && own[id] {
			continue
		}
		err := s.request(originateRequest, wanted[id])
		if errors.Is(err, notReady) {
			c.Log.Debug().Err(err).Msg("OSPF can't announce proxies yet.")
			return nil
		}
		if err != nil {
			return err
		}
		s.originated[id] = true
	}
	for id := range own {
		if wanted[id] == nil {
			if err := c.remove(s, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// remove deletes an LSA; that there is none is no error.
func (c *Client) remove(s *session, id uint32) error {
	err := s.request(deleteRequest, remove(ospfv2.ASScope, ospfv2.OpaqueType, id))
	if errors.Is(err, noSuchLSA) {
		return nil
	}
	return err
}

// withdraw deletes all LSAs that the client has originated.
func (c *Client) withdraw(s *session) {
	for _, id := range slices.Sorted(maps.Keys(s.originated)) {
		if err := c.remove(s, id); err != nil {
			c.Log.Warn().Err(err).Msg("OSPF has not withdrawn the proxies it announced. ospfd withdraws them when the connection ends.")
			return
		}
	}
}

// publish passes on the senders if they have changed.
func (c *Client) publish(s *session) {
	s.mutex.Lock()
	senders := s.database.senders(advertise.Best{Own: c.Own, Accepts: c.Accepts})
	ignored := s.ignored
	s.ignored = nil
	s.mutex.Unlock()
	if ignored != nil {
		c.Log.Warn().Err(ignored).Msg("OSPF ignores an LSA that may announce proxies.")
	}
	c.learned(senders)
}

// learned passes on senders if they aren't those that were passed on last.
func (c *Client) learned(senders []proxy.Sender) {
	if slices.Equal(senders, c.last) {
		return
	}
	if err := c.Learned(senders); err != nil {
		c.Log.Error().Err(err).Msg("The proxies that OSPF has learned are not used.")
		return
	}
	c.Log.Info().Int("prefixes", len(senders)).Msg("OSPF has learned other proxies.")
	c.last = senders
}
