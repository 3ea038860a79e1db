package flowtable

import (
	"bytes"
	"slices"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// lookupFirst and its specification in Go give the same results on every table and burst, and change the table in the same way.
func TestLookupFirstTwins(t *testing.T) { rapid.Check(t, checkLookupFirst) }

func FuzzLookupFirstTwins(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkLookupFirst)) }

func checkLookupFirst(t *rapid.T) {
	capacity := rapid.IntRange(1, 20).Draw(t, "capacity")
	c := Config{Capacity: capacity, Aging: rapid.SampledFrom([]int64{0, 100}).Draw(t, "aging"), Seed: rapid.Uint64().Draw(t, "seed")}
	packets := make([]packet.Record, rapid.IntRange(1, maxBurst).Draw(t, "burst"))
	for i := range packets {
		packets[i].Flow = drawWords(t)
	}
	now := rapid.Int64().Draw(t, "now")
	memory := make([]byte, Size(capacity)+lineSize)
	memory = memory[-uintptr(unsafe.Pointer(&memory[0]))%lineSize:][:Size(capacity)]
	tab, err := New(memory, c)
	if err != nil {
		t.Fatal(err)
	}
	scramble(t, tab, packets, now)
	before := bytes.Clone(memory)
	result := func(lookup func(*Table, []packet.Record, int64, []Ref) uint64) (uint64, []Ref, []uint64, []Index, []byte) {
		copy(memory, before)
		out := slices.Repeat([]Ref{{77, 88}}, len(packets)+1)
		missed := lookup(tab, packets, now, out[:len(packets)])
		return missed, out, slices.Clone(tab.hashes[:len(packets)]), slices.Clone(tab.candidates[:len(packets)]), bytes.Clone(memory)
	}
	missed, out, hashes, candidates, after := result(lookupFirst)
	wantMissed, wantOut, wantHashes, wantCandidates, wantAfter := result(lookupFirstGo)
	if missed != wantMissed || !slices.Equal(out, wantOut) || !slices.Equal(hashes, wantHashes) || !slices.Equal(candidates, wantCandidates) {
		t.Fatalf("missed %#x, flows %v, hashes %x, candidates %v\nwant   %#x, flows %v, hashes %x, candidates %v",
			missed, out, hashes, candidates, wantMissed, wantOut, wantHashes, wantCandidates)
	}
	if !bytes.Equal(after, wantAfter) {
		t.Fatal("the table differs")
	}
}

// drawWords draws a key: of IPv4, of IPv6, NoFlow, or any other.
func drawWords(t *rapid.T) packet.FlowWords {
	word := rapid.OneOf(rapid.Uint64Range(0, 3), rapid.Uint64())
	k := packet.FlowWords{QPs: word.Draw(t, "QPs"), Scope: packet.Scope(word.Draw(t, "scope"))}
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		k.Src, k.Dst = packet.Addr{Lo: word.Draw(t, "src")}, packet.Addr{Lo: word.Draw(t, "dst")}
	case 1:
		k = packet.NoFlow
	default:
		k.Src = packet.Addr{Hi: word.Draw(t, "src high"), Lo: word.Draw(t, "src")}
		k.Dst = packet.Addr{Hi: word.Draw(t, "dst high"), Lo: word.Draw(t, "dst")}
	}
	return k
}

// scramble puts the burst's tags into any slots and its keys into any entries, some with a bit changed.
func scramble(t *rapid.T, tab *Table, packets []packet.Record, now int64) {
	some := rapid.IntRange(0, len(packets)-1)
	for i := range tab.buckets {
		b := &tab.buckets[i]
		for slot := range slots {
			b.flows[slot].Store(rapid.Uint32Range(0, uint32(tab.Capacity())).Draw(t, "index"))
			if rapid.Bool().Draw(t, "used") {
				h := tab.hash(KeyOf(&packets[some.Draw(t, "tag of")]))
				b.tags[slot/tagsAWord].Add(uint64(tag(h)) << (slot % tagsAWord * tagBits))
			}
		}
	}
	for i := range tab.entries {
		e := &tab.entries[i]
		if i != 0 {
			k := *KeyOf(&packets[some.Draw(t, "key of")])
			if rapid.IntRange(0, 3).Draw(t, "other") == 0 {
				flip(&k, rapid.IntRange(0, 8*8*keyWords-1).Draw(t, "bit"))
			}
			*e.plainKey() = k
			e.state.Store(rapid.Uint64().Draw(t, "state"))
		}
		e.lastSeen = now - rapid.OneOf(rapid.SampledFrom([]int64{-1, 99, 100, 101}), rapid.Int64()).Draw(t, "idle")
	}
}
