package episode

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/notify"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing"
)

const (
	ms   = int64(1e6)
	tick = 50 * ms
	kMin = 1000
)

var wan = Queue{1, 0}

// step is what happens in a tick: the queue's peak, packets marked, flows sampled as flow=bytes, and senders notified as flow=bytes.
type step struct {
	peak, marked uint64
	sampled      map[uint32]uint64
	notified     map[uint32]uint64
}

// play plays steps a tick apart, then calm until the episodes are over, and says what happened.
func play(t *Tracker, steps []step) string {
	var events []string
	now, marked := int64(1e15), uint64(0)
	look := func(s *step) {
		now += tick
		for flow, bytes := range s.notified {
			t.Notified(0, &notify.NotificationRecord{Message: notify.Message{FlowBytes: bytes, Out: 1, Cause: congestion.ByDepth, Format: packet.LongHaulCNP}, Time: now, Flow: flowtable.Ref{Index: flowtable.Index(flow), Generation: 1}, Metrics: congestion.Metrics{Depth: s.peak}})
		}
		var records []dataplane.FlowRecord
		for flow, bytes := range s.sampled {
			records = append(records, dataplane.FlowRecord{Flow: flowtable.Ref{Index: flowtable.Index(flow), Generation: 1}, Traffic: pairing.Traffic{Bytes: bytes}})
		}
		t.Sampled(wan, 0, now, records)
		marked += s.marked
		if e, event := t.Look(now, wan, State{Peak: s.peak, Above: kMin, Marked: marked}); event != None {
			name := map[Event]string{Began: "began", Ended: "ended"}[event]
			events = append(events, fmt.Sprintf("%d %s", (now-1e15)/tick, name))
			if event == Ended {
				events = append(events, fmt.Sprintf("%d to %d, peak %d, marked %d, sent %d", (e.Start-1e15)/tick, (e.End-1e15)/tick, e.Peak, e.Marked,
					e.Notifications[packet.LongHaulCNP]))
			}
		}
	}
	for i := range steps {
		look(&steps[i])
	}
	for len(t.Open()) > 0 {
		look(&step{})
	}
	return strings.Join(events, "; ")
}

func TestEpisodes(t *testing.T) {
	full := step{peak: 5000, marked: 10}
	calm := step{peak: kMin, marked: 0}
	for _, c := range []struct {
		name  string
		steps []step
		want  string
	}{
		{"none", []step{calm, calm, {}}, ""},
		{"at K_min", []step{{peak: kMin}}, ""},
		{"above it", []step{calm, {peak: kMin + 1}}, "2 began; 22 ended; 1 to 2, peak 1001, marked 0, sent 0"},
		{"longer", []step{full, {peak: 9000, marked: 5}, full}, "1 began; 23 ended; 1 to 3, peak 9000, marked 25, sent 0"},
		{"marks before it don't count", []step{{marked: 7}, full}, "2 began; 22 ended; 1 to 2, peak 5000, marked 10, sent 0"},
		{"a short calm is part of it", append(append([]step{full}, make([]step, 18)...), full), "1 began; 40 ended; 1 to 20, peak 5000, marked 20, sent 0"},
		{"a long one is not", append(append([]step{full}, make([]step, 21)...), full),
			"1 began; 21 ended; 1 to 1, peak 5000, marked 10, sent 0; 23 began; 43 ended; 22 to 23, peak 5000, marked 10, sent 0"},
		{"a notification begins one", []step{{peak: 10, notified: map[uint32]uint64{1: 500}}}, "1 began; 21 ended; 1 to 1, peak 10, marked 0, sent 1"},
		{"notifications count", []step{full, {peak: 6000, notified: map[uint32]uint64{1: 5, 2: 5}}}, "1 began; 22 ended; 1 to 2, peak 6000, marked 10, sent 2"},
	} {
		if got := play(NewTracker(), c.steps); got != c.want {
			t.Errorf("%s: %s\nexpected %s", c.name, got, c.want)
		}
	}
}

