package congestion

// Metrics is the state of one class of an egress queue (draft-tian 5.3.1).
type Metrics struct {
	Depth   uint64 // bytes waiting, now
	Growth  int64  // Queue Growth Rate of the last interval, bytes per millisecond; negative while the queue shrinks
	Marking uint32 // ECN Marking Rate of the last interval: packets marked, in millionths of those that entered the queue
}

// Meter measures one class of an egress queue. The zero Meter has no measurements.
type Meter struct {
	began   int64 // of the interval, ns; 0 before the first
	depth   uint64
	packets uint64
	marked  uint64
	now     Metrics
}

// Update takes the state of the class at a time (ns): the bytes waiting, and the total packets that entered it and that were marked in it.
// It updates the rates once an interval (ns), the depth at once.
func (m *Meter) Update(interval, now int64, depth, packets, marked uint64) Metrics {
	m.now.Depth = depth
	switch elapsed := now - m.began; {
	case m.began == 0 || elapsed < 0:
		m.begin(now, depth, packets, marked)
	case elapsed >= interval:
		m.now.Growth = perMillisecond(int64(depth)-int64(m.depth), elapsed)
		m.now.Marking = millionths(marked-m.marked, packets-m.packets)
		m.begin(now, depth, packets, marked)
	}
	return m.now
}

func (m *Meter) begin(now int64, depth, packets, marked uint64) {
	m.began, m.depth, m.packets, m.marked = max(now, 1), depth, packets, marked
}

// perMillisecond converts a number of bytes in a time (ns) to a rate.
func perMillisecond(bytes, elapsed int64) int64 {
	const millisecond = 1e6
	return int64(float64(bytes) * millisecond / float64(max(elapsed, 1)))
}

func millionths(part, whole uint64) uint32 {
	if whole == 0 {
		return 0
	}
	return uint32(min(part, whole) * 1_000_000 / whole)
}
