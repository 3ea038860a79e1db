package fleet

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/cnpgate/cnpgate/fleet/wire"
)

// Party is a gateway or a host that may take part.
type Party struct {
	Name string
	Key  ed25519.PublicKey // of its nkey
	// Addresses are the prefixes of a host's own addresses: it can speak for those only. A gateway has none.
	Addresses []netip.Prefix
}

// Host reports whether the party is a host.
func (p *Party) Host() bool { return len(p.Addresses) > 0 }

// Trust is who may take part in a site's fleet, by name.
type Trust struct {
	site    string
	parties map[string]*Party
	last    map[stream]heard // of each party and kind, once it was heard: a broker keeps the order only within a subject
	checks  map[string]checks
}

// stream is the messages of a kind of a party.
type stream struct {
	name string
	kind wire.Kind
}

// heard is the last message of a stream.
type heard struct {
	sequence uint64
	at       int64 // ns of the receiver's clock
}

// maxChecks is the number of signatures of a sender that are checked in a second: a flood of forged messages costs no more.
const maxChecks = 2000

type checks struct {
	second int64
	n      int
}

// forget is how long a stream must be silent until its sequence numbers may begin anew: its clock may have been set back meanwhile, ns.
const forget = 30e9

// Reasons for refusing a message, besides those of wire.
var (
	ErrSubject  = errors.New("the subject is not the sender's or not the kind's")
	ErrStranger = errors.New("the sender is not in the configuration")
	ErrReplay   = errors.New("the sequence number is not above the last one's")
	ErrRole     = errors.New("a host sent what only gateways may send, or the reverse")
	ErrTooMany  = errors.New("more messages a second than the signatures of which are checked")
	ErrAddress  = errors.New("the host has spoken for an address that is not its own")
)

// NewTrust returns who may take part. Names and keys must be unique.
func NewTrust(site string, parties []Party) (*Trust, error) {
	if !wire.ValidName(site) {
		return nil, fmt.Errorf("site %q: %w", site, wire.ErrName)
	}
	t := &Trust{site: site, parties: map[string]*Party{}, last: map[stream]heard{}, checks: map[string]checks{}}
	for i := range parties {
		p := &parties[i]
		if !wire.ValidName(p.Name) {
			return nil, fmt.Errorf("party %q: %w", p.Name, wire.ErrName)
		}
		if len(p.Key) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("party %s: a key of %d bytes, expected %d", p.Name, len(p.Key), ed25519.PublicKeySize)
		}
		for _, o := range t.parties {
			if o.Name == p.Name || o.Key.Equal(p.Key) {
				return nil, fmt.Errorf("parties %s and %s have the same name or key: each needs its own", o.Name, p.Name)
			}
		}
		t.parties[p.Name] = p
	}
	return t, nil
}

// Accept checks a message: its subject is the sender's, the sender is known, may send the kind, has signed it, and didn't send it before.
// It returns the header and the body, or why the message is refused. Nothing of a refused message changes any state.
func (t *Trust) Accept(subject string, message []byte, now int64) (h wire.Header, body []byte, to string, err error) {
	if h, body, err = wire.Open(message); err != nil {
		return h, nil, "", err
	}
	sender, kind, to, ok := parse(t.site, subject)
	p := t.parties[h.Sender]
	last, known := t.last[stream{h.Sender, h.Kind}]
	switch {
	case !ok || sender != h.Sender || kind != h.Kind.String():
		return h, nil, "", ErrSubject
	case p == nil:
		return h, nil, "", ErrStranger
	case p.Host() != (h.Kind == wire.Hints):
		return h, nil, "", ErrRole
	case known && h.Sequence <= last.sequence && now-last.at < forget:
		return h, nil, "", ErrReplay
	}
	c := t.checks[h.Sender]
	if second := now / 1e9; c.second != second {
		c = checks{second: second}
	}
	if c.n++; c.n > maxChecks {
		return h, nil, "", ErrTooMany
	}
	t.checks[h.Sender] = c
	if err := wire.Verify(t.site, message, p.Key); err != nil {
		return h, nil, "", err
	}
	t.last[stream{h.Sender, h.Kind}] = heard{h.Sequence, now}
	return h, body, to, nil
}

// Owns reports whether an address is a host's own.
func (t *Trust) Owns(host string, a netip.Addr) bool {
	p := t.parties[host]
	return p != nil && slices.ContainsFunc(p.Addresses, func(of netip.Prefix) bool { return of.Contains(a.Unmap()) })
}