// TestSlowed: the rates before and after the first notification, of a flow whose bytes by tick are given.
func TestSlowed(t *testing.T) {
	for _, c := range []struct {
		name          string
		bytes         []uint64 // arrived by each tick; 0: not sampled
		notifiedAt    int
		before, after string // bit/s
		slowed        string
	}{
		{"halved", []uint64{1000, 2000, 3000, 3500, 4000}, 2, "160000", "80000", "true"},
		{"went on", []uint64{1000, 2000, 3000, 4000, 5000}, 2, "160000", "160000", "false"},
		{"a little", []uint64{1000, 2000, 3000, 3900, 4800}, 2, "160000", "144000", "false"},
		{"stopped", []uint64{1000, 2000, 3000, 3000, 3000, 3000, 3000, 3000}, 2, "160000", "0", "true"},
		{"silent for a moment", []uint64{1000, 2000, 3000, 3500, 3500, 3500}, 2, "160000", "80000", "true"},
		{"slowly", []uint64{1000, 2000, 3000, 3900, 4400, 4600}, 2, "160000", "32000", "true"},
		{"faster", []uint64{1000, 1500, 2000, 4000, 6000}, 2, "80000", "320000", "false"},
		{"not seen before", []uint64{0, 0, 3000, 3500, 4000}, 2, "?", "80000", "?"},
		{"not seen after", []uint64{1000, 2000, 3000}, 2, "160000", "?", "?"},
	} {
		tracker := NewTracker()
		var steps []step
		for i, bytes := range c.bytes {
			s := step{peak: 5000}
			switch {
			case i == c.notifiedAt:
				s.notified = map[uint32]uint64{7: bytes}
			case bytes > 0:
				s.sampled = map[uint32]uint64{7: bytes}
			default:
				s.sampled = map[uint32]uint64{8: 1}
			}
			steps = append(steps, s)
		}
		play(tracker, steps)
		all := tracker.Episodes()
		if len(all) != 1 || !all[0].Over {
			t.Fatalf("%s: %d episodes", c.name, len(all))
		}
		for _, f := range all[0].Flows {
			if f.Ref.Index != 7 {
				continue
			}
			slowed, known := f.Slowed()
			got := []string{"?", "?", "?"}
			if f.Before.Known {
				got[0] = fmt.Sprint(f.Before.BPS)
			}
			if f.After.Known {
				got[1] = fmt.Sprint(f.After.BPS)
			}
			if known {
				got[2] = fmt.Sprint(slowed)
			}
			if want := c.before + " " + c.after + " " + c.slowed; strings.Join(got, " ") != want {
				t.Errorf("%s: %s, expected %s", c.name, strings.Join(got, " "), want)
			}
		}
	}
}

// TestAfterCalm: the rate after is not that of a sender that speeds up again once the queue is calm.
func TestAfterCalm(t *testing.T) {
	tracker, bytes := NewTracker(), func(n uint64) map[uint32]uint64 { return map[uint32]uint64{7: n} }
	play(tracker, []step{{peak: 5000, sampled: bytes(1000)}, {peak: 5000, sampled: bytes(2000)}, {peak: 5000, notified: bytes(3000)},
		{sampled: bytes(3100)}, {sampled: bytes(3200)}, {sampled: bytes(9000)}, {sampled: bytes(15000)}})
	f := tracker.Episodes()[0].Flows[0]
	if f.After.BPS != 16000 || f.Before.BPS != 160000 || f.Bytes != 13000 || f.Notifications != 1 {
		t.Errorf("%+v", f)
	}
}

// TestMeasuredByWorker: if the flow has no earlier record, the rate before is the worker's measurement.
func TestMeasuredByWorker(t *testing.T) {
	tracker := NewTracker()
	tracker.Notified(3, &notify.NotificationRecord{Message: notify.Message{Out: 1, Cause: congestion.ByGrowth, FlowRate: 20}, Time: 5})
	if f := tracker.Episodes()[0].Flows[0]; f.Before != (Rate{160_000, true}) || f.Worker != 3 {
		t.Errorf("%+v", f)
	}
}

// TestBefore: no flow was faster than its port, whatever a worker has measured of a burst; and of one that was in the episode before, the rate is that of the
// time between.
func TestBefore(t *testing.T) {
	tracker := NewTracker()
	tracker.Lines = []uint64{1e9, 1e9}
	burst := notify.NotificationRecord{Message: notify.Message{Out: 1, Cause: congestion.ByDepth, FlowRate: 2_900_000_000 / 8000, FlowBytes: 1000}, Time: 5, Flow: flowtable.Ref{Index: 7, Generation: 1}}
	tracker.Notified(0, &burst)
	if f := tracker.Episodes()[0].Flows[0]; f.Before != (Rate{1e9, true}) {
		t.Errorf("of a burst: %+v", f.Before)
	}
	tracker = NewTracker()
	play(tracker, []step{{peak: 5000}, {peak: 5000, sampled: map[uint32]uint64{7: 1000}}})
	burst.Time, burst.FlowBytes = 1e15+2*tick+2e9, 1000+15_000_000 // 60 Mbit/s
	tracker.Notified(0, &burst)
	if f := tracker.Episodes()[1].Flows[0]; f.Before != (Rate{60e6, true}) {
		t.Errorf("after an earlier episode: %+v", f.Before)
	}
}

