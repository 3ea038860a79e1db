package congestion

// Reaction watches whether a sender reacts to notifications: whether the rate of one of its flows falls. The zero Reaction watches none.
type Reaction struct {
	flow     uint32  // that is watched, 0: none
	closest  bool    // notifications come as close together as they can have an effect
	notified uint32  // notifications since began
	began    int64   // when the flow was notified first, or its rate fell last, ns
	latest   int64   // when it was notified last, ns
	patience int64   // time without a reaction until the brake, ns
	mean     float32 // of its rate
	highest  float32 // mean since began
}

const (
	reactionFell  = 0.9        // of the highest rate: the sender has reacted
	reactionNear  = 1.1        // of F: there is nothing more to react to
	reactionShare = 32         // a window counts this part in the mean
	reactionGap   = 50_000_000 // ns without a notification after which the next one is the first

	brakeTime  = 5_000_000 // ns without a reaction until the brake, at least: the time of a default queue
	brakeLoops = 10        // the same, in delays of the control loop
	brakeLeast = 4         // notifications: requests for a rate are repeated after longer and longer times

	// A ConnectX-5 was measured to react after up to 39 ms.
	unresponsiveTime  = 200_000_000 // ns
	unresponsiveLeast = 32          // notifications
)

// BrakeSpacing is the least time between two notifications to a sender while the brake holds, ns: they only show whether it reacts by now.
const BrakeSpacing = 1_000_000

// Notified records a notification about a flow, which arrives at a rate. closest: with more of them the sender would slow down no more. loop is the delay of the control
// loop, ns, 0 if it isn't known.
func (r *Reaction) Notified(now int64, flow uint32, rate float64, closest bool, loop int64) {
	if now-r.latest > reactionGap || r.flow == 0 {
		*r = Reaction{flow: flow, began: now, mean: float32(rate), highest: float32(rate)}
	}
	r.latest, r.closest, r.patience = now, closest, max(brakeTime, brakeLoops*loop)
	if flow == r.flow {
		r.notified++
	}
}

// Ended takes the rate of a flow in a window that has ended. It reports whether the sender has reacted.
func (r *Reaction) Ended(now int64, flow uint32, rate, fair float64) (reacted bool) {
	if flow != r.flow {
		return false
	}
	r.mean += (float32(rate) - r.mean) / reactionShare
	r.highest = max(r.highest, r.mean)
	if r.mean > reactionFell*r.highest && float64(r.mean) > reactionNear*fair {
		return false
	}
	r.began, r.notified, r.highest = now, 0, r.mean
	return true
}

// Brakes reports whether the sender hasn't reacted for so long that it has to be slowed down otherwise.
func (r *Reaction) Brakes(now int64) bool {
	return r.closest && r.notified >= brakeLeast && r.latest-r.began >= r.patience && now-r.latest <= reactionGap
}

// Probes reports whether it is too soon to notify the sender again, as the brake holds.
func (r *Reaction) Probes(now int64) bool { return now-r.latest < BrakeSpacing && r.Brakes(now) }

// Unresponsive reports whether the sender counts as one that doesn't react.
func (r *Reaction) Unresponsive() bool {
	return r.notified >= unresponsiveLeast && r.latest-r.began >= unresponsiveTime
}
