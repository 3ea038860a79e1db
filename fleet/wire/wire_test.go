package wire

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/internal/packet"
)

func key(seed byte) (ed25519.PublicKey, func([]byte) ([]byte, error)) {
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
	return private.Public().(ed25519.PublicKey), func(b []byte) ([]byte, error) { return ed25519.Sign(private, b), nil }
}

func TestEnvelope(t *testing.T) {
	public, sign := key(1)
	other, _ := key(2)
	h := Header{Kind: Flows, Sender: "gw-1", Sequence: 7, Time: -3}
	b, err := Seal("paris", h, []byte("body"), sign)
	if err != nil {
		t.Fatal(err)
	}
	got, body, err := Open(b)
	if err != nil || got != h || string(body) != "body" {
		t.Fatalf("Open: %+v, %q, %v", got, body, err)
	}
	if err := Verify("paris", b, public); err != nil {
		t.Error(err)
	}
	if err := Verify("london", b, public); !errors.Is(err, ErrSignature) {
		t.Errorf("at another site: %v", err)
	}
	if err := Verify("paris", b, other); !errors.Is(err, ErrSignature) {
		t.Errorf("with another key: %v", err)
	}
	for i := range b {
		changed := bytes.Clone(b)
		changed[i] ^= 1
		if _, _, err := Open(changed); err == nil && Verify("paris", changed, public) == nil {
			t.Errorf("byte %d changed: accepted", i)
		}
	}
	for n := range b {
		if _, _, err := Open(b[:n]); err == nil && Verify("paris", b[:n], public) == nil {
			t.Errorf("cut to %d bytes: accepted", n)
		}
	}
	if _, err := Seal("paris", Header{Kind: Flows, Sender: "GW.1"}, nil, sign); !errors.Is(err, ErrName) {
		t.Errorf("a name with a dot: %v", err)
	}
	if _, err := Seal("paris", h, make([]byte, MaxBody+1), sign); !errors.Is(err, ErrLength) {
		t.Errorf("too long: %v", err)
	}
}

func hosts(t *rapid.T) Hosts {
	word := rapid.Uint64()
	return Hosts{packet.Addr{Hi: word.Draw(t, "a"), Lo: word.Draw(t, "b")}, packet.Addr{Hi: word.Draw(t, "c"), Lo: word.Draw(t, "d")}, packet.Scope(word.Draw(t, "scope")).Named()}
}

// TestRecords: what is appended is read again.
func TestRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		qp, psn := rapid.Uint32Range(2, packet.MaxQP-1), rapid.Uint32Range(0, packet.PSNMask)
		want := Wanted{hosts(t), rapid.Bool().Draw(t, "again")}
		flow := Flow{
			hosts(t), qp.Draw(t, "qp"), rapid.Uint16().Draw(t, "port"), rapid.Uint8Range(0, flagsEnd-1).Draw(t, "flags"),
			psn.Draw(t, "first"), psn.Draw(t, "high"), psn.Draw(t, "acked"),
		}
		pair := Pair{hosts(t), qp.Draw(t, "qp"), qp.Draw(t, "source"), flow.Port, rapid.Uint8Range(0, 15).Draw(t, "evidence"), rapid.Bool().Draw(t, "uc")}
		notice := Notice{hosts(t), flow.QP, 3, 2, 500, rapid.Uint32().Draw(t, "age"), rapid.Float32Min(0).Draw(t, "rate")}
		arrival := Arrival{rapid.Uint64().Draw(t, "name"), 7, 1 << 40, 12345, 12.5, 1.25}
		delay := Delay{arrival.Bottleneck, 3, 5e6}
		check := func(err error, same bool) {
			if err != nil || !same {
				t.Fatalf("read: %v, same: %v", err, same)
			}
		}
		n := 0
		check(EachWanted(want.Append(nil), func(g *Wanted) { n++; check(nil, *g == want) }), true)
		check(EachFlow(flow.Append(flow.Append(nil)), func(g *Flow) { n++; check(nil, *g == flow) }), true)
		check(EachPair(pair.Append(nil), func(g *Pair) { n++; check(nil, *g == pair) }), true)
		check(EachNotice(notice.Append(nil), func(g *Notice) { n++; check(nil, *g == notice) }), true)
		check(EachArrival(arrival.Append(nil), func(g *Arrival) { n++; check(nil, *g == arrival) }), true)
		check(EachDelay(delay.Append(nil), func(g *Delay) { n++; check(nil, *g == delay) }), true)
		check(nil, n == 7)
		bad := flow
		bad.QP = 1
		if err := EachFlow(bad.Append(flow.Append(nil)), func(*Flow) { t.Fatal("a record of a bad body was used") }); !errors.Is(err, ErrRecord) {
			t.Fatal(err)
		}
	})
}

// FuzzOpen: no input panics; what is accepted is within bounds, and the same when it is written again.
func FuzzOpen(f *testing.F) {
	_, sign := key(1)
	seed := func(k Kind, body []byte) {
		b, err := Seal("s", Header{Kind: k, Sender: "gw"}, body, sign)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	seed(Flows, (&Flow{QP: 17}).Append(nil))
	seed(Pairs, (&Pair{QP: 17, SourceQP: 18}).Append(nil))
	seed(Want, (&Wanted{}).Append(nil))
	seed(Notified, (&Notice{}).Append(nil))
	seed(Arrivals, (&Arrival{}).Append(nil))
	seed(Learned, (&Delay{}).Append(nil))
	f.Add([]byte("CF"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, body, err := Open(b)
		if err != nil {
			return
		}
		var again []byte
		var errs error
		switch h.Kind {
		case Want:
			errs = EachWanted(body, func(r *Wanted) { again = r.Append(again) })
		case Flows:
			errs = EachFlow(body, func(r *Flow) { again = r.Append(again) })
		case Pairs:
			errs = EachPair(body, func(r *Pair) { again = r.Append(again) })
		case Notified:
			errs = EachNotice(body, func(r *Notice) { again = r.Append(again) })
		case Arrivals:
			errs = EachArrival(body, func(r *Arrival) { again = r.Append(again) })
		case Learned:
			errs = EachDelay(body, func(r *Delay) { again = r.Append(again) })
		default:
			return
		}
		if errs == nil && !bytes.Equal(again, body) {
			t.Errorf("%v: read %x, wrote %x", h.Kind, body, again)
		}
	})
}
