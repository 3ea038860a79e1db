package flowtable

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// What happens to a flow that has no place yet, or has lost the one it had.

// newCrowd is two hosts with so many flows that the one to QP 200, which RDMA-CM has named, has found no place.
func newCrowd(t *testing.T) *wire {
	w := newWire(t)
	for i := range uint32(placesASide) {
		w.send(0, 1000+i, packet.RCSendOnly, 0, 0xc000)
	}
	w.connect(100, 200)
	for i := range uint32(50) {
		w.send(0, 200, packet.RCSendOnly, i, 52769)
	}
	w.is(0, 200, 100, EvidenceCM)
	if _, ok := w.tables[0].placeOf(w.find(0, 200)); ok {
		t.Fatal("the flow has a place: not what was to be tested")
	}
	return w
}

// A flow that RDMA-CM names but that found no place gets one once there is room.
func TestPlaceLater(t *testing.T) {
	w := newCrowd(t)
	// the others age
	for s := range 200 {
		w.now += 1e9
		w.send(0, 200, packet.RCSendOnly, uint32(50+s), 52769)
		w.tables[0].Sweep(w.now)
	}
	if f := w.tables[0].Stats().Flows; f != 1 {
		t.Fatal("flows", f)
	}
	for i := range uint32(40000) {
		w.send(0, 200, packet.RCSendOnly, 250+i, 52769)
	}
	w.is(0, 200, 100, EvidenceCM)
	if _, ok := w.tables[0].placeOf(w.find(0, 200)); !ok {
		t.Error("no place 40000 packets after there was room again")
	}
	w.release(0)
	w.now += 2e9
	if v := w.view(0, 200); v.Ended == Open {
		t.Errorf("the connection has been released: %+v", v)
	}
	for i := range uint32(100) {
		w.send(0, 200, packet.RCSendOnly, 40250+i, 52769)
	}
	if v := w.view(0, 200); v.State == Confirmed && v.Ended == Open {
		t.Errorf("100 packets after the release: %+v", v)
	}
}

// A flow whose first request found the pairing claimed and that enters with a response.
func TestEntersWithAResponse(t *testing.T) {
	w := newWire(t)
	w.connect(100, 200)
	w.send(1, 100, packet.RCSendOnly, 77, 52769)
	if !w.pairing.claim() {
		t.Fatal()
	}
	w.send(0, 200, packet.RCSendOnly, 5, 52769) // another worker has the claim
	w.pairing.release()
	w.send(0, 200, packet.RCAcknowledge, 77, 52769)
	w.send(1, 100, packet.RCSendOnly, 78, 52769)
	w.send(0, 200, packet.RCAcknowledge, 78, 52769)
	w.is(0, 200, 100, EvidenceCM)
	w.is(1, 100, 200, EvidenceCM)
	for i := range uint32(20) {
		w.send(0, 200, packet.RCSendOnly, 6+i, 52769)
		w.send(1, 100, packet.RCAcknowledge, 6+i, 52769)
		w.is(0, 200, 100, EvidenceCM)
		w.is(1, 100, 200, EvidenceCM)
		if t.Failed() {
			t.Fatalf("packet %d: %+v", i, w.tables[1].Stats())
		}
	}
}

// A receiver's CNP to a QP of a connection that the map names says nothing of the other connection between the two hosts.
func TestCNPOfAMappedFlow(t *testing.T) {
	w := newWire(t)
	m, err := NewQPMap([]QPPair{{Source: alice, Destination: bob, SourceQP: 101, DestinationQP: 201}})
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range w.tables {
		table.SetStatic(m)
	}
	w.talk(100, 200, 5, 30, 52769)
	w.talk(101, 201, 500, 30, 50000)
	w.is(0, 200, 100, EvidencePort)
	w.is(0, 201, 101, EvidenceStatic)
	k := w.key(1, 101) // bob says that alice's QP 101 congests
	w.tables[1].ObserveCNP(&k)
	w.is(0, 200, 100, EvidencePort)
	w.is(1, 100, 200, EvidencePort)
	w.talk(100, 200, 35, 3000, 52769)
	w.is(0, 200, 100, EvidencePort)
}

