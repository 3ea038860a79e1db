package pairing

import (
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing/store"
)

// ud sends a UD packet from a side, with a source QP in its DETH.
func (w *wire) ud(side int, dest, source uint32) {
	w.frame(side, &packet.Parsed{Kind: packet.RoCEv2, Opcode: packet.UDSendOnly, DestQP: dest, SourceQP: source}, make([]byte, 64))
}

// udTo sends a UD packet with a key to a worker, and returns what the gateway says about the packet's source QP. Later packets of the flow may
// come to another worker.
func (w *wire) udTo(worker int, k flowtable.Key) Description {
	w.now += 1000
	l := w.workers[worker]
	l.StartBurst()
	var x [1]flowtable.Ref
	l.lookup([]flowtable.Key{k}, w.now, x[:])
	p := packet.Parsed{Kind: packet.RoCEv2, Opcode: packet.UDSendOnly, DestQP: k.DestQP, SourceQP: k.SourceQP}
	l.observe(x[0].Index, &k, &p, make([]byte, 64), w.now)
	v := l.Describe(x[0].Index)
	if qp, ok := l.SourceQP(x[0].Index); ok != v.Usable() || ok && (qp != k.SourceQP || v.Evidence() != EvidenceDETH) {
		w.t.Errorf("a UD flow of %d is %v, and for notifications comes from %d (%v)", k.SourceQP, v.Answer, qp, ok)
	}
	return v
}

var carol = packet.Addr{Lo: 0xffff0a000003}

