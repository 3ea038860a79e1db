package store

import (
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/internal/keyhash"
	"github.com/cnpgate/cnpgate/internal/packet"
	"pgregory.net/rapid"
)

// modelStore is a small store, and what must be true of it.
type modelStore struct {
	*Store
	flows map[Ref]Slot
	pairs map[Ref]Ref
	from  map[Ref]uint64 // the source of a flow that was never paired
	news  map[int]bool   // groups that have got a flow since News was called
	next  uint32
	now   int64
}

// hashOf hashes a key with a secret that spreads the groups over the chains: with small numbers, 65 of one source may be in one, which is more than a search checks.
func hashOf(k *Key) uint64 {
	var secret [6]uint64
	keyhash.Spread(secret[:], 1)
	return k.Hash(&secret)
}

func never(Ref) bool { return false }

// begin gives a new flow a slot as pairing does, and returns false if it gets none.
func (m *modelStore) begin(t *rapid.T, k Key, side int, port uint16) (r Ref, ok bool) {
	source := k.Hosts[side].Lo * 0x9e3779b97f4a7c15
	most := m.unpaired.count(source)
	hash := hashOf(&k)
	g := m.Make(&k, hash)
	if g == nil && m.evict(t, source, most, true) {
		g = m.Make(&k, hash)
	}
	if g == nil {
		return 0, false
	}
	var on [Depths]*Group
	n := m.Way(g, port, &on)
	for _, g = range on[:n] {
		if !g.Full(side) {
			break
		}
	}
	if g.Full(side) {
		b := m.MakeBranch(g, port)
		if b == nil && m.evict(t, source, most, true) {
			b = m.MakeBranch(g, port)
		}
		if b != nil {
			g = b
		}
	}
	g.Lock().Try()
	slot, ok := m.Empty(g, side, m.now, never)
	if !ok && m.evict(t, source, most, false) {
		slot, ok = m.Empty(g, side, m.now, never)
	}
	if ok {
		m.next++
		r = MakeRef(0, 1, m.next)
		slot.Occupy(r, 0, source, m.now)
		m.flows[r], m.from[r], m.news[int(g.index)] = slot, source, true
	}
	m.Tidy(g)
	g.Lock().Release()
	return r, ok
}

// evict checks that only a flow without a peer flow has to go, and only for a source that has no more.
func (m *modelStore) evict(t *rapid.T, source uint64, most uint32, group bool) bool {
	victim, found, again := m.Reclaim(source, group, m.now, never)
	if !found {
		return again
	}
	r := victim.Ref()
	if n := victim.g.attached[0] + victim.g.attached[1]; group && n != 1 {
		t.Fatalf("flow %x is evicted for its group, in which %d slots are", r, n)
	}
	if r != 0 {
		if m.pairs[r] != 0 {
			t.Fatalf("flow %x is evicted, which has a peer flow", r)
		}
		if n := m.unpaired.count(victim.p.counted.Load()); victim.p.counted.Load() != 0 && n < most {
			t.Fatalf("flow %x is evicted, whose source has %d flows, for one of %d", r, n, most)
		}
		victim.Vacate(r)
		delete(m.flows, r)
		delete(m.from, r)
	}
	m.Evicted(&victim)
	return again
}

// checkNews: News has each group that has got a flow since the last call, once, and those between two hosts that TellBetween makes news.
func (m *modelStore) checkNews(t *rapid.T, k *Key) {
	all := m.News(nil)
	for _, group := range all {
		if !m.news[group] {
			t.Fatalf("group %d is news, but has got no flow, or twice", group)
		}
		delete(m.news, group)
	}
	if len(m.news) > 0 {
		t.Fatalf("groups %v have got flows, and aren't news", m.news)
	}
	m.TellBetween(k)
	all = m.News(nil)
	for _, group := range all {
		if m.groups[group].key.Hosts != k.Hosts {
			t.Fatalf("group %d is of other hosts", group)
		}
	}
	if g := m.Find(k, hashOf(k)); g != nil && !slices.Contains(all, int(g.index)) {
		t.Fatalf("groups %v are between two hosts, but not %d", all, g.index)
	}
}

