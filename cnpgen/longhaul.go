package cnpgen

import "encoding/binary"

// Action is what a Long-haul CNP asks of the source: the upper two bits of Action Flags (draft-tian 6.1, 5.5.1).
type Action uint8

const (
	Notify     Action = 0 // congestion exists; Parameter is unused
	Pause      Action = 1 // stop for Parameter microseconds
	RateReduce Action = 2 // reduce the rate by Parameter percent
	Resume     Action = 3 // take back Parameter percent of the last reduction, 0 for all of it
)

// LongHaul is the content of a Long-haul CNP, the same in both of its formats (draft-tian 6.1, 6.2.4).
type LongHaul struct {
	Level       uint8 // Congestion Level, 0 none to 255 most severe
	Action      Action
	Parameter   uint16 // by Action: percent or microseconds
	SourceQP    uint32 // 24 bits: the QP at the data's source
	MetricType  uint8  // draft-tian 10.4; 0 with value 0 discloses nothing
	MetricValue uint32 // unit by MetricType; 24 bits, larger values saturate
}

// longHaulLen is the length in octets of the fixed fields:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  Cong. Level  |Act|     0     |           Parameter           |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|       0       |               Source QP Number                |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  Metric Type  |            Congestion Metric Value            |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
const longHaulLen = 12

// put writes the 12 octets.
func (l *LongHaul) put(b []byte) {
	b = b[:longHaulLen]
	b[0] = l.Level
	b[1] = byte(l.Action) << 6
	binary.BigEndian.PutUint16(b[2:], l.parameter())
	binary.BigEndian.PutUint32(b[4:], l.SourceQP&0xffffff)
	binary.BigEndian.PutUint32(b[8:], uint32(l.MetricType)<<24|min(l.MetricValue, 0xffffff))
}

// parameter keeps Parameter to what draft-tian 6.1 allows: 0 for Notify, a percentage for Rate Reduce and Resume.
func (l *LongHaul) parameter() uint16 {
	switch l.Action {
	case Notify:
		return 0
	case Pause:
		return l.Parameter
	}
	return min(l.Parameter, 100)
}
