package pairing

import (
	"fmt"
	"testing"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/synth"
)

// pairOfBoxes is two gateways, each of which sees one direction, and what they show each other.
type pairOfBoxes struct {
	box     [2]*gateway
	peers   [2]*Peers
	way     [2][]Seen // what is on its way from each
	every   int64
	next    int64
	change  func(*Seen) // of what is shown; nil: honest
	results [ShownEnded + 1]int
}

func newPairOfBoxes(t testing.TB, flows int, every int64) *pairOfBoxes {
	b := &pairOfBoxes{every: every}
	for i := range b.box {
		b.box[i] = newGateway(t, flows)
		var err error
		if b.peers[i], err = b.box[i].pairing.JoinPeers(make([]byte, PeersSize(flows, b.box[i].pairing.flows)), flows, 30e9, uint64(i)+7); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// exchange shows each box what the other had seen at the last exchange.
func (b *pairOfBoxes) exchange(now int64) {
	if now < b.next {
		return
	}
	b.next = now + b.every
	for i, from := range b.box {
		for n := range b.way[i] {
			s := &b.way[i][n]
			if b.change != nil {
				b.change(s)
			}
			if s.Steady {
				b.results[b.peers[1-i].Show(&s.Remote, now)]++
			}
		}
		b.peers[1-i].Sweep(now)
		b.way[i] = b.way[i][:0]
		for n := 1; n <= from.pairing.Groups(); n++ {
			b.way[i], _ = from.pairing.See(n, b.way[i])
		}
	}
}

// learnApart runs traffic past two boxes, each of which sees one direction.
func learnApart(t testing.TB, c synth.Config, change func(*Seen)) (s *score, b *pairOfBoxes) {
	t.Helper()
	flows := max(c.Connections, 256) * max(1, c.Tenants) * (c.Generations + 1) * 2
	b = newPairOfBoxes(t, flows+1024, 1_000_000)
	b.change = change
	traffic := synth.New(c)
	s = &score{}
	var seen [][2]progress
	e, ok := traffic.Next() // one event for all packets: it escapes
	for ; ok && s.packets < maxPackets; e, ok = traffic.Next() {
		b.exchange(synthEpoch + e.Time)
		worker, x := b.box[e.From].show(&e)
		if s.packets++; x == flowtable.None || e.Forged || e.MAD != nil || e.Packet.SourceQP != 0 {
			continue
		}
		for int(e.Conn) >= len(seen) {
			seen = append(seen, [2]progress{})
		}
		p := &seen[e.Conn][e.From]
		p.packets++
		qp, ok := worker.SourceQP(x)
		if ok && qp != e.SourceQP {
			if s.wrong++; s.why == "" {
				s.why = fmt.Sprintf("\n  first wrong: %+v is said to come from %d by %v, comes from %d; connection %+v",
					e.Packet, qp, worker.Describe(x).Evidence(), e.SourceQP, traffic.Conns()[e.Conn])
			}
		}
		if ok && qp == e.SourceQP && p.took == 0 {
			p.took, p.by = p.packets, worker.Describe(x).Evidence()
		}
		p.look(s, e.Time, ok)
	}
	for i := range seen {
		for end := range 2 {
			if p := &seen[i][end]; p.packets >= minPackets && seen[i][1-end].packets >= minPackets {
				s.flows++
				if p.took > 0 {
					s.confirmed++
					s.took = append(s.took, p.took)
					s.by[p.by]++
				}
			}
		}
	}
	return s, b
}

// TestPeersNeverWrong: two boxes that each see one direction never confirm a wrong source QP, whatever the traffic. With ports by the formula
// they confirm at least 99 % of what one box with both directions does.
func TestPeersNeverWrong(t *testing.T) {
	all := scenes()
	for n := range all {
		if (n+n/12)%eachPeerScene != 0 {
			continue
		}
		sc := &all[n]
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			c := sc.config
			c.Seed = 1001
			s, b := learnApart(t, c, nil)
			if s.wrong > 0 {
				t.Errorf("%v", s)
			}
			t.Logf("%v; shown %v", s, b.results)
		})
	}
}

