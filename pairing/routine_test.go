package pairing

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// Routine stops where routine, which is its specification, finds the first packet that isn't routine, and counts the same packets in the same way.
func TestRoutineTwins(t *testing.T) { rapid.Check(t, checkRoutine) }

func FuzzRoutineTwins(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkRoutine)) }

func checkRoutine(t *rapid.T) {
	tab, l := learnerOf(t, 4)
	packets := make([]packet.Record, rapid.IntRange(1, 8).Draw(t, "packets"))
	flows := make([]flowtable.Ref, len(packets))
	keys := make([]packet.Record, 4)
	for i := range keys {
		keys[i].Flow.QPs = uint64(i + 1)
	}
	refs := make([]flowtable.Ref, len(keys))
	tab.Lookup(keys, 1, refs)
	for _, r := range append(refs, flowtable.Ref{}) {
		drawTrack(t, l, r.Index)
	}
	for i := range packets {
		flows[i] = rapid.SampledFrom(append(refs, flowtable.Ref{})).Draw(t, "flow")
		drawRoutine(t, l, flows[i].Index, &packets[i])
	}
	from := rapid.IntRange(0, len(packets)).Draw(t, "from")
	before := slices.Clone(l.tracks)
	got := l.Routine(flows, packets, from)
	after := slices.Clone(l.tracks)
	copy(l.tracks, before)
	want := from
	for want < len(packets) && l.routine(flows[want].Index, &packets[want]) {
		want++
	}
	if got != want || !slices.Equal(after, l.tracks) {
		t.Fatalf("Routine stops at %d, want %d\ntracks %+v\nwant   %+v", got, want, after, l.tracks)
	}
}

// learnerOf is a learner about a table of some flows.
func learnerOf(t *rapid.T, flows int) (*flowtable.Table, *Learner) {
	tab, err := flowtable.New(make([]byte, flowtable.Size(flows)), flowtable.Config{Capacity: flows})
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(make([]byte, Size(flows)), Config{Flows: flows})
	if err != nil {
		t.Fatal(err)
	}
	l, err := p.Join(tab, make([]byte, LearnerSize(flows)))
	if err != nil {
		t.Fatal(err)
	}
	return tab, l
}

// near draws a number at a distance from n that often is at a limit of a comparison.
func near(t *rapid.T, n uint32, name string) uint32 {
	return n + uint32(rapid.SampledFrom([]int{0, 0, 1, 2, coarse - 1, coarse, coarse + 1, -1, -backMargin - 1, -backMargin, -backMargin + 1, 1 << 23}).Draw(t, name))
}

// drawTrack gives a flow an answer and a track.
func drawTrack(t *rapid.T, l *Learner, x flowtable.Index) {
	answer := rapid.SampledFrom([]Answer{0, makeAnswer(7, Candidate, EvidencePort), makeAnswer(7, Confirmed, EvidencePort),
		makeAnswer(7, Confirmed, EvidencePort).closed(EndedDREQ)}).Draw(t, "answer")
	if x != flowtable.None {
		l.setAnswer(x, answer)
	}
	k := &l.tracks[x]
	*k = track{packets: rapid.Uint32().Draw(t, "counted"), bytes: rapid.Uint32Max(carried).Draw(t, "bytes"), last: rapid.Uint32Max(psnMask).Draw(t, "last"), port: 9}
	k.acked = near(t, k.last, "acked")&psnMask | rapid.SampledFrom([]uint32{0, ackedBit}).Draw(t, "acknowledged")
	k.last |= rapid.SampledFrom([]uint32{0, 0, unsettled}).Draw(t, "unsettled")
	k.wait(rapid.SampledFrom([]uint16{0, 1, 2, 3, 100}).Draw(t, "wait"))
	k.known = rapid.SampledFrom([]uint32{uint32(l.table.State(x)), uint32(l.table.State(x)), known(answer) + 1}).Draw(t, "known")
}

// drawRoutine draws a packet of a flow that often is routine.
func drawRoutine(t *rapid.T, l *Learner, x flowtable.Index, p *packet.Record) {
	k := &l.tracks[x]
	*p = packet.Record{
		PSN:     near(t, rapid.SampledFrom([]uint32{k.last, k.acked}).Draw(t, "of"), "PSN") & psnMask,
		Len:     rapid.SampledFrom([]uint32{58, longFrame - 1, longFrame, 1<<32 - 1}).Draw(t, "length"),
		SrcPort: rapid.SampledFrom([]uint16{9, 9, 9, 8}).Draw(t, "port"),
		Opcode: rapid.SampledFrom([]packet.Opcode{packet.RCSendOnly, packet.RCAcknowledge, packet.RCReadRequest, packet.UDSendOnly,
			packet.CNP}).Draw(t, "opcode"),
	}
	p.Flow.QPs = rapid.SampledFrom([]uint64{packet.GSIQP, 77}).Draw(t, "QP")
}
