// Package transport implements the two halves of a RoCEv2 queue pair: the requester, which sends messages and retransmits lost packets, and
// the responder, which acknowledges requests and answers RDMA READs and atomics. Both handle packets as descriptions; a caller moves them,
// as frames (endpoint) or as records (the traffic generator of the tests). Time in nanoseconds comes from the caller, who also decides when
// a QP may send. The package is pure, and allocates only while a QP's queues grow.
//
// Sequence numbers are PSNs extended beyond 24 bits. The first one is 2^24 plus the starting PSN, so that earlier PSNs have sequence
// numbers, too.
package transport

import "github.com/cnpgate/cnpgate/internal/packet"

const firstSequence = packet.PSNMask + 1

// MaxReads is how many RDMA READs and atomics a QP may have outstanding, as most NICs allow.
const MaxReads = 16

// Config is the common configuration of a host's QPs. Times are nanoseconds.
type Config struct {
	MTU             uint32 // path MTU: most payload bytes in a packet
	AckEvery        int    // packets of a message between requests for an acknowledgement; the last packet always requests one. 0: only the last one
	NoAckIfFull     bool   // a packet that fills the window doesn't request an acknowledgement, as in Soft-RoCE
	SelectiveRepeat bool   // a responder keeps packets after a gap, a requester retransmits little more than what is missing
	GoBackAlways    bool   // a requester goes back on each NAK, as Soft-RoCE does; else once a round trip for the same packet
	Timeout         int64  // a requester goes back after this time without an acknowledgement
	Retries         int    // time-outs without progress that a requester survives
	NAKInterval     int64  // a responder repeats a NAK if the gap stays open for this time; 0: never (IBTA 9.7.5.1.3)
	Coalesce        int    // requests for an acknowledgement that one acknowledgement answers; 0 is 1. If more than 1, see Responder.Flush
}

// Counters is what a host's QPs count.
type Counters struct {
	Retransmitted uint64
	WentBack      uint64 // times that a requester began to retransmit
	TimedOut      uint64
	NAKsReceived  uint64
	InSequence    uint64 // requests that were accepted
	Duplicates    uint64 // requests that were accepted before
	OutOfSequence uint64 // requests after a gap
	ReadsDropped  uint64 // READs and atomics dropped because the responder's queue was full; part of InSequence and Duplicates
}

// Packets is the number of packets in a message of this many bytes, at least one.
func (c *Config) Packets(bytes uint32) uint32 {
	return max(1, uint32((uint64(bytes)+uint64(c.MTU)-1)/uint64(c.MTU)))
}

// payload is the number of bytes in the index-th packet of a message of this many bytes.
func (c *Config) payload(bytes, index uint32) uint32 {
	offset := index * c.MTU
	return min(bytes-min(offset, bytes), c.MTU)
}

// extend returns the sequence number closest to near whose low 24 bits are psn.
func extend(near uint64, psn uint32) uint64 {
	diff := int32((psn-uint32(near))<<8) >> 8
	return near + uint64(int64(diff))
}

// Syndromes of an acknowledgement (IBTA 9.7.5.1.3).
const (
	SyndromeACK = 0x1f // positive, without end-to-end credits
	SyndromeNAK = 0x60 // PSN sequence error
	SyndromeRNR = 0x21 // the receiver isn't ready: try again after 10 us
)

// rnrDelay is how long a requester waits after an RNR NAK, ns (IBTA 9.7.5.2.8).
func rnrDelay(h packet.AETH) int64 {
	const unit = 10_000 // ns
	timer := h.Syndrome & 0x1f
	switch {
	case timer == 0:
		return unit << 16
	case timer == 1:
		return unit
	case timer%2 == 0:
		return unit << (timer / 2)
	}
	return 3 * unit << (timer/2 - 1)
}
