package congestion

import (
	"math"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// Action is a request to a sender (draft-tian 5.5.1).
type Action = packet.Action

// The actions of a Decision.
const (
	Notify     = packet.ActionNotify
	Pause      = packet.ActionPause
	RateReduce = packet.ActionRateReduce
	Resume     = packet.ActionResume
)

// Metric types of a Long-haul CNP (draft-tian 10.4).
const (
	MetricUnspecified uint8 = packet.MetricUnspecified // with value 0: the queue's state isn't disclosed (draft-tian 9)
	MetricDepth       uint8 = packet.MetricQueueDepth  // kilobytes of 1000 bytes
	MetricGrowth      uint8 = packet.MetricQueueGrowth // kilobytes per millisecond
	MetricMarking     uint8 = packet.MetricECNRate     // percent
	MetricRTT         uint8 = packet.MetricRTT         // microseconds: RTT_est and the time that the queue takes to drain
)

// Decision is a request to a sender, and its reason. The zero Decision: none was made.
type Decision struct {
	Action      Action
	Parameter   uint16 // Rate Reduce: percent; Pause: microseconds; Resume: percent of the reduction
	Level       uint8  // Congestion Level
	Rung        uint8  // the action's rung of the ladder, from 1 on
	MetricType  uint8
	MetricValue uint32 // 24 bits, in the unit of MetricType
}

// Content writes what a Long-haul CNP says of the decision.
func (d *Decision) Content(l *packet.LongHaul) {
	l.Level, l.Action, l.Parameter, l.MetricType, l.MetricValue = d.Level, d.Action, d.Parameter, d.MetricType, d.MetricValue
}

// Rung is one row of a policy table: the action from a Congestion Level on.
type Rung struct {
	Level   uint8
	Action  Action // Notify, RateReduce or Pause
	Percent uint16 // of RateReduce
}

// DefaultPercent is the Rate Reduce percentage of DefaultLadder at K_max.
const DefaultPercent = 30

// DefaultLadder needs no tuning: it is the draft's example (section 7: 30 % at level 180), milder below and stricter above.
var DefaultLadder = []Rung{{0, Notify, 0}, {90, RateReduce, 15}, {levelAtKMax, RateReduce, DefaultPercent}, {210, RateReduce, 50}, {240, Pause, 0}}

// Response is how a class of an egress queue responds to congestion. It is immutable: workers share one.
type Response struct {
	Triggers
	Marks         bool   // above K_min, packets are marked CE
	OnArrival     bool   // senders of packets that arrive with CE are notified
	ClearCE       bool   // CE is then cleared, so that the receiver doesn't notify the sender again
	Ladder        []Rung // by Level, the first one with Level 0
	ResumePercent uint16 // Parameter of Resume; 0 is an unconditional one (draft-tian 5.5.1)
	Resumes       bool   // whether Resume is sent at all
	Disclose      bool   // else metric type and value are 0 (draft-tian 9)
	Metric        uint8  // the metric type to disclose; MetricUnspecified: that of the condition that holds
	Rate          uint64 // of the port, bit/s
	RTT           int64  // RTT_est, ns
	Interval      int64  // of the metrics and between rounds, ns
}

// FlowsPerRound is the number of senders that one round may notify.
const FlowsPerRound = 16

// Decide returns the request to the senders that fill a queue in this state.
func (r *Response) Decide(m Metrics, c Cause) Decision {
	level := r.Severity(m.Depth)
	if c&^ByDepth != 0 {
		level = max(level, levelAtKMin+1) // the rates exceed what ECN marking alone should handle
	}
	return r.decide(m, c, r.rung(level), level)
}

// Stricter is Decide for a sender that didn't respond to the request last: a higher level and the next rung of the ladder (draft-tian 5.7).
func (r *Response) Stricter(m Metrics, c Cause, last Decision) Decision {
	d := r.Decide(m, c)
	n := max(int(d.Rung)-1, min(int(last.Rung), len(r.Ladder)-1))
	level := max(d.Level, last.Level+uint8(min(1, math.MaxUint8-int(last.Level))), r.Ladder[n].Level)
	return r.decide(m, c, n, level)
}

// Ease returns the Resume for a queue in this state.
func (r *Response) Ease(m Metrics) Decision {
	d := Decision{Action: Resume, Parameter: min(r.ResumePercent, 100), Level: r.Severity(m.Depth)}
	d.MetricType, d.MetricValue = r.metric(m, ByDepth)
	return d
}

// Relayed returns the request to a sender about which a congested node has notified this gateway, a proxy. level is the Congestion Level of that
// notification: 0 lowest to 7 highest (draft-xiao-proxy 4). The ladder is that of this gateway's own queue, at the Congestion Level of 8 bits that has the three
// bits repeated. The congested queue's metrics aren't known, so none is disclosed, and a Pause takes RTT_est: above K_max about that time of data waits.
func (r *Response) Relayed(level uint8) Decision {
	level &= 7
	severity := level<<5 | level<<2 | level>>1
	n := r.rung(severity)
	d := Decision{Action: r.Ladder[n].Action, Level: severity, Rung: uint8(n + 1)}
	switch d.Action {
	case RateReduce:
		d.Parameter = min(r.Ladder[n].Percent, 100)
	case Pause:
		d.Parameter = uint16(min(max(r.RTT/1000, 1), math.MaxUint16))
	}
	return d
}

// rung is the index of the ladder's last rung that begins at the level or below.
func (r *Response) rung(level uint8) (n int) {
	for n+1 < len(r.Ladder) && r.Ladder[n+1].Level <= level {
		n++
	}
	return n
}

func (r *Response) decide(m Metrics, c Cause, n int, level uint8) Decision {
	rung := r.Ladder[n]
	d := Decision{Action: rung.Action, Level: level, Rung: uint8(n + 1)}
	switch rung.Action {
	case RateReduce:
		d.Parameter = min(rung.Percent, 100)
	case Pause:
		d.Parameter = r.drainTime(m.Depth)
	}
	d.MetricType, d.MetricValue = r.metric(m, c)
	return d
}

// drainTime is the time that the queue takes to drain to K_min if nothing enters it, in microseconds, 1 to 65535.
func (r *Response) drainTime(depth uint64) uint16 {
	return uint16(min(max(microseconds(depth-min(r.KMin, depth), r.Rate), 1), math.MaxUint16))
}

// microseconds is the time that bytes take at a rate in bit/s.
func microseconds(bytes, rate uint64) uint64 {
	return uint64(float64(bytes) * 8e6 / float64(max(rate, 1)))
}

// metric is the metric that a notification discloses: that of its condition, the depth first.
func (r *Response) metric(m Metrics, c Cause) (kind uint8, value uint32) {
	if !r.Disclose {
		return MetricUnspecified, 0
	}
	kind = r.Metric
	switch {
	case kind != MetricUnspecified:
	case c == 0 || c&ByDepth != 0:
		kind = MetricDepth
	case c&ByGrowth != 0:
		kind = MetricGrowth
	default:
		kind = MetricMarking
	}
	return kind, uint32(min(r.value(m, kind), 1<<24-1))
}

func (r *Response) value(m Metrics, kind uint8) uint64 {
	switch kind {
	case MetricGrowth:
		return uint64(max(m.Growth, 0)) / 1000
	case MetricMarking:
		return uint64(m.Marking) / 10_000
	case MetricRTT:
		return uint64(max(r.RTT, 0))/1000 + microseconds(m.Depth, r.Rate)
	}
	return m.Depth / 1000
}
