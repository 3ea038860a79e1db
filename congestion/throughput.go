package congestion

// Throughput measures the rate at which a flow arrives over up to two spans, so that a burst doesn't count as a rate. The zero Throughput has seen
// nothing.
type Throughput struct {
	from, middle arrived // the measurement begins at from, and at middle once that is a span ago
}

// arrived is the number of bytes of a flow that had arrived at a time (ns).
type arrived struct {
	at    int64
	bytes uint64
}

const (
	throughputSpan  = 100e6 // ns
	leastThroughput = 10e6  // ns, the shortest time over which a rate is known
)

// Observe takes the total bytes of the flow when one of its packets has arrived.
func (t *Throughput) Observe(now int64, bytes uint64) {
	is := arrived{now, bytes}
	switch {
	case t.from.at == 0 || now < t.middle.at || bytes < t.middle.bytes:
		t.from, t.middle = is, is
	case now-t.middle.at >= throughputSpan:
		t.from, t.middle = t.middle, is
	}
}

// Rate is the flow's rate when so many bytes have arrived, in bytes per millisecond; 0 if it isn't known.
func (t *Throughput) Rate(now int64, bytes uint64) uint64 {
	elapsed := now - t.from.at
	if t.from.at == 0 || elapsed < leastThroughput || bytes < t.from.bytes {
		return 0
	}
	return uint64(max(perMillisecond(int64(bytes-t.from.bytes), elapsed), 1))
}
