package congestion

import "slices"

// RTTSource is the source of a port's RTT_est (draft-tian 5.3.1).
type RTTSource uint8

const (
	RTTConfigured RTTSource = iota // the operator's number
	RTTPassive                     // from data packets to their acknowledgements
	RTTSTAMP                       // from test packets to another gateway (RFC 8762)
)

// RTTSources is the number of sources.
const RTTSources = 3

// String is the source's name in configuration, reports and metrics.
func (s RTTSource) String() string {
	return [...]string{"configured", "passive", "stamp", "unknown"}[min(s, RTTSources)]
}

// RTTPolicy configures how a port's RTT_est is determined. The zero RTTPolicy: the configured value.
type RTTPolicy struct {
	Sources  [RTTSources]RTTSource // in order of preference, the first Count of them
	Count    int
	Min, Max int64 // bounds of measured values, ns; Max 0: no bound
	Window   int64 // a measured value is the minimum over this many ns; a source without a sample for this long is not used
}

// Uses reports whether a source is among those that the policy names.
func (p *RTTPolicy) Uses(s RTTSource) bool {
	return slices.Contains(p.Sources[:p.Count], s)
}

// RTT determines the RTT_est of a port from the samples of its sources. The zero RTT has none.
type RTT struct {
	Receivers int // that must agree on a passive value; up to 1: none

	stamp     windowedMin
	receivers receivers
	value     int64 // in force, ns
	source    RTTSource
	since     int64 // when value or source changed last, ns
	begun     bool
}

// Sample adds a round-trip time (ns, above 0) that a source has measured, at a time (ns).
func (r *RTT) Sample(p *RTTPolicy, s RTTSource, now, rtt int64) {
	if s == RTTPassive {
		r.SampleOf(p, 0, now, rtt)
		return
	}
	r.stamp.add(p.Window, now, rtt)
}

// SampleOf is Sample for a passive sample, with the receiver that acknowledged.
func (r *RTT) SampleOf(p *RTTPolicy, from Receiver, now, rtt int64) {
	r.receivers.find(from, now).add(p.Window, now, rtt)
}

const (
	// changeInterval is the minimum time between two changes of the present RTT_est, ns.
	changeInterval = 1e9
	// refreshInterval is the time after which also a small change applies, ns.
	refreshInterval = 10e9
)

// Update determines the RTT_est at a time (ns), and reports whether it has changed. It changes at most once a second: at once to another
// source or to a value more than an eighth away, after 10 seconds to any other value. So thresholds that depend on it don't flap.
//
// configured is the operator's value in ns, 0 if there is none. It is used while no preferred source has a value.
func (r *RTT) Update(p *RTTPolicy, configured, now int64) (changed bool) {
	value, source := r.measured(p, configured, now)
	elapsed := now - r.since
	switch {
	case !r.begun:
	case value == r.value && source == r.source, elapsed < changeInterval && elapsed >= 0:
		return false
	case source == r.source && !apart(value, r.value) && elapsed < refreshInterval && elapsed >= 0:
		return false
	}
	changed = value != r.value || source != r.source || !r.begun
	r.value, r.source, r.since, r.begun = value, source, now, true
	return changed
}

// measured is the value of the first source in order of preference that has one, within the policy's bounds. If none has, it is the
// configured value.
func (r *RTT) measured(p *RTTPolicy, configured, now int64) (int64, RTTSource) {
	for _, s := range p.Sources[:p.Count] {
		if s == RTTConfigured {
			break
		}
		if least, ok := r.least(p, s, now); ok {
			least = max(least, p.Min)
			if p.Max > 0 {
				least = min(least, p.Max)
			}
			return least, s
		}
	}
	return configured, RTTConfigured
}

// least is the value of a measurement: the minimum of the window, of passive samples the one that receivers agree on.
func (r *RTT) least(p *RTTPolicy, s RTTSource, now int64) (ns int64, ok bool) {
	if s == RTTPassive {
		return r.receivers.agreed(p.Window, now, r.Receivers)
	}
	return r.stamp.get(p.Window, now)
}

// InForce is the present RTT_est in ns, 0 if it isn't known, and its source.
func (r *RTT) InForce() (ns int64, s RTTSource) { return r.value, r.source }

// apart reports whether two values differ by more than an eighth of the second.
func apart(a, b int64) bool { return a > b+b/8 || a < b-b/8 }

// windowedMin is the minimum of the samples in a time window, with a resolution of an eighth of the window: it keeps the minimum of each
// eighth. The zero windowedMin has no samples.
type windowedMin struct {
	least [windowParts]int64 // of each part of the window; 0: no sample
	part  int64              // number of the latest part, since time 0
}

const windowParts = 8

func (m *windowedMin) add(window, now, sample int64) {
	m.moveOn(window, now)
	if at := &m.least[m.part%windowParts]; *at == 0 || sample < *at {
		*at = sample
	}
}

func (m *windowedMin) get(window, now int64) (least int64, ok bool) {
	m.moveOn(window, now)
	for _, v := range m.least {
		if v != 0 && (!ok || v < least) {
			least, ok = v, true
		}
	}
	return least, ok
}

// moveOn removes samples older than the window.
func (m *windowedMin) moveOn(window, now int64) {
	part := max(now, 0) / max(window/windowParts, 1)
	if d := part - m.part; d < 0 || d >= windowParts {
		m.least = [windowParts]int64{}
	} else {
		for n := m.part + 1; n <= part; n++ {
			m.least[n%windowParts] = 0
		}
	}
	m.part = part
}