// TestForgedDETH: UD packets in alice's name, to anyone and through any worker, with a QP of hers that is one end of a connection. Their DETH
// doesn't count, however the QP is known, and whether they began before or after that.
func TestForgedDETH(t *testing.T) {
	pairs, err := NewQPMap([]QPPair{{Source: alice, Destination: bob, SourceQP: 100, DestinationQP: 200}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	v6 := func(a packet.Addr) packet.Addr { return packet.Addr{Hi: 0x20010db8 << 32, Lo: a.Lo} }
	for name, c := range map[string]struct {
		connect func(w *wire)
		ipv6    bool
	}{
		"paired by port":    {connect: func(w *wire) { w.talk(100, 200, 5, 10, 52769) }},
		"paired by RDMA-CM": {connect: func(w *wire) { w.connect(100, 200); w.talk(100, 200, psnB, 10, 7) }},
		"UC": {connect: func(w *wire) {
			w.send(0, 200, packet.UC|packet.RCSendOnly, 5, 52769)
			w.send(1, 100, packet.UC|packet.RCSendOnly, 5, 52769)
		}},
		"XRC": {connect: func(w *wire) {
			w.send(0, 200, packet.XRC|packet.RCSendOnly, 5, 7)
			w.send(1, 100, packet.XRC|packet.RCAcknowledge, 5, 7)
		}},
		"not paired":                       {connect: func(w *wire) { w.talk(100, 200, 5, 10, 7) }},
		"in the map":                       {connect: func(w *wire) { w.setStatic(pairs) }},
		"in a hint":                        {connect: func(w *wire) { w.pairing.SetHints(pairs) }},
		"in the map, the other end":        {connect: func(w *wire) { w.setStatic(other(t)) }},
		"paired, then gets UD packets":     {connect: func(w *wire) { w.talk(100, 200, 5, 10, 52769); w.ud(1, 100, 300) }},
		"not paired, then gets UD packets": {connect: func(w *wire) { w.talk(100, 200, 5, 10, 7); w.ud(1, 100, 300) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t)
			scopes := []flowtable.Key{
				{Src: alice, Dst: bob, DestQP: 300, SourceQP: 100},
				{Src: alice, Dst: bob, DestQP: 200, SourceQP: 100},
				{Src: alice, Dst: carol, DestQP: 400, SourceQP: 100},
			}
			others := []flowtable.Key{
				{Src: alice, Dst: carol, DestQP: 400, SourceQP: 101},
				{Src: carol, Dst: bob, DestQP: 400, SourceQP: 100},
				{Src: v6(alice), Dst: bob, DestQP: 400, SourceQP: 100},
			}
			if name != "in the map" && name != "in a hint" && name != "in the map, the other end" {
				vlan := flowtable.Key{Src: alice, Dst: bob, DestQP: 300, SourceQP: 100, OuterTag: packet.MakeTag(0x8100, 10)}
				vni := flowtable.Key{Src: alice, Dst: bob, DestQP: 300, SourceQP: 100}
				vni.SetTunnel(packet.Tunnel{Kind: packet.VXLAN, ID: 5}, 0)
				others = append(others, vlan, vni, flowtable.Key{Src: alice, Dst: bob, DestQP: 300, SourceQP: 100, Port: 1})
			}
			for _, k := range append(scopes, others...) {
				for worker := range 2 {
					if v := w.udTo(worker, k); !v.Usable() {
						t.Errorf("before the connection, %+v: %v", k, v.Answer)
					}
				}
			}
			c.connect(w)
			for worker := range 2 {
				for _, k := range scopes {
					if v := w.udTo(worker, k); v.Usable() {
						t.Errorf("worker %d, %+v: %v", worker, k, v.Answer)
					}
				}
				for _, k := range others {
					if v := w.udTo(worker, k); !v.Usable() {
						t.Errorf("worker %d, another QP, %+v: %v", worker, k, v.Answer)
					}
				}
				for _, k := range scopes { // that begin now
					k.DestQP += 1000
					if v := w.udTo(worker, k); v.Usable() {
						t.Errorf("worker %d, a new flow %+v: %v", worker, k, v.Answer)
					}
				}
			}
		})
	}
}

// other is a map in which alice's QP 100 is at the destination.
func other(t *testing.T) *QPMap {
	m, err := NewQPMap([]QPPair{{Source: bob, Destination: alice, SourceQP: 200, DestinationQP: 100}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestForgedDETHOverIPv6: as TestForgedDETH, of hosts with IPv6 addresses.
func TestForgedDETHOverIPv6(t *testing.T) {
	defer func(a, b packet.Addr) { alice, bob = a, b }(alice, bob)
	alice, bob = packet.Addr{Hi: 0x20010db8 << 32, Lo: 1}, packet.Addr{Hi: 0x20010db8 << 32, Lo: 2}
	w := newWire(t)
	k := flowtable.Key{Src: alice, Dst: carol, DestQP: 400, SourceQP: 100}
	if v := w.udTo(0, k); !v.Usable() {
		t.Errorf("before the connection: %v", v.Answer)
	}
	w.talk(100, 200, 5, 10, 52769)
	w.is(0, 200, 100, EvidencePort)
	if v := w.udTo(0, k); v.Usable() {
		t.Errorf("after it: %v", v.Answer)
	}
}

// TestConnectionEnds: the QP of a connection that has ended may serve UD.
func TestConnectionEnds(t *testing.T) {
	for name, end := range map[string]func(w *wire){
		"DREQ": func(w *wire) { w.release(0) },
		"aged": func(w *wire) {
			w.now += 200e9
			for range 1000 {
				w.sweep()
			}
		},
	} {
		w := newWire(t)
		w.connect(100, 200)
		w.talk(100, 200, psnB, 10, 7)
		k := flowtable.Key{Src: alice, Dst: carol, DestQP: 400, SourceQP: 100}
		if v := w.udTo(0, k); v.Usable() {
			t.Errorf("%s: before: %v", name, v.Answer)
		}
		end(w)
		if v := w.udTo(0, k); !v.Usable() {
			t.Errorf("%s: after: %v", name, v.Answer)
		}
	}
}

// TestForgedPacketsToAUDQP: packets of a connection that anyone forges to alice's UD QP. If bob sends UD packets to it, too, they change
// nothing. Otherwise notifications don't name the QP while the forged flow is in the flow table.
func TestForgedPacketsToAUDQP(t *testing.T) {
	for _, both := range []bool{true, false} {
		w := newWire(t)
		k := flowtable.Key{Src: alice, Dst: bob, DestQP: 900, SourceQP: 800}
		w.udTo(0, k)
		if both {
			w.ud(1, 800, 900)
		}
		for i := range uint32(50) {
			w.send(1, 800, packet.RCAcknowledge, i, 7)
		}
		if v := w.udTo(0, k); v.Usable() != both {
			t.Errorf("alice has got UD packets: %v; then requests: %v", both, v.Answer)
		}
		w.now += 200e9
		for range 1000 {
			w.sweep()
		}
		if v := w.udTo(0, k); !v.Usable() {
			t.Errorf("when the forged flow has aged: %v", v.Answer)
		}
	}
}

// TestUDQPGetsNoPeer: a QP that has sent and received UD packets is no end of a connection, whatever its packets look like. UD packets of one
// direction, which anyone there can forge, change nothing about a connection.
func TestUDQPGetsNoPeer(t *testing.T) {
	for _, c := range []struct {
		sent, received, port bool
	}{{true, true, true}, {true, true, false}, {true, false, true}, {false, true, true}} {
		for side, qp := range []uint32{100, 200} {
			w := newWire(t)
			if c.sent {
				w.ud(side, 900, qp)
			}
			if c.received {
				w.ud(1-side, qp, 900)
			}
			if c.port {
				w.talk(100, 200, 5, 50, 52769)
			} else {
				w.connect(100, 200)
				w.talk(100, 200, psnB, 50, 7)
			}
			if got, want := w.usable(0) || w.usable(1), !c.sent || !c.received; got != want {
				t.Errorf("QP %d has sent UD packets: %v, received: %v. Paired: %v, want %v", qp, c.sent, c.received, got, want)
			}
			if v := w.udTo(0, flowtable.Key{Src: alice, Dst: bob, DestQP: 900, SourceQP: 100}); side == 0 && v.Usable() != (c.sent && c.received) {
				t.Errorf("sent %v, received %v: the DETH of UD packets: %v", c.sent, c.received, v.Answer)
			}
		}
	}
}

// TestFacts: a set keeps four facts of a fact, prefers confirmed ones, forgets flows that have ended, and refuses what it can't keep.
func TestFacts(t *testing.T) {
	w := newWire(t)
	p, all := w.pairing.answers, make(qpFacts, 1)
	flow := func(n uint32) store.Ref {
		w.send(0, 1000+n, packet.RCSendOnly, 5, 7)
		return w.workers[0].ref(w.find(0, 1000+n))
	}
	confirmed := flow(0)
	p.change(confirmed, func(Answer) Answer { return makeAnswer(1, Confirmed, EvidencePort) })
	all.add(p, 1, confirmed)
	for n := range uint32(19) {
		if added, _ := all.add(p, 1, flow(1+n)); !added {
			t.Errorf("fact %d of a fact was refused", n)
		}
	}
	if !slices.ContainsFunc(all[0].of[:], func(w qpFact) bool { return w.flow == confirmed }) {
		t.Error("the confirmed flow was displaced")
	}
	kept := 0
	for _, w := range all[0].of {
		if w.hash == 1 {
			kept++
		}
	}
	if kept != 4 {
		t.Errorf("%d facts of a fact are kept", kept)
	}
	for n := range uint32(waysAFactSet - flowsAFact) {
		if added, _ := all.add(p, 2+uint64(n), flow(20+n)); !added {
			t.Errorf("fact %d was refused", n)
		}
	}
	if added, full := all.add(p, 100, flow(40)); added || !full {
		t.Error("a full set takes another fact")
	}
	if found, busy := all.find(p, 100); found || busy {
		t.Error("and finds it")
	}
	p.change(w.workers[0].ref(w.find(0, 1020)), func(a Answer) Answer { return a.closed(EndedDREQ) })
	if found, _ := all.find(p, 2); found {
		t.Error("a closed flow is a fact")
	}
	if added, _ := all.add(p, 100, flow(40)); !added {
		t.Error("a closed flow's fact has its place")
	}
	set := &all[0].of
	set[0], set[waysAFactSet-1] = qpFact{1, confirmed}, qpFact{}
	if added, _ := all.add(p, 1, confirmed); !added || set[waysAFactSet-1].hash != 0 {
		t.Error("a fact is kept twice")
	}
	all[0].lock.Try()
	if _, busy := all.find(p, 3); !busy || all.lose(3) {
		t.Error("under another worker's lock")
	}
	if added, full := all.add(p, 3, flow(41)); added || full {
		t.Error("added under another worker's lock")
	}
	all[0].lock.Release()
	if _, busy := all.find(p, 300); busy || !all.lose(300) {
		t.Error("busy without a lock")
	}
	if _, busy := all.find(p, 300); !busy {
		t.Error("a fact that found no space is certainly missing")
	}
}

// TestServiceUnderALock: while another worker looks up a QP for long, no DETH counts and no pair is made.
func TestServiceUnderALock(t *testing.T) {
	w := newWire(t)
	k := flowtable.Key{Src: alice, Dst: carol, DestQP: 400, SourceQP: 100}
	hold := func(all qpFacts, held bool) {
		for i := range all {
			if all[i].lock.Release(); held {
				all[i].lock.Try()
			}
		}
	}
	hold(w.pairing.connections, true)
	if v := w.udTo(0, k); v.Usable() {
		t.Errorf("a DETH: %v", v.Answer)
	}
	hold(w.pairing.connections, false)
	hold(w.pairing.datagrams, true)
	if w.talk(100, 200, 5, 10, 52769); w.usable(0) || w.usable(1) {
		t.Error("a pair is made")
	}
	if v := w.udTo(0, k); v.Usable() {
		t.Errorf("a DETH of a connection's QP: %v", v.Answer)
	}
	hold(w.pairing.datagrams, false)
	w.talk(100, 200, 15, 10, 52769)
	w.is(0, 200, 100, EvidencePort)
}