// TestAtFairRate: a sender that does not slow down is at its fair rate if the law allows it what it sends.
func TestAtFairRate(t *testing.T) {
	for _, c := range []struct {
		before, after, fair uint64
		want                bool
	}{{100, 100, 95, true}, {100, 100, 50, false}, {100, 40, 95, false}, {100, 100, 0, false}, {100, 110, 100, true}} {
		f := Flow{Before: Rate{c.before, true}, After: Rate{c.after, true}, Fair: c.fair, Sent: 1}
		if got := f.AtFairRate(); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestRatesAreThoseOfTheFlow: whatever the bursts in which a flow sends, and however they meet with the looks, the rates are what it sends, also if it ends
// together with the congestion.
func TestRatesAreThoseOfTheFlow(t *testing.T) {
	const packet = 4200
	rapid.Check(t, func(t *rapid.T) {
		tracker, now, notifiedAt, end := NewTracker(), int64(1e15), int64(1e15+505*ms), int64(1e15+1000*ms)
		burst, before, after := rapid.Uint64Range(1, 16).Draw(t, "packets of a burst"), rapid.Int64Range(1, 40).Draw(t, "ms from burst to burst"), int64(0)
		after = before * rapid.Int64Range(2, 3).Draw(t, "times slower")
		bytes, last, next, notified := uint64(0), now, now, false
		for ; now < end+1500*ms; now += ms {
			if now >= next && now < end {
				bytes, last, next = bytes+burst*packet, now, now+before*ms
				if notified {
					next = now + after*ms
				}
				if now >= notifiedAt && !notified {
					notified, next = true, now+after*ms
					tracker.Notified(0, &notify.NotificationRecord{Message: notify.Message{FlowBytes: bytes, Out: 1, Cause: congestion.ByDepth}, Time: now, Flow: flowtable.Ref{Index: 7, Generation: 1}, Metrics: congestion.Metrics{Depth: 5000}})
				}
			}
			if now%tick == 0 {
				tracker.Sampled(wan, 0, now, []dataplane.FlowRecord{{Flow: flowtable.Ref{Index: 7, Generation: 1}, Traffic: pairing.Traffic{Bytes: bytes},
					At: now - 1e14, LastSeen: last - 1e14}})
				state := State{Peak: 5000, Above: kMin}
				if now > end {
					state.Peak = 0
				}
				tracker.Look(now, wan, state)
			}
		}
		f := tracker.Episodes()[0].Flows[0]
		bps := func(every int64) uint64 { return burst * packet * 8000 / uint64(every) }
		if f.Before != (Rate{bps(before), true}) || f.After != (Rate{bps(after), true}) {
			t.Fatalf("%v before, %v after, expected %d and %d", f.Before, f.After, bps(before), bps(after))
		}
		if slowed, known := f.Slowed(); !slowed || !known {
			t.Fatalf("slowed %v, known %v", slowed, known)
		}
	})
}

// TestNothingSent: a sender to which nothing was sent did not slow down because of it. Once something is sent, the rates are those before and after that.
func TestNothingSent(t *testing.T) {
	flow := flowtable.Ref{Index: 7, Generation: 1}
	for _, sent := range []bool{false, true} {
		tracker, now, bytes := NewTracker(), int64(1e15), uint64(0)
		notify := func(o counters.Outcome) {
			tracker.Notified(0, &notify.NotificationRecord{Message: notify.Message{FlowBytes: bytes, Out: 1, Cause: congestion.ByDepth}, Time: now, Outcome: o, Flow: flow})
		}
		ticks := func(n int, each uint64) {
			for range n {
				now, bytes = now+tick, bytes+each
				tracker.Sampled(wan, 0, now, []dataplane.FlowRecord{{Flow: flow, Traffic: pairing.Traffic{Bytes: bytes}}})
				tracker.Look(now, wan, State{Peak: 5000, Above: kMin})
			}
		}
		ticks(4, 1000)
		notify(counters.Observed)
		ticks(4, 500) // by itself
		if sent {
			notify(counters.Emitted)
			ticks(4, 250)
		}
		f := tracker.Episodes()[0].Flows[0]
		slowed, known := f.Slowed()
		if !sent && (known || f.Notifications != 1 || f.Sent != 0) || sent && (!slowed || !known || f.Before.BPS != 80_000 || f.After.BPS != 40_000 || f.Sent != 1) {
			t.Errorf("sent %v: slowed %v, known %v: %+v", sent, slowed, known, f)
		}
	}
}

// TestNotOfAnEpisode: events that neither begin nor extend an episode.
func TestNotOfAnEpisode(t *testing.T) {
	tracker := NewTracker()
	arrival := notify.NotificationRecord{Message: notify.Message{Out: 1, Cause: congestion.ByArrival}, Time: 100}
	relayed := notify.NotificationRecord{Message: notify.Message{Out: 1, Cause: congestion.ByProxy}, Time: 100}
	resume := notify.NotificationRecord{Message: notify.Message{Out: 1, Decision: congestion.Decision{Action: congestion.Resume}}, Time: 100}
	tracker.Notified(0, &arrival)
	tracker.Notified(0, &relayed)
	tracker.Notified(0, &resume)
	if len(tracker.Episodes()) != 0 {
		t.Error("an episode began")
	}
	tracker.Look(10, wan, State{Peak: 2 * kMin, Above: kMin})
	tracker.Notified(0, &arrival)
	tracker.Notified(0, &relayed)
	tracker.Notified(0, &resume)
	if e := tracker.Episodes()[0]; e.End != 10 || e.Notifications != [packet.SentNotifications]uint64{packet.FastCNP: 1} || len(e.Flows) != 0 {
		t.Errorf("%+v", e)
	}
}

// TestBounds: however many episodes, flows and notifications there are, the tracker keeps the latest episodes and the flows that matter.
func TestBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tracker, now := NewTracker(), int64(1e15)
		first := rapid.SampledFrom([]uint64{0, 1<<32 - 5}).Draw(t, "earlier episodes")
		notified := first
		tracker.begun = first
		for range rapid.IntRange(1, 300).Draw(t, "episodes") {
			sent := uint64(0)
			tracker.Look(now, wan, State{Peak: kMin + 1, Above: kMin})
			for range rapid.IntRange(0, 2).Draw(t, "looks") {
				var records []dataplane.FlowRecord
				for range rapid.IntRange(0, 100).Draw(t, "flows") {
					records = append(records, dataplane.FlowRecord{Flow: flowtable.Ref{Index: flowtable.Index(len(records) + 1)}})
				}
				tracker.Sampled(wan, 0, now, records)
				for n := range rapid.IntRange(0, 3).Draw(t, "notifications") {
					tracker.Notified(0, &notify.NotificationRecord{Message: notify.Message{Out: 1, Cause: congestion.ByDepth}, Time: now, Flow: flowtable.Ref{Index: flowtable.Index(1000 + n)}})
					sent++
				}
			}
			e := tracker.Episodes()[len(tracker.Episodes())-1]
			got := e.Untracked
			for _, f := range e.Flows {
				got += f.Notifications
			}
			if len(e.Flows) > trackedFlows || got != sent || e.Untracked != 0 {
				t.Fatalf("%d flows, %d notifications of %d, %d untracked", len(e.Flows), got, sent, e.Untracked)
			}
			if over, event := tracker.Look(now+calmTime, wan, State{Above: kMin}); event != Ended || over.ID != notified+1 {
				t.Fatalf("%+v", over)
			}
			notified++
			now += 10 * calmTime
		}
		all := tracker.Episodes()
		if uint64(len(all)) != min(notified-first, kept) || all[len(all)-1].ID != notified {
			t.Fatalf("%d episodes of %d, the last one %d", len(all), notified, all[len(all)-1].ID)
		}
	})
}

