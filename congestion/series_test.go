package congestion

import "testing"

// hop is a gateway on the path of one flow: a fluid queue in front of a line.
type hop struct {
	Response
	meter    Meter
	trigger  Trigger
	sender   Sender
	depth    float64 // bytes
	arrived  float64
	notified int64 // ns, when it last notified the sender; 0 never
	sent     []Decision
	deferred int // rounds in which it deferred
	delay    int64
	mute     bool // its notifications get lost
	blind    bool // without suppression: notifies whenever the interval allows
}

// flow advances the hop by a step (ns) with the given arriving bytes of the flow and of others. It returns the bytes that leave and the
// request to the sender.
func (h *hop) flow(now, step int64, bytes, others float64) (leaves float64, asked *Decision) {
	h.arrived += bytes
	h.depth += bytes + others
	leaves = min(h.depth, float64(h.Rate)/8e9*float64(step))
	h.depth -= leaves
	depth := uint64(h.depth)
	m := h.meter.Update(h.Interval, now, depth, uint64(now/step), 0)
	cause := h.trigger.Update(&h.Triggers, m)
	if depth <= h.KMin {
		return leaves, nil
	}
	h.sender.Observe(&h.Response, now, uint64(h.arrived), depth)
	if cause == 0 || h.notified != 0 && now-h.notified < h.RTT {
		return leaves, nil
	}
	d, restraint := next(&h.sender, &h.Response, m, cause, now)
	if h.blind {
		d, restraint = h.Decide(m, cause), Unrestrained
	}
	if restraint != Unrestrained {
		h.deferred++
		return leaves, nil
	}
	h.notified = now
	h.sender.Notified(&d, depth)
	h.sent = append(h.sent, d)
	if h.mute {
		return leaves, nil
	}
	return leaves, &d
}

// series runs a sender of 102 Gbit/s through two gateways for a duration (ns). Each notifies it after its delay, and it obeys. Other
// traffic arrives at the second gateway at a rate (bit/s) that depends on time.
func series(up, down *hop, duration int64, others func(now int64) float64) {
	const step = 100_000
	rate := 102e9
	type pending struct {
		at int64
		d  Decision
	}
	var asked []pending
	for now := int64(step); now <= duration; now += step {
		for len(asked) > 0 && asked[0].at <= now {
			switch d := asked[0].d; d.Action {
			case RateReduce:
				rate *= 1 - float64(d.Parameter)/100
			case Pause:
				rate = 0
			}
			asked = asked[1:]
		}
		leaves, d := up.flow(now, step, rate/8e9*step, 0)
		if d != nil {
			asked = append(asked, pending{now + up.delay, *d})
		}
		if _, d = down.flow(now, step, leaves, others(now)/8e9*step); d != nil {
			asked = append(asked, pending{now + down.delay, *d})
		}
	}
}

// gateways are two with lines of 100 Gbit/s, the second one 4 ms behind the first, with K_max at 12.5 and 30 MB. The first one reaches
// K_max after 50 ms, and the flow arrives at the second one with a lower rate from 55 ms on.
func gateways() (up, down *hop) {
	make := func(kMax uint64, delay int64) *hop {
		return &hop{delay: delay, Response: Response{Triggers: Triggers{Thresholds: Thresholds{kMax / 2, kMax}, Depth: true}, Ladder: DefaultLadder,
			Rate: 100e9, RTT: 10 * ms, Interval: ms / 10}}
	}
	return make(12.5*mb, ms), make(30*mb, 5*ms)
}

// busy is the other traffic of the second gateway. Its queue grows slowly to 27 MB, stays there while the flow slows down, and grows above
// K_max at 68 ms. From 72 ms on it has the given rate.
func busy(then float64) func(now int64) float64 {
	return func(now int64) float64 {
		switch {
		case now < 55*ms:
			return 4e9
		case now < 65*ms:
			return 29e9
		case now < 72*ms:
			return 35e9
		}
		return then
	}
}

// TestSeries: of two gateways on a flow's path, the second one defers while the first one's requests work, and makes stricter requests if
// they don't (draft-tian 5.7).
func TestSeries(t *testing.T) {
	notifications := map[bool]int{}
	for _, blind := range []bool{false, true} {
		up, down := gateways()
		up.blind, down.blind = blind, blind
		series(up, down, 90*ms, busy(15e9))
		notifications[blind] = len(up.sent) + len(down.sent)
		if !blind && (len(up.sent) != 1 || len(down.sent) != 0 || down.deferred == 0) {
			t.Errorf("the first one works: it notified %d times, the second one %d times, and deferred in %d rounds; want the first one only",
				len(up.sent), len(down.sent), down.deferred)
		}
	}
	if notifications[false] >= notifications[true] {
		t.Errorf("an episode takes %d notifications, and without suppression %d", notifications[false], notifications[true])
	}
	t.Logf("an episode takes %d notifications, and without suppression %d", notifications[false], notifications[true])

	up, down := gateways()
	series(up, down, 90*ms, busy(35e9))
	usual := down.Decide(Metrics{Depth: down.KMax + 1}, ByDepth)
	if len(down.sent) == 0 || down.sent[0].Rung <= usual.Rung || down.sent[0].Level <= usual.Level || down.deferred == 0 {
		t.Errorf("the flow slows down, and not enough: the second one deferred in %d rounds and asked for %+v; want more than %+v", down.deferred, down.sent, usual)
	}

	up, down = gateways()
	up.mute = true
	series(up, down, 90*ms, busy(35e9))
	if len(down.sent) == 0 || down.sent[0].Rung != usual.Rung {
		t.Errorf("the first one's notifications are lost: the second one asked for %+v; want %+v at first", down.sent, usual)
	}
}
