package rdmanet

// NIC is how the ends of a connection behave where the specification leaves a choice.
type NIC struct {
	Name string

	Selective bool  // packets behind a gap are accepted, and only what is missing is sent again
	Tolerance int64 // of a selective one: how long it waits for what is missing before it asks for it, ns; negative: it never asks

	AckEvery     int   // a requester asks for an ACK with each so many packets, and with the last one of a message
	AckEach      bool  // a responder sends an ACK for each packet, asked or not
	AckDelay     int64 // for so long a responder waits for more to acknowledge at once, ns
	Turn         int64 // from a request to its answer, ns
	MaxReads     int   // READ and ATOMIC requests outstanding at once
	Window       int64 // PSNs outstanding at once
	Identified   bool  // IPv4 identifications count up; else they are 0
	TimeOut      int64 // ns
	Doubling     bool  // the time-out doubles with each retry
	Retries      int
	RNRRetries   int // 7: without end (IBTA 9.7.5.2.8)
	NotifyEvery  int64
	Notifies     bool // CE is answered by CNPs
	Obeys        bool // CNPs slow it down
	Rate         float64
	FirstPSN     func() uint32
	SourcePort   func(a, b uint32, end int) uint16 // by the QPs of the ends
	QP           func() uint32
	RNRTimer     uint8 // of the AETH, 5 bits
	ECT          bool
	MTU          int
	IPv6         bool
	DSCP         uint8
	NetworkBytes int // headers of a packet without payload, for its time on the line
}

// rnrTimers is what the five bits of an RNR NAK mean, in units of 10 us (IBTA 9.7.5.2.8, table 46).
var rnrTimers = [32]int64{
	65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
}

// linuxPort is the UDP source port that Linux's drivers make from both QPs, the same in both directions.
func linuxPort(a, b uint32) uint16 {
	v := uint64(a) * uint64(b)
	v ^= v >> 20
	v ^= v >> 40
	label := uint32(v & 0xfffff)
	return uint16(label&0x3fff^label>>14) | 0xc000
}