// TestPeersConfirm: the flows that one box would confirm are confirmed by two.
func TestPeersConfirm(t *testing.T) {
	for start, from := range map[synth.StartPSN]synth.Requesters{synth.PSNRandom: synth.FromFabric, synth.PSNZero: synth.FromBoth, synth.PSNWrap: synth.FromFabric} {
		c := synth.Config{Seed: 5, StartPSN: start, Requesters: from, Messages: 64, Mix: synth.Mix{Write: 3, Send: 1, Read: 1}}
		one := learn(t, c)
		two, b := learnApart(t, c, nil)
		t.Logf("one box: %v\ntwo: %v; shown %v", one, two, b.results)
		if two.wrong > 0 || float64(two.confirmed) < .99*float64(one.confirmed) {
			t.Errorf("two boxes confirm %d of the %d flows that one does, %d wrong", two.confirmed, one.confirmed, two.wrong)
		}
	}
}

// TestLyingPeer: whatever a peer shows, no source QP is wrong; what is withheld or wrong there stays unknown.
func TestLyingPeer(t *testing.T) {
	last := uint32(0)
	for _, lie := range []struct {
		name   string
		change func(*Seen)
	}{
		{"another QP, the true PSNs and port", func(s *Seen) { s.Key.DestQP ^= 1 }},
		{"another flow's QP", func(s *Seen) { s.Key.DestQP, last = max(last, 2), s.Key.DestQP }},
		{"invented PSNs", func(s *Seen) { s.Acked, s.First, s.High = s.Acked^0x555555, s.First^0x555555, s.High^0x555555 }},
		{"another port", func(s *Seen) { s.Port ^= 1 }},
		{"the other direction", func(s *Seen) { s.Key.Src, s.Key.Dst = s.Key.Dst, s.Key.Src }},
		{"another scope", func(s *Seen) { s.Key.OuterTag = packet.MakeTag(packet.EtherTypeCTag, 7) }},
	} {
		t.Run(lie.name, func(t *testing.T) {
			s, b := learnApart(t, synth.Config{Seed: 3, Messages: 32, Connections: 64}, lie.change)
			if s.wrong > 0 || s.confirmed > 0 {
				t.Errorf("%v; shown %v", s, b.results)
			}
		})
	}
}

// TestLiesWithdrawNothing: lies don't harm the pairs that a gateway has found by itself.
func TestLiesWithdrawNothing(t *testing.T) {
	w := newWire(t)
	peers, err := w.pairing.JoinPeers(make([]byte, PeersSize(4096, w.pairing.flows)), 4096, 30e9, 1)
	if err != nil {
		t.Fatal(err)
	}
	const a, b = 1000, 2000
	port := packet.SourcePort(a, b)
	talk := func(psn uint32) {
		w.send(0, b, packet.RCSendOnly, psn, port)
		w.send(1, a, packet.RCAcknowledge, psn, port)
	}
	for psn := range uint32(16) {
		talk(5_000_000 + psn)
	}
	key := w.key(0, b)
	if got, _ := w.workers[0].find(&key); !got.Usable() || got.SourceQP() != a || got.Evidence() != EvidencePort {
		t.Fatalf("by own evidence: %v", got)
	}
	for qp := uint32(2); qp < 1<<20; qp++ { // every QP that has the port
		if packet.SourcePort(qp, b) == port && qp != a {
			peers.Show(&Remote{Key: w.key(1, qp), Port: port, Responses: true, Acked: 5_000_015}, w.now)
		}
	}
	for n := range uint32(300) { // and as many flows as there are slots
		peers.Show(&Remote{Key: w.key(1, 1<<21+n), Port: uint16(0xc000 + n), Responses: true, Acked: 5_000_015}, w.now)
	}
	for psn := range uint32(200) {
		talk(5_000_016 + psn)
	}
	if got, _ := w.workers[0].find(&key); !got.Usable() || got.SourceQP() != a || got.Evidence() != EvidencePort {
		t.Errorf("after lies: %v", got)
	}
}

