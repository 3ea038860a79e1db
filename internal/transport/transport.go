// Package transport implements the two halves of a RoCEv2 queue pair: the requester, which sends messages and retransmits lost packets, and
// the responder, which acknowledges requests and answers RDMA READs and atomics. Both handle packets as descriptions; a caller moves them,
// as frames (endpoint) or as records (the traffic generator of the tests). Time in nanoseconds comes from the caller, who also decides when
// a QP may send. The package is pure, and allocates only while a QP's queues grow.
//
// Sequence numbers are PSNs extended beyond 24 bits. The first one is 2^24 plus the starting PSN, so that earlier PSNs have sequence
// numbers, too.
package transport

import (
	"github.com/cnpgate/cnpgate/internal/packet"
)

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

// Op is the operation of a message.
type Op uint8

// Operations of messages. The peer answers READs and atomics with data.
const (
	Write Op = iota // RDMA WRITE
	WriteImm
	Send
	SendImm
	Read   // RDMA READ
	Atomic // FetchAdd
)

// answered reports whether a message is complete only when its own response has arrived.
func (op Op) answered() bool { return op == Read || op == Atomic }

// Service is a transport service: the three high bits of its opcodes (IBTA table 38).
type Service uint8

// Transport services.
const (
	RC  = Service(0)
	UC  = Service(packet.UC)
	UD  = Service(packet.UD)
	XRC = Service(packet.XRC)
)

// reliable reports whether requests of the service are acknowledged.
func (s Service) reliable() bool { return s == RC || s == XRC }

const operation = 0x1f // of an opcode, the same in all transport services

// row is the opcodes of an operation's packets.
type row struct{ first, middle, last, only packet.Opcode }

var requestOpcodes = [...]row{
	Write:    {packet.RCWriteFirst, packet.RCWriteMiddle, packet.RCWriteLast, packet.RCWriteOnly},
	WriteImm: {packet.RCWriteFirst, packet.RCWriteMiddle, packet.RCWriteLastImm, packet.RCWriteOnlyImm},
	Send:     {packet.RCSendFirst, packet.RCSendMiddle, packet.RCSendLast, packet.RCSendOnly},
	SendImm:  {packet.RCSendFirst, packet.RCSendMiddle, packet.RCSendLastImm, packet.RCSendOnlyImm},
	Read:     {packet.RCReadRequest, packet.RCReadRequest, packet.RCReadRequest, packet.RCReadRequest},
	Atomic:   {packet.RCFetchAdd, packet.RCFetchAdd, packet.RCFetchAdd, packet.RCFetchAdd},
}

var readResponses = row{packet.RCReadRespFirst, packet.RCReadRespMiddle, packet.RCReadRespLast, packet.RCReadRespOnly}

// opcode returns the opcode of the index-th of n packets (IBTA table 38).
func (r *row) opcode(index, n uint32, s Service) packet.Opcode {
	op := r.middle
	switch {
	case n == 1:
		op = r.only
	case index == 0:
		op = r.first
	case index+1 == n:
		op = r.last
	}
	return op | packet.Opcode(s)
}

// requests are the requests that a responder supports, by opcode.
var requests = func() (all [operation + 1]struct {
	Request
	known bool
}) {
	for op, r := range requestOpcodes {
		for _, code := range []packet.Opcode{r.first, r.middle, r.last, r.only} {
			all[code].Request = Request{Op: Op(op), Last: code == r.last || code == r.only}
			all[code].known = true
		}
	}
	return all
}()

// RequestOf begins the description of a request packet with what its opcode determines. ok is false for opcodes that a responder of the
// service doesn't support.
func RequestOf(s Service, code packet.Opcode) (r Request, ok bool) {
	if e := &requests[code&operation]; e.known && code&^operation == packet.Opcode(s) {
		return e.Request, true
	}
	return Request{}, false
}

// HeldPSNs is how far after a gap a responder with SelectiveRepeat keeps packets, and so how many PSNs a requester may have in flight: 64
// MiB with an MTU of 1024.
const HeldPSNs = 1 << 16

const wordBits = 64

// heldPackets records which packets have arrived after a gap, and which of them end a message. Bit s%HeldPSNs is for sequence number s.
type heldPackets struct {
	arrived, last [HeldPSNs / wordBits]uint64
	count         int // of arrived
}

// keep records a packet after the gap at expect.
func (k *heldPackets) keep(expect, sequence uint64, last bool) {
	if sequence-expect >= HeldPSNs {
		return
	}
	word, bit := sequence%HeldPSNs/wordBits, uint64(1)<<(sequence%wordBits)
	if k.arrived[word]&bit == 0 {
		k.count++
	}
	k.arrived[word] |= bit
	if last {
		k.last[word] |= bit
	}
}

// forget clears a range of sequence numbers that starts at expect.
func (k *heldPackets) forget(expect, end uint64) {
	for sequence := expect; k.count > 0 && sequence < min(end, expect+HeldPSNs); sequence++ {
		word, bit := sequence%HeldPSNs/wordBits, uint64(1)<<(sequence%wordBits)
		if k.arrived[word]&bit != 0 {
			k.arrived[word] &^= bit
			k.last[word] &^= bit
			k.count--
		}
	}
}

// release moves expect past the packets that have arrived. It returns how many of them end a message, and whether more packets have arrived
// after another gap.
func (k *heldPackets) release(expect *uint64) (ended uint32, more bool) {
	for k.count > 0 {
		word, bit := *expect%HeldPSNs/wordBits, uint64(1)<<(*expect%wordBits)
		if k.arrived[word]&bit == 0 {
			break
		}
		if k.last[word]&bit != 0 {
			ended++
		}
		k.arrived[word] &^= bit
		k.last[word] &^= bit
		k.count--
		*expect++
	}
	return ended, k.count > 0
}
