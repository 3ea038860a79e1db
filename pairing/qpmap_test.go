package pairing

import (
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/internal/packet"
)

var hostA, hostB = packet.Addr{Lo: 0xffff_c612_0001}, packet.Addr{Lo: 0xffff_c612_0002} // 198.18.0.1 and .2

func TestQPMapErrors(t *testing.T) {
	for _, c := range []struct {
		name  string
		pairs []QPPair
		want  string // part of the error, "" for none
	}{
		{"empty", nil, ""},
		{"one", []QPPair{{hostA, hostB, 17, 18, false, 0, false}}, ""},
		{"the same twice", []QPPair{{hostA, hostB, 17, 18, false, 0, false}, {hostA, hostB, 17, 18, false, 0, false}}, ""},
		{"and its reverse", []QPPair{{hostA, hostB, 17, 18, false, 0, false}, {hostB, hostA, 18, 17, false, 0, false}}, ""},
		{"other hosts", []QPPair{{hostA, hostB, 17, 18, false, 0, false}, {hostA, hostA, 19, 18, false, 0, false}}, ""},
		{"two sources", []QPPair{{hostA, hostB, 17, 18, false, 0, false}, {hostA, hostB, 19, 18, false, 0, false}},
			"pair 2 (198.18.0.1 QP 19 to 198.18.0.2 QP 18): packets from 198.18.0.1 to 198.18.0.2 QP 18 already have source QP 17"},
		{"two destinations", []QPPair{{hostA, hostB, 17, 18, false, 0, false}, {hostA, hostB, 17, 19, false, 0, false}},
			"packets from 198.18.0.2 to 198.18.0.1 QP 17 already have source QP 18"},
		{"to itself, two ways", []QPPair{{hostA, hostA, 17, 18, false, 0, false}, {hostA, hostA, 18, 19, false, 0, false}}, "already have source QP"},
		{"QP 0", []QPPair{{hostA, hostB, 0, 18, false, 0, false}}, "QP 0: expected 2 to 16777214"},
		{"QP 1", []QPPair{{hostA, hostB, 17, 1, false, 0, false}}, "QP 1: expected"},
		{"multicast QP", []QPPair{{hostA, hostB, 17, 0xffffff, false, 0, false}}, "QP 16777215: expected"},
		{"25 bits", []QPPair{{hostA, hostB, 1 << 24, 18, false, 0, false}}, "QP 16777216: expected"},
	} {
		m, err := NewQPMap(c.pairs, 1)
		if c.want == "" {
			if err != nil || m == nil {
				t.Errorf("%s: %v", c.name, err)
			}
		} else if err == nil || m != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
}

// The map has exactly the pairs' QPs.
func TestQPMapAgreesWithPairs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type direction struct {
			src, dst packet.Addr
			destQP   uint32
		}
		want := map[direction]uint32{}
		var pairs []QPPair
		for range rapid.IntRange(0, 60).Draw(t, "pairs") {
			host := rapid.Custom(func(t *rapid.T) packet.Addr { return packet.Addr{Lo: rapid.Uint64Range(1, 4).Draw(t, "host")} })
			qp := rapid.Uint32Range(2, 12)
			p := QPPair{host.Draw(t, "source"), host.Draw(t, "destination"), qp.Draw(t, "source QP"), qp.Draw(t, "destination QP"), false, 0, false}
			forward, back := direction{p.Source, p.Destination, p.DestinationQP}, direction{p.Destination, p.Source, p.SourceQP}
			f, fok := want[forward]
			b, bok := want[back]
			contradicts := fok && f != p.SourceQP || bok && b != p.DestinationQP || forward == back && p.SourceQP != p.DestinationQP
			_, err := NewQPMap(append(pairs[:len(pairs):len(pairs)], p), 1)
			if (err != nil) != contradicts {
				t.Fatalf("%v with %v: error %v", pairs, p, err)
			}
			if !contradicts {
				want[forward], want[back] = p.SourceQP, p.DestinationQP
				pairs = append(pairs, p)
			}
		}
		m, err := NewQPMap(pairs, 1)
		if err != nil {
			t.Fatal(err)
		}
		for src := range uint64(6) {
			for dst := range uint64(6) {
				for qp := range uint32(14) {
					d := direction{packet.Addr{Lo: src}, packet.Addr{Lo: dst}, qp}
					got, ok := m.Lookup(d.src, d.dst, d.destQP)
					if w, known := want[d]; got != w || ok != known {
						t.Fatalf("%v: %d, %v, want %d, %v", d, got, ok, w, known)
					}
				}
			}
		}
	})
}

func TestNilQPMap(t *testing.T) {
	var m *QPMap
	if qp, ok := m.Lookup(hostA, hostB, 18); qp != 0 || ok {
		t.Errorf("a nil map says %d", qp)
	}
}

func BenchmarkQPMap(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	pairs := make([]QPPair, 10000)
	for i := range pairs {
		pairs[i] = QPPair{packet.Addr{Lo: rng.Uint64()}, packet.Addr{Lo: rng.Uint64()}, 17, 18, false, 0, false}
	}
	m, err := NewQPMap(pairs, 1)
	if err != nil {
		b.Fatal(err)
	}
	for i := 0; b.Loop(); i++ {
		p := &pairs[i%len(pairs)]
		m.Lookup(p.Source, p.Destination, 18)
	}
}
