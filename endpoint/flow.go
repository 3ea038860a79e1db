package endpoint

import (
	"fmt"
	"math/bits"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/transport"
)

// FlowID names a flow from the sender's side.
type FlowID struct {
	QP     uint32 // of this host
	Dst    packet.Addr
	DestQP uint32
}

// Flow is the reaction point's state of a QP: its rate, and the end of its pause.
type Flow struct {
	FlowID
	r        *ReactionPoint
	dcqcn    dcqcn
	hpcc     hpcc
	limit    explicitLimit
	pausedTo int64
	reactAt  int64  // when DCQCN obeys a CNP that has come; 0: none has
	reacted  uint64 // how often it has
	last     [maxNotifiers]lastNotification
	before   *Flow // of those to the same QP of the peer, the one that was opened before; nil: none
}

// Rate is the rate at which the QP may send at now, bit/s.
func (f *Flow) Rate(now int64) float64 {
	c := &f.r.c
	f.advance(now)
	rate := float64(c.LineRate)
	if c.Algorithm != NoControl {
		rate = f.dcqcn.rate
	}
	if f.hpcc.window > 0 {
		rate = min(rate, f.hpcc.rate(&c.HPCC))
	}
	if f.limit.rate > 0 {
		rate = min(rate, f.limit.rate)
	}
	return rate
}

// PausedUntil is when the QP may send again, ns; 0 or in the past if it isn't paused.
func (f *Flow) PausedUntil() int64 { return f.pausedTo }

// Sent notes that the QP has sent this many bytes.
func (f *Flow) Sent(now int64, bytes int) {
	f.advance(now)
	f.dcqcn.sent(bytes, &f.r.c.DCQCN, float64(f.r.c.LineRate))
}

// advance executes the timers.
func (f *Flow) advance(now int64) {
	c := &f.r.c
	if f.reactAt != 0 && f.reactAt <= now {
		f.dcqcn.notify(f.reactAt, &c.DCQCN, float64(c.LineRate))
		f.reactAt = 0
		f.reacted++
	}
	f.dcqcn.advance(now, &c.DCQCN, float64(c.LineRate))
	f.hpcc.advance(now, c)
	f.limit.advance(now, c)
}

// SlowDown processes a standard CNP, or another notification that leaves the amount of the reduction to the sender, without a packet.
func (f *Flow) SlowDown(now int64) Decision {
	if f.r.c.Algorithm == NoControl {
		return Ignored
	}
	if f.r.c.ReactionDelayMax > 0 {
		f.advance(now)
		if f.reactAt == 0 {
			f.reactAt = now + f.reactionDelay()
		}
		return SlowedDown
	}
	f.dcqcn.notify(now, &f.r.c.DCQCN, float64(f.r.c.LineRate))
	return SlowedDown
}

// reactionDelay is the delay of the next reaction. Delays of successive reactions, and of QPs, are spread evenly (Fibonacci hashing).
func (f *Flow) reactionDelay() int64 {
	const golden = 0x9e3779b97f4a7c15
	c := &f.r.c
	spread := uint64(c.ReactionDelayMax - c.ReactionDelay)
	hash := (c.Addr.Lo + uint64(f.QP) + f.reacted) * golden
	above, _ := bits.Mul64(hash, spread+1)
	return c.ReactionDelay + int64(above)
}

// pause stops the QP for a time from now. A pause never shortens an earlier one.
func (f *Flow) pause(now int64, microseconds uint16) Decision {
	const microsecond = 1000
	f.pausedTo = max(f.pausedTo, now+int64(microseconds)*microsecond)
	return Paused
}

// unpause ends a pause.
func (f *Flow) unpause(now int64) Decision {
	if f.pausedTo <= now {
		return NothingToResume
	}
	f.pausedTo = now
	return Unpaused
}

// Op is the operation of a message.
type Op = transport.Op

// The operations that a Host has.
const (
	Write = transport.Write // RDMA WRITE
	Send  = transport.Send
	Read  = transport.Read // RDMA READ: the data comes from the peer
)

// Stream is one or more messages of the same kind from a QP.
type Stream struct {
	QP       uint32 // local QP number
	Op       Op
	Bytes    uint32 // of each message, up to 2^31
	Messages int    // 1
	At       int64  // when the first message is posted, ns
	Interval int64  // between messages, ns; 0: all are posted at once. A message is posted even if the previous one isn't complete
	ID       uint64 // chosen by the caller; repeated in each Completion
}

// Completion is the end of a message.
type Completion struct {
	ID      uint64 // of the stream
	Message int    // number in the stream, from 0
	Posted  int64  // when it was due, ns
	Done    int64  // when its last acknowledgement or READ response came, or it failed, ns
	Bytes   uint32
	Failed  bool // after Config.Retries time-outs, or an error that the peer reported
}

// activeStream is a Stream with messages still to be posted.
type activeStream struct {
	Stream
	posted int
}

const maxMessage = 1 << 31 // bytes (IBTA 9.3.3: DMA length)

// Start adds a stream to its QP, after the streams that the QP has already.
func (h *Host) Start(s Stream) error {
	setDefault(&s.Messages, 1)
	q := h.byNumber[s.QP]
	switch {
	case q == nil:
		return fmt.Errorf("endpoint: stream %d: there is no QP 0x%06x; open it first", s.ID, s.QP)
	case q.dead:
		return fmt.Errorf("endpoint: stream %d: QP 0x%06x has failed; close it and open another", s.ID, s.QP)
	case s.Messages < 0 || s.Interval < 0:
		return fmt.Errorf("endpoint: stream %d: Messages and Interval must not be negative", s.ID)
	case s.Op != Write && s.Op != Send && s.Op != Read:
		return fmt.Errorf("endpoint: stream %d: a host doesn't support operation %d", s.ID, s.Op)
	case s.Bytes > maxMessage || h.transport.Packets(s.Bytes) > maxInFlight:
		return fmt.Errorf("endpoint: stream %d: messages of %d bytes are too long for the transport or for MTU %d", s.ID, s.Bytes, h.c.MTU)
	}
	q.streams.Push(activeStream{Stream: s})
	q.arm(s.At)
	return nil
}

// post adds the next message of the QP's streams if its time has come; else it sets the QP's timer for it and returns false.
func (q *qp) post(now int64) bool {
	if q.streams.Len() == 0 {
		return false
	}
	s := q.streams.At(0)
	due := s.At + int64(s.posted)*s.Interval
	if due > now {
		q.arm(due)
		return false
	}
	q.requester.Post(transport.Message{ID: s.ID, Posted: due, Bytes: s.Bytes, Number: uint32(s.posted), Op: s.Op})
	if s.posted++; s.posted == s.Messages {
		q.streams.Pop()
	}
	return true
}

// complete reports that a message is done.
func (h *Host) complete(now int64, m transport.Message, failed bool) {
	if failed {
		h.counters.MessagesFailed++
	} else {
		h.counters.MessagesDone++
	}
	if h.c.Completed != nil {
		h.c.Completed(Completion{ID: m.ID, Message: int(m.Number), Posted: m.Posted, Done: now, Bytes: m.Bytes, Failed: failed})
	}
}