// A flow that has lost its place to another, and which the map names before its next packet, writes nothing there.
func TestConfirmedWithoutItsPlace(t *testing.T) {
	w := newWire(t)
	w.talk(100, 200, 5, 5, 52769)
	w.is(0, 200, 100, EvidencePort)
	w.send(1, 100, packet.RCAcknowledge, 9, 40000) // QP 100 serves another
	w.is(0, 200, 0, 0)
	for i := range uint32(8) {
		w.send(0, 300+i, packet.RCSendOnly, 0x400000, 40001)
	}
	m, err := NewQPMap([]QPPair{{Source: alice, Destination: bob, SourceQP: 100, DestinationQP: 200}})
	if err != nil {
		t.Fatal(err)
	}
	w.tables[0].SetStatic(m)
	for range 100 {
		w.now += 1e6
		w.tables[0].Sweep(w.now)
	}
	w.is(0, 200, 100, EvidenceStatic)
	w.send(0, 200, packet.RCAcknowledge, 0x1234, 52769)
	for i := range uint32(8) {
		pl, ok := w.tables[0].placeOf(w.find(0, 300+i))
		if ok && pl.ack().valid() {
			t.Errorf("the flow to QP %d has answered %#x", 300+i, pl.ack().last())
		}
	}
}

// A flow that has lost its place and is silent since, while the page of the place is given up: whoever looks at the flow finds no place.
func TestPlaceInAFreePage(t *testing.T) {
	w := newWire(t)
	last := len(w.pairing.groups) - 1
	host := func(i, side int) Key {
		a, b := alice, bob
		if i != last {
			a.Lo += uint64(i) << 8
			b.Lo += uint64(i) << 8
		}
		if side == 1 {
			return Key{Src: b, Dst: a, DestQP: 100, Port: 1}
		}
		return Key{Src: a, Dst: b, DestQP: 200}
	}
	send := func(i, side int, port uint16) {
		w.now += 1000
		k, x := [1]Key{host(i, side)}, [1]Index{}
		w.tables[side].Lookup(k[:], w.now, x[:])
		op := packet.RCSendOnly
		if side == 1 {
			op = packet.RCAcknowledge
		}
		p := packet.Parsed{Kind: packet.RoCEv2, Opcode: op, DestQP: k[0].DestQP, PSN: 5, SrcPort: port, Ext: 12}
		observe(w.tables[side], x[0], &p, make([]byte, 64), w.now)
	}
	for i := 1; i <= last; i++ {
		send(i, 0, 52769)
		send(i, 1, 52769)
	}
	w.is(0, 200, 100, EvidencePort)
	start := w.now
	w.now = start + 30e9
	for i := 1; i <= last; i++ { // all but two hosts go on
		if i != last-1 {
			send(i, 0, 52769)
			send(i, 1, 52769)
		}
	}
	send(last, 1, 40000) // QP 100 of the last two hosts serves another connection now, and the flow back loses its place
	w.is(0, 200, 0, 0)
	sweep := func(side int, at int64) {
		w.now = at
		for range 100 {
			w.now += 1e6
			w.tables[side].Sweep(w.now)
		}
	}
	for at := start + 61e9; at < start+80e9; at += 5e9 {
		sweep(0, at)
		sweep(1, at)
	}
	more := last + 1
	enter := func() { // hosts that are new find room
		for range 40 {
			w.now += 2e6
			send(more, 0, 52769)
			k := host(more, 0)
			more++
			if w.tables[0].tracks[w.tables[0].find(&k, w.tables[0].hash(&k))].slot != 0 {
				break
			}
		}
	}
	enter()
	for at := start + 91e9; at < start+150e9; at += 5e9 {
		sweep(1, at) // the other worker is behind
	}
	enter()
	for _, g := range []int{last - 1, last} {
		t.Logf("group %d: live %v emptied %v, more %d, freePage %d, flows %d %d", g, w.pairing.groups[g].live, w.pairing.emptied(&w.pairing.groups[g]), more-last, w.pairing.freePage, w.tables[0].flows, w.tables[1].flows)
	}
	x := w.find(0, 200)
	if x == None {
		t.Fatal("gone")
	}
	slot := w.tables[0].tracks[x].slot
	t.Logf("slot %d, page %d, which leads to %d of %d groups, owner %x", slot, slot/placesAPage, w.pairing.pages[slot/placesAPage].group, last+1, w.pairing.pages[slot/placesAPage].owner[slot%placesAPage].Load())
	w.tables[0].View(x)
}