// TestClockSteps: an episode ends in time, and its flows are looked at, also where the clock is set while it goes on: by an hour, or by a leap second.
func TestClockSteps(t *testing.T) {
	for _, step := range []int64{-3600e9, -1e9, 1e9, 3600e9} {
		clockStep(t, step)
	}
}

func clockStep(t *testing.T, step int64) {
	tracker, now := NewTracker(), int64(1e18)
	flow := flowtable.Ref{Index: 1, Generation: 1}
	sampled := func(bytes uint64) {
		tracker.Sampled(wan, 0, now, []dataplane.FlowRecord{{Flow: flow, Traffic: pairing.Traffic{Bytes: bytes}}})
	}
	tracker.Look(now, wan, State{Peak: 5000, Above: kMin})
	sampled(1000)
	now += step
	tracker.Look(now, wan, State{Peak: 5000, Above: kMin})
	sampled(9000)
	for range 2 * calmTime / tick {
		now += tick
		if e, event := tracker.Look(now, wan, State{Above: kMin}); event == Ended {
			if e.Start > e.End || len(e.Flows) != 1 || e.Flows[0].Bytes != 8000 {
				t.Errorf("%d ns: %+v", step, e)
			}
			return
		}
	}
	t.Errorf("%d ns: it goes on: %+v", step, tracker.Episodes())
}
