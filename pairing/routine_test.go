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
	const some = 4
	tab, l := learnerOf(t, some)
	packets := make([]packet.Record, rapid.IntRange(1, 16).Draw(t, "packets"))
	flows := make([]flowtable.Ref, len(packets))
	keys := make([]packet.Record, some)
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
	for from < len(packets) { // after each packet that isn't routine, go on with the next one
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
		from = got + 1
	}
}

// mostly draws the first value most of the time.
func mostly[T any](t *rapid.T, name string, usual T, others ...T) T {
	if rapid.IntRange(0, 9).Draw(t, name+" is usual") != 0 {
		return usual
	}
	return rapid.SampledFrom(others).Draw(t, name)
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
	l, err := p.Join(tab, make([]byte, LearnerSize(flows, flows)))
	if err != nil {
		t.Fatal(err)
	}
	return tab, l
}

// near draws a number at a distance from n that often is at a limit of a comparison.
func near(t *rapid.T, n uint32, name string) uint32 {
	limits := []int{0, 0, 0, 1, coarse - 1, coarse, coarse + 1, -1, -backMargin - 1, -backMargin, -backMargin + 1}
	return n + uint32(rapid.SampledFrom(limits).Draw(t, name))
}

// drawTrack gives a flow an answer and a track.
func drawTrack(t *rapid.T, l *Learner, x flowtable.Index) {
	sure := makeAnswer(7, Confirmed, EvidencePort)
	answer := rapid.SampledFrom([]Answer{sure, sure, 0, makeAnswer(7, Candidate, EvidencePort), sure.closed(EndedDREQ)}).Draw(t, "answer")
	if x != flowtable.None {
		l.setAnswer(x, answer)
	}
	k := &l.tracks[x]
	*k = track{packets: rapid.Uint32().Draw(t, "counted"), bytes: rapid.Uint32Max(carried).Draw(t, "bytes"), port: 9,
		slot: rapid.Uint32Max(1).Draw(t, "slot")}
	k.last = rapid.Uint32Max(packet.PSNMask).Draw(t, "last")
	k.acked = near(t, k.last, "acked")&packet.PSNMask | mostly[uint32](t, "acknowledged", ackedBit, 0)
	k.last |= mostly[uint32](t, "inexact", 0, inexact)
	k.wait(mostly[uint16](t, "wait", 9, 0, 1, 2, 3))
	k.known = uint32(l.table.State(x)) + mostly[uint32](t, "known", 0, 1)
}

// drawRoutine draws a packet of a flow that often is routine.
func drawRoutine(t *rapid.T, l *Learner, x flowtable.Index, p *packet.Record) {
	k := &l.tracks[x]
	*p = packet.Record{Len: mostly[uint32](t, "length", 58, longFrame-1, longFrame, 1<<32-1), SrcPort: mostly[uint16](t, "port", 9, 8)}
	p.Opcode = mostly(t, "opcode", packet.RCSendOnly, packet.RCReadRequest, packet.UDSendOnly, packet.CNP)
	p.PSN = near(t, k.last, "PSN") & packet.PSNMask
	if rapid.Bool().Draw(t, "response") {
		p.Opcode, p.PSN = packet.RCAcknowledge, near(t, k.acked, "response's PSN")&packet.PSNMask
	}
	p.Flow.QPs = mostly[uint64](t, "QP", 77, packet.GSIQP)
}