// TestOwnEvidenceReplacesPeers: a flow confirmed by a peer's lie that fits gets its true QP once the gateway sees the peer flow itself; and a
// remote flow that the gateway sees, or that is shown no longer, ends.
func TestOwnEvidenceReplacesPeers(t *testing.T) {
	w := newWire(t)
	peers, err := w.pairing.JoinPeers(make([]byte, PeersSize(64, w.pairing.flows)), 64, 30e9, 1)
	if err != nil {
		t.Fatal(err)
	}
	const a, b, psn = 1000, 2000, 5_000_000
	port := packet.SourcePort(a, b)
	lie := uint32(a + 1)
	for packet.SourcePort(lie, b) != port {
		lie++
	}
	for i := range uint32(8) {
		w.send(0, b, packet.RCSendOnly, psn+i, port)
		peers.Show(&Remote{Key: w.key(1, lie), Port: port, Responses: true, Acked: psn + i}, w.now)
	}
	key := w.key(0, b)
	if got, _ := w.workers[0].find(&key); !got.Usable() || got.SourceQP() != lie || got.Evidence() != EvidencePeer {
		t.Fatalf("by a peer: %v", got)
	}
	for i := range uint32(400) {
		w.send(0, b, packet.RCSendOnly, psn+8+i, port)
		w.send(1, a, packet.RCAcknowledge, psn+8+i, port)
	}
	if got, _ := w.workers[0].find(&key); !got.Usable() || got.SourceQP() != a || got.Evidence() != EvidencePort {
		t.Errorf("after own evidence: %v", got)
	}
	if got := peers.Show(&Remote{Key: w.key(1, a), Port: port, Responses: true, Acked: psn}, w.now); got != ShownSeen {
		t.Errorf("a flow that the gateway sees: %v", got)
	}
	if peers.Flows() == 0 {
		t.Fatal("no remote flow")
	}
	for range 100 {
		w.now += 1e9
		peers.Sweep(w.now)
	}
	if n := peers.Flows(); n != 0 {
		t.Errorf("%d remote flows after their lifetime", n)
	}
}

// TestPeersEnd: a source QP that came from a peer goes with the remote flow.
func TestPeersEnd(t *testing.T) {
	w := newWire(t)
	peers, err := w.pairing.JoinPeers(make([]byte, PeersSize(64, w.pairing.flows)), 64, 30e9, 1)
	if err != nil {
		t.Fatal(err)
	}
	const a, b, psn = 1000, 2000, 5_000_000
	port, i := packet.SourcePort(a, b), uint32(0)
	key, remote := w.key(0, b), Remote{Key: w.key(1, a), Port: port, Responses: true}
	know := func() (Answer, bool) {
		for range coarse + 1 {
			w.send(0, b, packet.RCSendOnly, psn+i, port)
			i++
		}
		got, _ := w.workers[0].find(&key)
		return got, got.Usable() && got.SourceQP() == a
	}
	show := func() {
		know()
		remote.Acked = psn + i - 10
		peers.Show(&remote, w.now)
		remote.Acked++
		peers.Show(&remote, w.now)
	}
	show()
	if got, ok := know(); !ok || got.Evidence() != EvidencePeer {
		t.Fatalf("shown: %v", got)
	}
	remote.Port ^= 1
	peers.Show(&remote, w.now)
	if got, ok := know(); ok {
		t.Errorf("the QP has another port: %v", got)
	}
}

// TestAdopt: a source QP from before a restart counts from the flow's first packets on, if its port is that of the two QPs.
func TestAdopt(t *testing.T) {
	w := newWire(t)
	peers, err := w.pairing.JoinPeers(make([]byte, PeersSize(64, w.pairing.flows)), 64, 30e9, 1)
	if err != nil {
		t.Fatal(err)
	}
	const a, b = 1000, 2000
	port := packet.SourcePort(a, b)
	own, remote := w.key(0, b), &Remote{Key: w.key(1, a), Port: port}
	if peers.Adopt(remote, &own, w.now) {
		t.Error("adopted before the first packet")
	}
	w.send(0, b, packet.RCSendOnly, 77, port)
	if wrong := (&Remote{Key: w.key(1, a+1), Port: port}); peers.Adopt(wrong, &own, w.now) {
		t.Error("adopted a QP with another port")
	}
	if !peers.Adopt(remote, &own, w.now) {
		t.Error("not adopted")
	}
	w.send(0, b, packet.RCSendOnly, 78, port)
	if got, _ := w.workers[0].find(&own); !got.Usable() || got.SourceQP() != a || got.Evidence() != EvidencePeer {
		t.Errorf("adopted: %v", got)
	}
	for i := range uint32(400) {
		w.send(0, b, packet.RCSendOnly, 79+i, port)
		w.send(1, a, packet.RCAcknowledge, 79+i, port)
	}
	if got, _ := w.workers[0].find(&own); !got.Usable() || got.SourceQP() != a || got.Evidence() != EvidencePort {
		t.Errorf("confirmed by traffic: %v", got)
	}
}
