package flowtable

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// Lookup finds the flow of each packet, adds flows that are not in the table, and stores the flows in out, which must be at least as long as
// packets. A flow that has been idle for longer than Aging ends, and another one begins. The flows live at least until the next Lookup or
// Sweep; after that, check Live. A Ref is zero if the packet has no flow (packet.NoFlow), or if the table is full and no flow may be evicted:
// the candidates are in this burst too, or 4 flows were already evicted for these 64 packets. Lookup never allocates.
//
// now is the time in nanoseconds, by the caller's clock. Sweep and Renew need times by the same clock.
//
// It works on up to 64 packets at a time. Most flows are in their first buckets. A flow that isn't there is looked for in its second bucket.
func (t *Table) Lookup(packets []packet.Record, now int64, out []Ref) {
	out = out[:len(packets)]
	for at := 0; at < len(packets); at += maxBurst {
		end := min(at+maxBurst, len(packets))
		some, refs := packets[at:end], out[at:end]
		missed := uint64(0)
		if vectors {
			missed = lookupFirst(t, some, now, refs)
		} else {
			missed = lookupFirstGo(t, some, now, refs)
		}
		if missed != 0 {
			missed = t.lookupSecond(some, now, refs, missed)
		}
		if missed != 0 {
			t.resolve(some, now, refs, missed)
		}
	}
	t.publish()
}

// The loops over a burst make no calls and check no bounds. The checks aren't needed: an index in a slot is always that of an entry, and a
// bucket's number is always below the number of buckets.

// lookupFirstGo looks for flows in their first buckets. It stores the hash of each packet, and the flow of each packet whose flow is there and
// isn't idle. It returns a bit for each other packet.
//
// It works in passes. A pass that touches memory does little else and doesn't wait for it. So the processor fetches as many cache lines in
// parallel as it can. If the pass also computed, the processor would fetch only a few.
func lookupFirstGo(t *Table, packets []packet.Record, now int64, out []Ref) (missed uint64) {
	hashes, candidates := t.hashes[:len(packets)], t.candidates[:len(packets)]
	hashAll(&t.secret, packets, hashes)
	for _, h := range hashes {
		t.firstOf(h).tags[0].Load()
	}
	for i, h := range hashes {
		candidates[i] = t.firstOf(h).flow(tag(h))
	}
	for _, x := range candidates {
		t.entryOf(x).state.Load()
	}
	aged := now - t.lasting
	for i, x := range candidates {
		e := t.entryOf(x)
		if !e.plainKey().same(KeyOf(&packets[i])) || e.lastSeen < aged {
			missed |= 1 << i
			continue
		}
		e.lastSeen = now
		out[i] = Ref{x, State(e.state.Load()).Generation()}
	}
	return missed
}

// agrees checks whether an entry, x, is the flow of a packet and the flow has had a packet since aged. If so, it stores the flow. Entry 0 is that
// of packets without a flow.
func (e *entry) agrees(p *packet.Record, x Index, aged, now int64, out *Ref) bool {
	if !e.plainKey().same(KeyOf(p)) || e.lastSeen < aged {
		return false
	}
	e.lastSeen = now
	*out = Ref{x, State(e.state.Load()).Generation()}
	return true
}

// lookupSecond does the same with second buckets, for the packets that missed has a bit for. It returns a bit for each packet that is left. A
// first bucket whose flows are all there saves access to the second one: so it is for most new flows.
func (t *Table) lookupSecond(packets []packet.Record, now int64, out []Ref, missed uint64) (left uint64) {
	left = missed
	for m := missed; m != 0; m &= m - 1 {
		h := t.hashes[bits.TrailingZeros64(m)%maxBurst]
		if t.firstOf(h).moved == 0 {
			missed &^= m & -m
			continue
		}
		_, b := t.bucketsOf(h)
		b.tags[0].Load()
	}
	for m := missed; m != 0; m &= m - 1 {
		i := bits.TrailingZeros64(m) % maxBurst
		h := t.hashes[i]
		_, b := t.bucketsOf(h)
		x := b.flow(tag(h))
		t.candidates[i] = x
		t.entryOf(x).state.Load()
	}
	for m := missed; m != 0; m &= m - 1 {
		i := bits.TrailingZeros64(m) % maxBurst
		if x := t.candidates[i]; t.entryOf(x).agrees(&packets[i], x, now-t.lasting, now, &out[i]) {
			left &^= m & -m
		}
	}
	return left
}

// resolve finds or adds, one after another, the flows of packets that are in neither bucket, at least not as the first one with their tag, or
// that are idle.
func (t *Table) resolve(packets []packet.Record, now int64, out []Ref, missed uint64) {
	t.victims.left = maxEvictions
	protected := false
	for ; missed != 0; missed &= missed - 1 {
		i := bits.TrailingZeros64(missed) % maxBurst
		k, h := KeyOf(&packets[i]), t.hashes[i]
		if k.same(t.entries[None].plainKey()) {
			t.entries[None].lastSeen = now
			out[i] = Ref{}
			continue
		}
		x := t.find(k, h)
		if x != None {
			t.seen(x, now)
			out[i] = t.Ref(x)
			continue
		}
		b, slot := t.emptySlot(h)
		if b == nil || t.unused.none(t.entries) {
			if !protected {
				protected = true
				t.protect(packets, now, missed)
			}
			b, slot = t.evictFor(b, slot, h, now)
		}
		if b != nil {
			x = t.insert(b, slot, k, h, now)
		}
		out[i] = t.Ref(x)
	}
}

// protect prevents that a flow of the burst is evicted for an earlier packet of the burst. It sets the times of flows that the first passes
// have missed to that of the burst, as if they had been found already.
func (t *Table) protect(packets []packet.Record, now int64, missed uint64) {
	for ; missed != 0; missed &= missed - 1 {
		i := bits.TrailingZeros64(missed) % maxBurst
		x := t.find(KeyOf(&packets[i]), t.hashes[i])
		if e := &t.entries[x]; now-e.lastSeen <= t.lasting {
			e.lastSeen = now
		}
	}
}

// find returns the entry of a key after a search of both buckets. It finds flows that the first passes missed: a flow that this burst has just
// added, or the second of two flows with the same tag.
func (t *Table) find(k *Key, h uint64) Index {
	b := t.firstOf(h)
	x := b.find(&t.Reader, k, tag(h))
	if x == None && b.moved != 0 {
		_, b = t.bucketsOf(h)
		x = b.find(&t.Reader, k, tag(h))
	}
	return x
}

// find is the flow of a key in a bucket.
func (b *bucket) find(r *Reader, k *Key, tag uint16) Index {
	for m := b.with(tag); m != 0; m &= m - 1 {
		if x := b.at(bits.TrailingZeros64(m)); r.entryOf(x).plainKey().same(k) {
			return x
		}
	}
	return None
}
