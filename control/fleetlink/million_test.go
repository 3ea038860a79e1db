//go:build long && !nofleet

package fleetlink

import (
	"testing"
	"time"

	"github.com/cnpgate/cnpgate/fleet"
	"github.com/cnpgate/cnpgate/fleet/wire"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
	"github.com/cnpgate/cnpgate/pairing"
)

// TestMillionJoin: a gateway that starts gets 10^6 pairs from another within 10 s, through an embedded server.
func TestMillionJoin(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	const pairs = 1_000_000
	all := newTeam(t, 3)
	for _, c := range all.configs {
		c.Pairs = pairs
	}
	one, _ := all.run(t, 0)
	for n := uint64(0); n < pairs; {
		var body []byte
		for len(body) < 200_000 && n < pairs {
			n++
			body = (&wire.Pair{Hosts: wire.Hosts{From: packet.Addr{Lo: n / 100}, To: packet.Addr{Lo: n}}, QP: 2, SourceQP: 3}).Append(body)
		}
		m, err := wire.Seal("dc", wire.Header{Kind: wire.Pairs, Sender: "gw3", Sequence: 1<<60 + n}, body, all.keys[2].Sign)
		if err != nil {
			t.Fatal(err)
		}
		one.ask(func() { one.member.Receive(fleet.Subject("dc", "gw3", wire.Pairs), m, one.now()) })
	}
	if got := one.Status().Shares.Pairs; got != pairs {
		t.Fatalf("gw1 has %d pairs", got)
	}
	memory := make([]byte, pairing.Size(1024))
	empty, err := pairing.New(memory, pairing.Config{Flows: 1024, Egress: []int{1, 0}})
	if err != nil {
		t.Fatal(err)
	}
	peers, err := empty.JoinPeers(make([]byte, pairing.PeersSize(1024, 1024)), 1024, fleet.FlowLifetime, 1)
	if err != nil {
		t.Fatal(err)
	}
	two, err := Open(Options{Config: all.configs[1], Pairing: empty, Peers: peers, Note: func(error) {}})
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	go two.Run(t.Context())
	eventually(t, "gw2 has all pairs", func() bool { return two.Status().Shares.Pairs == pairs })
	took := time.Since(begin)
	t.Logf("%d pairs after %v; dropped %d", pairs, took, two.Status().Counters["dropped_in"])
	if took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}
