package ospfapi

import (
	"context"
	"io"
	"net/netip"
	"time"

	"github.com/cnpgate/cnpgate/control/advertise"
	"github.com/cnpgate/cnpgate/internal/igp/ospf"
	"github.com/cnpgate/cnpgate/proxy"
)

// ReadMessage, Append and the bodies, for a server in tests.
func ReadMessage(r io.Reader) (kind uint8, sequence uint32, body []byte, err error) {
	m, err := readMessage(r)
	return m.kind, m.sequence, m.body, err
}

// Append encodes a message.
func Append(kind uint8, sequence uint32, body []byte) []byte {
	return (&message{kind, sequence, body}).append(nil)
}

// Database is the database, for tests without a server.
type Database struct{ *database }

// NewDatabase makes one that accepts all prefixes, NewDatabaseOf one that accepts some.
func NewDatabase() Database { return NewDatabaseOf(func(netip.Prefix) bool { return true }) }

func NewDatabaseOf(accepts func(netip.Prefix) bool) Database { return Database{newDatabase(accepts)} }

// Update applies an LSA in area 0, or at a place.
func (d Database) Update(l ospf.LSA, originated, present bool, where ...netip.Addr) (string, error) {
	c := change{lsa: l, originated: originated}
	copy(c.where[:], where)
	e, err := d.update(&c, present)
	return [...]string{nothing: "nothing", changed: "changed", lost: "lost", full: "full"}[e], err
}

// Notice handles a notice of a server, whatever it is.
func (d Database) Notice(kind uint8, body []byte) error {
	s := session{database: d.database, changed: make(chan struct{}, 1), ready: make(chan struct{}, 1)}
	return s.notice(&message{kind: kind, body: body})
}

// Work works with a database that another goroutine says has changed, until the context ends. There is no server.
func (c *Client) Work(ctx context.Context, d Database, changed chan struct{}) error {
	return c.work(ctx, &session{database: d.database, changed: changed, ready: make(chan struct{}, 1)}, nil)
}

// Senders returns the senders.
func (d Database) Senders(own netip.Addr) []proxy.Sender {
	return d.senders(advertise.Best{Own: own, Accepts: func(netip.Prefix) bool { return true }})
}

// NeverAgain lets a client originate LSAs only when something happens, so that a test knows which requests come.
func (c *Client) NeverAgain() { c.again = time.Hour }

// Reach notes reachable routers.
func (d Database) Reach(added, removed []netip.Addr) { d.reach(added, removed) }

// Prefixes is how many prefixes it has.
func (d Database) Prefixes() int { return d.prefixes }

// Routers is how many routers are reachable.
func (d Database) Routers() int { return len(d.reachable) }

// LSAs is how many LSAs it has.
func (d Database) LSAs() int { return len(d.lsas) }

// How many it takes.
const (
	MaxPrefixes = maxPrefixes
	MaxRouters  = maxRouters
)
