package pairing

import (
	"math/rand/v2"
	"testing"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing/store"
)

// TestNoGroupLeft: when a host has sent to so many addresses that no group is left for another, its new flow to a host that has a group finds a slot.
func TestNoGroupLeft(t *testing.T) {
	const paired = 4096
	r := rand.New(rand.NewPCG(1, 1))
	s := newSite(t, paired, 4*paired)
	s.connect(1, 1, r)
	s.exchange(12)
	s.scan(1, paired, r)
	if s.pairing.learners[0].counts.NoSlot == 0 {
		t.Fatal("each flow has found a group")
	}
	s.connect(1, 1, r)
	s.exchange(12)
	if got := s.known(t); got != 2 {
		t.Errorf("%d of 2 connections are paired", got)
	}
}

// TestFullGroup: when a host has so many flows to another that their group has no slot for one more, its flow to a third host finds one.
func TestFullGroup(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	s := newSite(t, 4096, 4096)
	for range store.SlotsASide + 1 {
		s.connect(1, 1, r)
		s.send(&s.connections[len(s.connections)-1], 0, packet.RCSendOnly)
	}
	if s.pairing.learners[0].counts.NoSlot == 0 {
		t.Fatal("each flow has found a slot")
	}
	s.connections = nil
	s.connect(1, 2, r)
	s.exchange(12)
	if got := s.known(t); got != 1 {
		t.Error("the connection to the third host is not paired")
	}
}

// TestWaitingIsRoutine: between its attempts to get a slot, a flow that has none is only counted, whatever its PSNs, requests or responses.
func TestWaitingIsRoutine(t *testing.T) {
	const packets = 1000
	for _, o := range []packet.Opcode{packet.RCSendOnly, packet.RCAcknowledge} {
		s := newSite(t, 4096, 4096)
		for range store.SlotsASide + 1 {
			s.connect(1, 1, rand.New(rand.NewPCG(1, 1)))
			s.send(&s.connections[len(s.connections)-1], 0, o)
		}
		c, w, observed := &s.connections[store.SlotsASide], s.workers[0], 0
		for n := range uint32(packets) {
			k := flowtable.Key{Src: c.host[0], Dst: c.host[1], DestQP: c.qp[1]}
			p := packet.Parsed{Kind: packet.RoCEv2, Opcode: o, DestQP: k.DestQP, PSN: n * coarse, SrcPort: c.port, Len: 64}
			var records [1]packet.Record
			records[0].Set(&p)
			records[0].Flow = k.Words()
			w.StartBurst()
			w.Lookup(records[:], s.now, s.refs[:])
			if w.Routine(s.refs[:], records[:], 0) == 0 {
				w.Observe(s.refs[0].Index, &k, &p, s.frame[:], s.now)
				observed++
			}
		}
		if got := w.Traffic(s.refs[0].Index).Packets; got != packets+1 || observed > maxPace+2 {
			t.Errorf("%v: %d packets are counted, of %d, and %d were observed", o, got, packets+1, observed)
		}
	}
}

// BenchmarkTooManyFlows is the time of a packet where 16 times as many flows as have a slot come one way only, each a packet in turn: all want a slot.
func BenchmarkTooManyFlows(b *testing.B) {
	const flows, paired, hosts, gap = 1 << 20, 1 << 16, 4096, 100 // ns between packets
	p, err := New(make([]byte, Size(paired)), Config{Flows: paired, Egress: []int{1, 0}, Seed: 1})
	if err != nil {
		b.Fatal(err)
	}
	w := newWorker(b, p, 2*flows, 1)
	order := rand.New(rand.NewPCG(1, 1)).Perm(flows)
	var records [burst.MaxSize]packet.Record
	var refs [burst.MaxSize]flowtable.Ref
	var keys [burst.MaxSize]flowtable.Key
	now, at := int64(synthEpoch), 0
	step := func() {
		w.StartBurst()
		for i := range records {
			n, psn := uint64(order[at%flows]), uint32(at/flows)
			at++
			k := flowtable.Key{Src: packet.Addr{Hi: 1, Lo: n % hosts}, Dst: packet.Addr{Hi: 2, Lo: n / hosts}, DestQP: 2 + uint32(n)}
			r := packet.Parsed{Kind: packet.RoCEv2, Opcode: packet.RCWriteMiddle, DestQP: k.DestQP, SrcPort: 50000, Len: 64, PSN: psn}
			records[i].Set(&r)
			records[i].Flow, keys[i] = k.Words(), k
		}
		w.Lookup(records[:], now, refs[:])
		for i := w.Routine(refs[:], records[:], 0); i < len(refs); i = w.Routine(refs[:], records[:], i+1) {
			r := packet.Parsed{Kind: packet.RoCEv2, Opcode: packet.RCWriteMiddle, DestQP: keys[i].DestQP, SrcPort: 50000, Len: 64, PSN: records[i].PSN}
			w.Observe(refs[i].Index, &keys[i], &r, nil, now)
		}
		now += gap * int64(len(records))
	}
	for range 8 * flows / burst.MaxSize {
		step()
	}
	b.ResetTimer()
	for n := 0; n < b.N; n += burst.MaxSize {
		step()
	}
}
