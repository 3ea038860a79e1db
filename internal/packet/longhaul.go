package packet

import "encoding/binary"

// LongHaulLen is the length in octets of the fields of a Long-haul CNP without extension objects.
const LongHaulLen = 12

// LongHaul are the fields of a Long-haul CNP, the same in its ICMPv6 format (draft-tian 6.1, figure 2) after the ICMPv6 header and in its
// RoCEv2 format (6.2.4, figure 5) after the BTH:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  Cong. Level  |Act| Reserved  |           Parameter           |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                       Source QP Number                        |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  Metric Type  |            Congestion Metric Value            |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type LongHaul struct {
	Level       uint8 // Congestion Level, 0 none to 255 most severe
	Action      Action
	Reserved    uint8  // 6 bits of Action Flags: senders put 0, receivers ignore them
	Parameter   uint16 // by Action
	SourceQP    uint32 // the QP at the data's source. 32 bits on the wire, though a QP has 24
	MetricType  uint8
	MetricValue uint32 // 24 bits, unit by MetricType
}

// Action is the request of a Long-haul CNP to the source: the upper two bits of Action Flags (draft-tian 6.1, 5.5.1).
type Action uint8

const (
	ActionNotify     Action = 0 // congestion exists; Parameter is unused, 0
	ActionPause      Action = 1 // stop for Parameter microseconds
	ActionRateReduce Action = 2 // reduce the rate by Parameter percent, 0 to 100
	ActionResume     Action = 3 // undo Parameter percent of the last reduction, 0 to 100; 0 for all of it
)

// Actions is the number of actions.
const Actions = 4

// String is the draft's name in the spelling of configuration and reports.
func (a Action) String() string {
	return [...]string{"notify", "pause", "rate-reduce", "resume", "unknown"}[min(a, Actions)]
}

// Metric types (draft-tian 10.4): the unit of MetricValue.
const (
	MetricUnspecified = 0 // no known meaning; with value 0 nothing is disclosed (draft-tian 9)
	MetricQueueDepth  = 1 // kilobytes
	MetricQueueGrowth = 2 // kilobytes a millisecond
	MetricECNRate     = 3 // percent, 0 to 100
	MetricRTT         = 4 // microseconds
)

// largestParameter is the largest Parameter of each action: 0 of Notify, any of Pause, a percentage of Rate Reduce and Resume (draft-tian 6.1).
var largestParameter = [Actions]uint16{ActionNotify: 0, ActionPause: 0xffff, ActionRateReduce: 100, ActionResume: 100}

// InRange are the values that have ranges as the draft requires them of a sender: larger ones saturate, and of a QP 24 bits count.
func (l *LongHaul) InRange() (parameter uint16, sourceQP, metric uint32) {
	metric = 0xffffff
	if l.MetricType == MetricECNRate {
		metric = 100
	}
	return min(l.Parameter, largestParameter[l.Action&(Actions-1)]), l.SourceQP & 0xffffff, min(l.MetricValue, metric)
}

// Put writes 12 octets.
func (l *LongHaul) Put(b []byte) {
	l.PutWith(b, l.Reserved&0x3f, l.Parameter, l.SourceQP, l.MetricValue&0xffffff)
}

// PutWith is Put with other values in place of l's, without a copy of l.
func (l *LongHaul) PutWith(b []byte, reserved uint8, parameter uint16, sourceQP, metric uint32) {
	_ = b[LongHaulLen-1]
	first := uint32(l.Level)<<24 | uint32(uint8(l.Action)<<6|reserved)<<16 | uint32(parameter)
	binary.BigEndian.PutUint64(b, uint64(first)<<32|uint64(sourceQP))
	binary.BigEndian.PutUint32(b[8:], uint32(l.MetricType)<<24|metric)
}

// DecodeLongHaul reads 12 octets.
func DecodeLongHaul(b []byte) LongHaul {
	_ = b[LongHaulLen-1]
	metric := binary.BigEndian.Uint32(b[8:])
	return LongHaul{
		Level:       b[0],
		Action:      Action(b[1] >> 6),
		Reserved:    b[1] & 0x3f,
		Parameter:   binary.BigEndian.Uint16(b[2:]),
		SourceQP:    binary.BigEndian.Uint32(b[4:]),
		MetricType:  uint8(metric >> 24),
		MetricValue: metric & 0xffffff,
	}
}
