package fleet

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/fleet/wire"
)

type party struct {
	Party
	private ed25519.PrivateKey
}

func makeParty(name string, seed byte, own ...string) party {
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
	p := party{Party{Name: name, Key: private.Public().(ed25519.PublicKey)}, private}
	for _, a := range own {
		p.Addresses = append(p.Addresses, netip.MustParsePrefix(a))
	}
	return p
}

func (p *party) seal(t *testing.T, h wire.Header, body string) []byte {
	t.Helper()
	b, err := wire.Seal("dc", h, []byte(body), func(b []byte) ([]byte, error) { return ed25519.Sign(p.private, b), nil })
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestAccept: a message counts only if its sender may send it, has signed it, and has not sent it before.
func TestAccept(t *testing.T) {
	gw1, gw2, host, stranger := makeParty("gw1", 1), makeParty("gw2", 2), makeParty("h1", 3, "10.0.0.1/32"), makeParty("gw3", 4)
	trust, err := NewTrust("dc", []Party{gw1.Party, gw2.Party, host.Party})
	if err != nil {
		t.Fatal(err)
	}
	h := func(k wire.Kind, sender string, sequence uint64) wire.Header {
		return wire.Header{Kind: k, Sender: sender, Sequence: sequence}
	}
	for _, c := range []struct {
		what, subject string
		message       []byte
		now           int64
		want          error
	}{
		{"good", "cnpgate.dc.gw1.status", gw1.seal(t, h(wire.Status, "gw1", 5), ""), 0, nil},
		{"again", "cnpgate.dc.gw1.status", gw1.seal(t, h(wire.Status, "gw1", 5), ""), 1, ErrReplay},
		{"older", "cnpgate.dc.gw1.status", gw1.seal(t, h(wire.Status, "gw1", 4), ""), 1, ErrReplay},
		{"another kind", "cnpgate.dc.gw1.ask.gw2", gw1.seal(t, h(wire.Ask, "gw1", 4), ""), 1, nil},
		{"newer", "cnpgate.dc.gw1.status", gw1.seal(t, h(wire.Status, "gw1", 6), ""), 1, nil},
		{"older, after a silence", "cnpgate.dc.gw1.status", gw1.seal(t, h(wire.Status, "gw1", 1), ""), 40e9, nil},
		{"another's subject", "cnpgate.dc.gw2.status", gw1.seal(t, h(wire.Status, "gw1", 50), ""), 40e9, ErrSubject},
		{"another kind's subject", "cnpgate.dc.gw1.want", gw1.seal(t, h(wire.Status, "gw1", 50), ""), 40e9, ErrSubject},
		{"another site's subject", "cnpgate.x.gw1.status", gw1.seal(t, h(wire.Status, "gw1", 50), ""), 40e9, ErrSubject},
		{"another's key", "cnpgate.dc.gw2.status", gw1.seal(t, h(wire.Status, "gw2", 50), ""), 40e9, wire.ErrSignature},
		{"a stranger", "cnpgate.dc.gw3.status", stranger.seal(t, h(wire.Status, "gw3", 50), ""), 40e9, ErrStranger},
		{"a host as a gateway", "cnpgate.dc.h1.flows", host.seal(t, h(wire.Flows, "h1", 50), ""), 40e9, ErrRole},
		{"a gateway as a host", "cnpgate.dc.gw1.hints", gw1.seal(t, h(wire.Hints, "gw1", 50), ""), 40e9, ErrRole},
		{"a host", "cnpgate.dc.h1.hints", host.seal(t, h(wire.Hints, "h1", 50), ""), 40e9, nil},
		{"not a message", "cnpgate.dc.gw1.status", []byte("hello"), 40e9, wire.ErrLength},
		{"after all that", "cnpgate.dc.gw1.status", gw1.seal(t, h(wire.Status, "gw1", 2), ""), 41e9, nil},
	} {
		if _, _, _, err := trust.Accept(c.subject, c.message, c.now); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, expected %v", c.what, err, c.want)
		}
	}
}

func TestNewTrust(t *testing.T) {
	a, b := makeParty("a", 1), makeParty("a", 2)
	same := makeParty("b", 1)
	for _, parties := range [][]Party{{a.Party, b.Party}, {a.Party, same.Party}, {{Name: "x"}}, {{Name: "A", Key: a.Key}}} {
		if _, err := NewTrust("dc", parties); err == nil {
			t.Errorf("%v: accepted", parties)
		}
	}
	if _, err := NewTrust("d.c", nil); err == nil {
		t.Error("a site with a dot: accepted")
	}
}

// TestAcceptHints: a host speaks for its own addresses only: other hints are left out and counted.
func TestAcceptHints(t *testing.T) {
	host := makeParty("h1", 3, "10.0.0.1/32", "2001:db8::1/128")
	trust, err := NewTrust("dc", []Party{host.Party})
	if err != nil {
		t.Fatal(err)
	}
	const good = `{"source_ip":"10.0.0.1","destination_ip":"10.9.0.1","source_qp":17,"destination_qp":18}`
	for _, c := range []struct {
		body, want string
		foreign    int
	}{
		{`{"lifetime_ms":5000,"hints":[` + good + `,{"source_ip":"2001:db8::1","source_qp":17,"destination_qp":18,"tags":"100"}]}`, "", 0},
		{`{"lifetime_ms":5000,"hints":[` + good + `,{"source_ip":"10.0.0.2","destination_ip":"10.0.0.1","source_qp":17,"destination_qp":18}]}`, "", 1},
		{`{"lifetime_ms":0,"withdrawn":[` + good + `]}`, "", 0},
		{`{"lifetime_ms":0,"withdrawn":[{"source_ip":"10.0.0.2"}]}`, "", 1},
		{`{"lifetime_ms":10,"hints":[` + good + `]}`, "lifetime", 0},
		{`{"lifetime_ms":6000000,"hints":[` + good + `]}`, "lifetime", 0},
		{`{"lifetime_ms":5000,"hints":[` + strings.Repeat(good+",", MaxHintsAMessage) + good + `]}`, "at most 512", 0},
		{`{"lifetime_ms":5000,"color":1}`, "unknown field", 0},
		{`[]`, "cannot unmarshal", 0},
		{`{"lifetime_ms":5000,"hints":[{"source_ip":"10.0.0.1","tags":"` + strings.Repeat("1", 65) + `"}]}`, "longer", 0},
	} {
		m, foreign, err := trust.AcceptHints("h1", []byte(c.body))
		if foreign != c.foreign || m != nil && slices.ContainsFunc(m.Hints, func(h Hint) bool { return !trust.Owns("h1", h.Source) }) {
			t.Errorf("%.120s: %d foreign, expected %d; %+v", c.body, foreign, c.foreign, m)
		}
		if c.want == "" && (err != nil || m == nil) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%.120s: %v, expected %q", c.body, err, c.want)
		}
	}
}
