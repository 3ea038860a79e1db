package congestion

import "math/bits"

// Measurement measures the rate at which a flow's packets arrive, over at least measureTime. Packets that arrive at once, in one burst,
// count together. The zero Measurement has not begun.
type Measurement struct {
	began, last int64  // time of the first and of the latest packet, ns
	bytes       uint64 // since the first packet
	before      uint64 // of these, those of packets before the latest time
	counting    bool
}

const (
	measureTime = 50_000     // ns
	measureGap  = 10_000_000 // ns between two packets after which the measurement begins again
)

// Add adds a packet that arrives at a time (ns). It returns the rate in bit/s once the measurement is complete; the next packet then begins
// another one.
func (m *Measurement) Add(bytes uint32, now int64) (rate uint64, complete bool) {
	if elapsed := now - m.last; !m.counting || elapsed < 0 || elapsed > measureGap {
		*m = Measurement{began: now, last: now, counting: true}
	}
	if now > m.last {
		m.before, m.last = m.bytes, now
	}
	m.bytes += uint64(bytes)
	if m.last-m.began < measureTime {
		return 0, false
	}
	hi, lo := bits.Mul64(m.before, 8_000_000_000)
	rate, _ = bits.Div64(hi, lo, uint64(m.last-m.began)) // a link of 10 Tbit/s brings 13 GB in 10 ms, so it fits
	*m = Measurement{}
	return rate, true
}
