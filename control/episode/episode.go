// Package episode records the congestion episodes of a gateway's queues: when each began and ended, the queue's depth, which flows filled it, which
// senders were notified, and whether they slowed down. It is pure: times, states and records come from the caller. It may be used by one goroutine at a
// time.
package episode

import (
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/notify"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

const (
	// calmTime is how long a queue must be uncongested for its episode to end, ns. Congestion before that belongs to the same episode.
	calmTime = 1e9
	// kept bounds the number of ended episodes, trackedFlows the flows of one episode.
	kept         = 256
	trackedFlows = 64
	// window is the shortest time over which a rate is measured, and silence that without packets after which it is 0, ns: many senders send in bursts.
	window  = 10e6
	silence = 200e6
	// bitsPerSecond is one byte per millisecond in bit/s.
	bitsPerSecond = 8000
)

// Queue is a class of a port's egress queue.
type Queue struct{ Port, Class int }

// State is the state of a queue.
type State struct {
	Peak   uint64 // the greatest depth since the last state, bytes
	Above  uint64 // bytes: the queue is congested above this depth
	Marked uint64 // packets marked CE in it so far
	// Suppressed are the times so far that a sender behind the port's peer was not notified.
	Suppressed Suppressed
}

// Suppressed counts reasons: reason n at place n - 1.
type Suppressed [counters.Suppressions]uint64

// Top is the reason with the highest count, 0 if all are 0.
func (s *Suppressed) Top() (top counters.Suppression) {
	most := uint64(0)
	for i, n := range s {
		if n > most {
			top, most = counters.Suppression(i+1), n
		}
	}
	return top
}

// Episode is one time of congestion.
type Episode struct {
	ID            uint64 // from 1
	Queue         Queue
	Start, End    int64 // Unix time, ns; End is the last time at which the queue was congested
	Over          bool
	Peak          uint64 // the most bytes that waited
	Marked        uint64 // packets
	Notifications [packet.SentNotifications]uint64
	Observed      uint64 // notifications that would have been sent
	Lost          uint64 // notifications, of this queue or others, that a worker overwrote before they were read
	Suppressed    Suppressed
	Untracked     uint64 // notifications about flows beyond trackedFlows
	Flows         []Flow // in no order

	announced bool
	earlier   map[flowName]sample // of flows in the queue's episode before, so that a rate is of a longer time
	before    State               // when it began
}

// flowName is a flow of a worker.
type flowName struct {
	worker int
	ref    flowtable.Ref
}

// Flow is a flow during an episode.
type Flow struct {
	Worker        int
	Ref           flowtable.Ref
	Record        dataplane.FlowRecord // the latest one; of a flow that is known only from a notification: its Key, Flow and answer
	Bytes         uint64               // that arrived in the episode, as far as recorded
	Queued        uint64               // the most bytes seen in the queue
	Notifications uint64               // sent to its sender, or would have been
	Sent          uint64               // of them
	First         int64                // time of the first notification that was sent; without one, of the first that would have been
	Before, After Rate                 // arrival rates before that, and since
	Fair          uint64               // bit/s that the law allowed it at the latest notification; 0: the law hasn't asked

	base        uint64 // bytes of the flow in its first record
	looked      bool   // a worker recorded it; false: known only from a notification
	prior, last sample
	latest      Rate // after the first notification
	until       int64
}

// Rate is in bits per second, if Known.
type Rate struct {
	BPS   uint64
	Known bool
}

// Slowed reports whether the rate fell by more than an eighth, the limit below which draft-tian 5.7 leaves a sender alone, after a notification. known is
// false if none was sent, or one of the rates isn't known.
func (f *Flow) Slowed() (slowed, known bool) {
	return f.After.BPS < f.Before.BPS-f.Before.BPS/8, f.Sent > 0 && f.Before.Known && f.After.Known
}

// AtFairRate reports whether the sender need not slow down: it is at the rate that the law allows it, or below.
func (f *Flow) AtFairRate() bool {
	slowed, known := f.Slowed()
	return known && !slowed && f.After.BPS <= f.Fair+f.Fair/8
}

// sample is the number of bytes of a flow that had arrived by one of its packets, and when that was: the rate between two packets doesn't depend on when
// somebody looked.
type sample struct {
	at    int64
	bytes uint64
}

// to is the rate between a sample and a later one.
func (s sample) to(later sample) Rate {
	elapsed := later.at - s.at
	if s.at == 0 || elapsed < window || later.bytes < s.bytes {
		return Rate{}
	}
	const bitsPerByteNanoseconds = 8e9
	return Rate{uint64(float64(later.bytes-s.bytes) * bitsPerByteNanoseconds / float64(elapsed)), true}
}

// notify counts a notification for its flow. No flow arrives faster than line, bit/s; 0: it isn't known.
func (e *Episode) notify(worker int, r *notify.NotificationRecord, line uint64) {
	f := e.flow(worker, r.Flow)
	if f == nil {
		e.Untracked++
		return
	}
	if !f.looked {
		f.Record.Key, f.Record.Flow, f.Record.View.Answer = r.Key, r.Flow, r.QP
	}
	now, sent := sample{r.Time, r.FlowBytes}, r.Outcome != counters.Observed
	f.Notifications++
	if sent {
		f.Sent++
	}
	if r.FairRate > 0 {
		f.Fair = r.FairRate * bitsPerSecond
	}
	if f.Notifications == 1 || sent && f.Sent == 1 {
		f.First, f.Before = r.Time, f.before(now)
		if !f.Before.Known && r.FlowRate > 0 {
			f.Before = Rate{r.FlowRate * bitsPerSecond, true} // of a burst, perhaps
		}
		if line > 0 {
			f.Before.BPS = min(f.Before.BPS, line)
		}
		f.prior, f.last, f.After, f.latest = sample{}, now, Rate{}, Rate{}
	}
	f.take(now, r.Queued)
}

// before is the rate at which the flow arrived before it was notified, over the longest time that is known.
func (f *Flow) before(now sample) Rate {
	if r := f.prior.to(now); r.Known {
		return r
	}
	return f.last.to(now)
}

// take updates the bytes that have arrived of the flow.
func (f *Flow) take(s sample, queued uint64) {
	if f.base == 0 || s.bytes < f.base {
		f.base = s.bytes
	}
	f.Bytes, f.Queued = max(f.Bytes, s.bytes-f.base), max(f.Queued, queued)
}

// flow finds a flow of the episode, or adds it; nil if there is no space. A flow with more bytes replaces one whose sender was not notified.
func (e *Episode) flow(worker int, ref flowtable.Ref) *Flow {
	for i := range e.Flows {
		if f := &e.Flows[i]; f.Worker == worker && f.Ref == ref {
			return f
		}
	}
	if len(e.Flows) < trackedFlows {
		e.Flows = append(e.Flows, Flow{Worker: worker, Ref: ref, last: e.earlier[flowName{worker, ref}]})
		return &e.Flows[len(e.Flows)-1]
	}
	var least *Flow
	for i := range e.Flows {
		if f := &e.Flows[i]; f.Notifications == 0 && (least == nil || f.Bytes < least.Bytes) {
			least = f
		}
	}
	if least != nil {
		*least = Flow{Worker: worker, Ref: ref}
	}
	return least
}

// sampled takes a record that a worker made of the flow at a time.
func (f *Flow) sampled(e *Episode, at int64, r *dataplane.FlowRecord) {
	f.Record, f.looked = *r, true
	if f.last.at-at > calmTime { // the clock was set back
		f.prior, f.last = sample{}, sample{}
	}
	now, least := sample{at - (r.At - r.LastSeen), r.Traffic.Bytes}, int64(window)
	f.take(now, r.Queued)
	silent := f.last.at != 0 && now.bytes == f.last.bytes
	if silent {
		now.at, least = at, silence
	}
	if f.last.at != 0 && now.at-f.last.at < least {
		return
	}
	f.settle(e.End)
	if f.Notifications > 0 {
		f.latest, f.until = f.last.to(now), now.at
	}
	if !silent {
		f.prior, f.last = f.last, now
	}
}

// settle takes the latest rate as that after the notification, if the queue was congested until then or no rate was known yet: the senders of a queue that
// is calm may do what they like, or have ended.
func (f *Flow) settle(end int64) {
	if f.latest.Known && (!f.After.Known || f.until <= end) {
		f.After = f.latest
	}
}
