package notify

import (
	"sync/atomic"
	"unsafe"

	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing"
)

const (
	historyRecords    = 1024 // notifications that a worker keeps
	suppressedRecords = 256  // suppressed ones
	// suppressedInterval is the least time between two records of suppressed notifications with one reason, ns: the reasons that hold for every
	// packet of a burst would overwrite the rare ones. The counters count each.
	suppressedInterval = 10e6
	// recordedBytes bounds the bytes of a frame that a record keeps: a proxy, and decode, need the whole packet.
	recordedBytes = cnpgen.MaxLen
)

// Message is what a notification says, to whom, and about which queue.
type Message struct {
	Decision  congestion.Decision
	FlowBytes uint64      // of the flow that had arrived by then
	FlowRate  uint64      // at which the flow arrived before, bytes per millisecond; 0: not known
	FairRate  uint64      // that the law allowed the flow, bytes per millisecond; 0: the law hasn't asked
	To        packet.Addr // the notified host: the sender, or its proxy; of no meaning where it was Suppressed
	Format    packet.Notification
	In, Out   uint8 // the port that the notification leaves by, which is the flow's ingress port, and the congested one
	Class     uint8
	Cause     congestion.Cause // 0 of a Resume
	Raised    bool             // the level is higher than for the queue's state alone, as the queue has grown since an earlier request
}

// NotificationRecord is what a worker keeps of a notification, and why it sent it. It has no pointers, so that records can lie outside the Go heap.
type NotificationRecord struct {
	Message
	Number    uint64 // of the worker's records of this list, from 0
	Time      int64  // ns, Unix time
	Key       flowtable.Key
	Flow      flowtable.Ref
	Queued    uint64 // bytes of the flow that waited in the queue, as far as this worker tracks shares
	Metrics   congestion.Metrics
	Threshold uint64         // of the first condition of Cause, in the unit of its metric; of a Resume K_min
	QP        pairing.Answer // the flow's source QP, and how it is known
	Outcome   counters.Outcome
	Reason    counters.Suppression // where it was Suppressed
	Length    uint16               // bytes of the notification's frame; 0 where it was Suppressed
	Frame     [recordedBytes]byte
}

// Captured is the frame, as far as the record has it.
func (r *NotificationRecord) Captured() []byte { return r.Frame[:min(int(r.Length), recordedBytes)] }

// A recordSlot holds one record. The worker never waits: it drops a record whose slot is being read.
type recordSlot struct {
	readers atomic.Uint32
	NotificationRecord
}

// History is a worker's list of its latest records, which any goroutine may read while the worker writes.
//
// An atomic store waits for all stores before it, so the worker makes a few in a burst, not for each record. It claims the numbers of
// several records, and then writes those whose slots have no reader. A reader enters a slot, and then reads it if no claimed record belongs there.
// So of a worker and a reader that meet in a slot, at least one knows of the other.
type History struct {
	slots   []recordSlot  // a power of 2 of them
	next    uint64        // number of the next record; only the worker reads it
	until   uint64        // claimed, as the worker knows it
	claimed atomic.Uint64 // records before this number may be being written
	written atomic.Uint64 // records before this number can be read, except dropped ones
}

// claimAhead is the number of records that are claimed at once.
const claimAhead = 64

// historySize is the number of bytes that newHistory needs.
func historySize(records int) int { return records * int(unsafe.Sizeof(recordSlot{})) }

// newHistory lays a list over memory, zeroed and 8-byte aligned.
func newHistory(memory []byte, records int) History {
	return History{slots: unsafe.Slice((*recordSlot)(unsafe.Pointer(unsafe.SliceData(memory))), records)}
}

// record is the slot of the next record, to be written whole before publish; nil if somebody reads it. Only the worker calls it.
func (h *History) record() *recordSlot {
	n := h.next
	if h.next++; n >= h.until {
		h.until = n + claimAhead
		h.claimed.Store(h.until)
	}
	s := &h.slots[n&uint64(len(h.slots)-1)]
	if s.readers.Load() != 0 {
		return nil
	}
	s.Number = n
	return s
}

// Publish lets others read the records of a burst. Only the worker calls it.
func (h *History) Publish() {
	if h.written.Load() == h.next {
		return
	}
	h.written.Store(h.next)
	h.until = h.next
	h.claimed.Store(h.next)
}

// Read copies the records from a number on, the oldest first, as many as fit. It returns how many it copied, and the number to go on from: if that is
// further away than so many, the others are lost. Any goroutine may call it.
func (h *History) Read(from uint64, to []NotificationRecord) (n int, next uint64) {
	written, size := h.written.Load(), uint64(len(h.slots))
	if written > size {
		from = max(from, written-size)
	}
	for ; from < written && n < len(to); from++ {
		s := &h.slots[from&(size-1)]
		s.readers.Add(1)
		if from+size >= h.claimed.Load() && s.Number == from {
			to[n] = s.NotificationRecord
			n++
		}
		s.readers.Add(^uint32(0))
	}
	return n, from
}

// Recorded is the number that the next record will have. Any goroutine may call it.
func (h *History) Recorded() uint64 { return h.written.Load() }

// recordSent keeps what was sent, or is only observed, with its frame.
func (n *Notifier) recordSent(m *Note, a *account.Flow, frame []byte, o counters.Outcome) {
	c := n.State
	if c.Trace != nil {
		c.Trace.Sent(c.Batch.InHand, m.Format, m.To, m.In, o)
	}
	r := n.Sent.record()
	if r == nil {
		return
	}
	r.Message, r.Outcome, r.Reason, r.Length = m.Message, o, counters.Allowed, uint16(len(frame))
	copy(r.Frame[:], frame)
	n.recordState(r, m.Flow, a, m.state)
}

// recordSuppressed keeps that the sender of a flow, which has an account, was not notified, unless a record of the same reason was made
// lately.
func (n *Notifier) recordSuppressed(r *Queue, x flowtable.Index, s counters.Suppression) {
	if x == flowtable.None || n.Now < n.suppressedNext[s] {
		return
	}
	n.suppressedNext[s] = n.Now + suppressedInterval
	to := n.Suppressed.record()
	if to == nil {
		return
	}
	to.Message = Message{FlowBytes: n.Learner.Bytes(x), In: uint8(r.In), Out: uint8(r.Out), Class: uint8(r.Class), Cause: r.Cause}
	to.Outcome, to.Reason, to.Length = counters.Suppressed, s, 0
	n.recordState(to, x, n.Accounts.Known(x), r.State)
}

// recordState notes the time, the flow, and the state of the queue.
func (n *Notifier) recordState(r *recordSlot, x flowtable.Index, a *account.Flow, q *stage.QueueState) {
	c := n.State
	r.Time = c.UnixTime()
	state := c.Flows.State(x)
	r.Key, r.Flow, r.QP = *c.Flows.Key(x), flowtable.Ref{Index: x, Generation: state.Generation()}, c.Learner.Answer(x, state.Answer())
	r.Metrics, r.Threshold, r.Queued = q.Metrics, q.Threshold, uint64(c.Accounts.Share(x, a, r.Class).Queued)
}

// Arrived is the state of the queue for a notification about a packet that arrived with CE: it says nothing about a queue here.
var Arrived stage.QueueState
