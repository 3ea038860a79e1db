package congestion

// Metric types of a Long-haul CNP (draft-tian 10.4), as far as the gateway sends them.
const (
	MetricUnspecified uint8 = 0 // with value 0: the queue's state isn't disclosed (draft-tian 9)
	MetricQueueDepth  uint8 = 1 // kilobytes of 1000 octets
)

// Instruction is what a Long-haul CNP carries apart from its action and the source QP (draft-tian 6.1).
type Instruction struct {
	Level       uint8  // Congestion Level: the queue's Severity
	Parameter   uint16 // Rate Reduce: percent
	MetricType  uint8
	MetricValue uint32 // 24 bits, in the unit of MetricType
}

// RateReduce is the instruction for action Rate Reduce by percent (0 to 100; more counts as 100) of the sender's rate, for a queue
// of depth and capacity octets. Undisclosed, the metric is zero, type and value (draft-tian 9); the Congestion Level stays, as
// the draft keeps it apart from the metric.
func RateReduce(percent uint16, depth, capacity uint64, disclose bool) Instruction {
	i := Instruction{Level: Severity(depth, capacity), Parameter: min(percent, 100)}
	if disclose {
		i.MetricType = MetricQueueDepth
		i.MetricValue = kilobytes(depth)
	}
	return i
}

// kilobytes rounds down, and saturates at 24 bits: 16.8 GB.
func kilobytes(octets uint64) uint32 {
	const most = 1<<24 - 1
	return uint32(min(octets/1000, most))
}