func (m *modelStore) check(t *rapid.T) {
	for r, slot := range m.flows {
		if !slot.Has(r) || m.At(slot.x) != slot {
			t.Fatalf("flow %x has lost its slot", r)
		}
		if at, ok := m.Slot(slot.g, slot.Side(), slot.Number()); !ok || at != slot {
			t.Fatalf("flow %x isn't in its group", r)
		}
	}
	counts := map[uint64]uint32{}
	for _, source := range m.from {
		counts[source]++
	}
	for source, n := range counts {
		if got := m.unpaired.count(source); got < n {
			t.Fatalf("a source has %d flows that were never paired, %d are counted", n, got)
		}
	}
	nodes, slots, groups := 0, 0, 0
	branches := make([]uint32, len(m.groups))
	for _, head := range m.heads {
		for x := head.first; x != 0; x = m.groups[x].next {
			g := &m.groups[x]
			if m.group(&g.key, g.hash, g.depth, g.number) != g {
				t.Fatalf("group %d isn't found", x)
			}
			groups++
			if g.attached[0]+g.attached[1] == 0 && g.branches.Load() == 0 {
				t.Fatalf("group %d has no slots and no branches", x)
			}
			if g.depth > 0 {
				branches[g.beside[0]]++
			}
			for side := range 2 {
				n := 0
				for i := range g.Used(side) {
					if _, ok := m.Slot(g, side, i); ok {
						n++
					}
				}
				if n != int(g.attached[side]) {
					t.Fatalf("group %d, side %d: %d slots, %d are counted", x, side, n, g.attached[side])
				}
				slots += n
				nodes += m.below(g.trees[side], int(g.heights[side]))
			}
		}
	}
	for x, n := range branches {
		if got := m.groups[x].branches.Load(); n > 0 && n != got {
			t.Fatalf("group %d has %d branches, %d are counted", x, n, got)
		}
	}
	free := 0
	for x := m.freeNode; x != 0; x = m.nodes[x][0] {
		free++
	}
	if nodes+free != int(m.usedNodes) {
		t.Fatalf("%d nodes are in trees, %d are free, of %d", nodes, free, m.usedNodes)
	}
	free = 0
	for x := m.freeSlot; x != 0; x = m.slots[x].free {
		free++
	}
	if slots+free != int(m.usedSlots) {
		t.Fatalf("%d slots are in groups, %d are free, of %d", slots, free, m.usedSlots)
	}
	free = 0
	for x := m.freeGroup; x != 0; x = m.groups[x].next {
		free++
	}
	if groups+free != int(m.usedGroups) {
		t.Fatalf("%d groups are in use, %d are free, of %d", groups, free, m.usedGroups)
	}
}

// moveAll moves the flows without a peer flow of side 1 of a group to that of another scope, as far as it has space.
func (m *modelStore) moveAll(t *rapid.T, k *Key, scope packet.Scope) {
	g := m.Find(k, hashOf(k))
	other := *k
	other.Scope = scope
	to := m.Make(&other, hashOf(&other))
	if g == nil || to == nil || g == to || to.branches.Load() > 0 {
		if to != nil {
			m.Tidy(to)
		}
		return
	}
	before, moved := to.Flows(1), 0
	for n := range SlotsASide {
		slot, ok := m.Occupied(g, 1, n)
		if !ok || m.pairs[slot.Ref()] != 0 {
			continue
		}
		r := slot.Ref()
		if slot.Move(to) {
			m.flows[r], m.news[int(to.index)] = slot, true
			moved++
		}
	}
	if to.Flows(1) != before+moved {
		t.Fatalf("%d flows have moved to a side of %d, it has %d", moved, before, to.Flows(1))
	}
	m.Tidy(to)
	m.Tidy(g)
}

// below counts the nodes of a tree.
func (m *modelStore) below(x uint32, height int) (n int) {
	if x == 0 || height == 0 {
		return 0
	}
	for _, y := range m.nodes[x] {
		n += m.below(y, height-1)
	}
	return n + 1
}

// TestStoreModel: whatever flows begin, are paired and end, each keeps its slot until it ends or is evicted, no slot, node or group is lost, and
// evicted are only flows without a peer flow.
func TestStoreModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &modelStore{Store: newStore(rapid.IntRange(1, 3000).Draw(t, "flows")), flows: map[Ref]Slot{}, pairs: map[Ref]Ref{}, from: map[Ref]uint64{}, news: map[int]bool{}}
		hosts := rapid.SampledFrom([]uint64{1, 2, 20, 1000}).Draw(t, "hosts")
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			m.now += searchPause / 2
			k := Key{Hosts: [2]packet.Addr{{Lo: rapid.Uint64Range(1, hosts).Draw(t, "a")}, {Lo: rapid.Uint64Range(1, hosts).Draw(t, "b")}}}
			ports := rapid.SampledFrom([]uint32{1, 3, 1 << 16}).Draw(t, "ports")
			many := rapid.IntRange(1, 600).Draw(t, "many")
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0: // connections
				for i := range many {
					port := uint16(uint32(i) * 40503 % ports)
					a, there := m.begin(t, k, 0, port)
					b, back := m.begin(t, k, 1, port)
					slot, here := m.flows[a]
					if peer := m.flows[b]; there && back && here && peer.g == slot.g {
						slot.Pair(&peer, false)
						m.pairs[a], m.pairs[b] = b, a
						delete(m.from, a)
						delete(m.from, b)
					}
				}
			case 1: // a source that sends to many
				for i := range many {
					k.Hosts[1].Lo = uint64(1<<20 + i)
					m.begin(t, k, 0, 0)
				}
			case 2: // flows of one direction between two hosts
				for i := range many {
					m.begin(t, k, 1, uint16(uint32(i)*40503%ports))
				}
			case 3: // flows of one direction move to another scope
				m.moveAll(t, &k, rapid.SampledFrom([]packet.Scope{0, 1 << 16, 2 << 16}).Draw(t, "scope"))
			default: // flows end
				for ; many > 0; many-- {
					r := MakeRef(0, 1, 1+uint32(many)*2654435761%max(m.next, 1))
					slot, lives := m.flows[r]
					if !lives {
						continue
					}
					slot.Vacate(r)
					if peer := m.pairs[r]; peer != 0 { // which is no longer protected
						delete(m.pairs, peer)
					}
					delete(m.pairs, r)
					delete(m.flows, r)
					delete(m.from, r)
				}
			}
			m.check(t)
			if rapid.Bool().Draw(t, "news") {
				m.checkNews(t, &k)
			}
		}
	})
}
