package dataplane

import (
	"sync/atomic"
	"unsafe"

	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/congestion"
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

// Outcome says what became of a notification.
type Outcome uint8

const (
	Emitted    Outcome = iota // it was put into the queue of the port that it leaves by
	Observed                  // it was built and not sent, as the policy only observes
	Suppressed                // it was not sent, for Reason
)

// Outcomes is the number of outcomes.
const Outcomes = 3

// String is the outcome's name in the API.
func (o Outcome) String() string {
	return [...]string{"sent", "observed", "suppressed", "unknown"}[min(o, Outcomes)]
}

// NotificationRecord is what a worker keeps of a notification, and why it sent it. It has no pointers, so that records can lie outside the Go heap.
type NotificationRecord struct {
	Number    uint64 // of the worker's records of this list, from 0
	Time      int64  // ns, Unix time
	Key       flowtable.Key
	Flow      flowtable.Ref
	FlowBytes uint64 // of the flow that had arrived by then
	FlowRate  uint64 // at which the flow arrived in the last observation window, bytes per millisecond; 0: not known
	Queued    uint64 // bytes of the flow that waited in the queue, as far as this worker tracks shares
	Metrics   congestion.Metrics
	Threshold uint64 // of the first condition of Cause, in the unit of its metric; of a Resume K_min
	Decision  congestion.Decision
	QP        pairing.Answer // the flow's source QP, and how it is known
	In, Out   uint8          // the port that the notification leaves by, and the congested one
	Class     uint8
	Format    congestion.Format // of no meaning where it was Suppressed
	Cause     congestion.Cause  // 0 of a Resume
	Outcome   Outcome
	Reason    Suppression // where it was Suppressed
	To        packet.Addr // the notified host: the sender, or its proxy; of no meaning where it was Suppressed
	Length    uint16      // bytes of the notification's frame; 0 where it was Suppressed
	Frame     [recordedBytes]byte
}

// Captured is the frame, as far as the record has it.
func (r *NotificationRecord) Captured() []byte { return r.Frame[:min(int(r.Length), recordedBytes)] }

// A recordSlot holds one record. Its lock is 1 while the worker writes, and twice the number of readers while others read. The worker never waits:
// it drops a record whose slot is being read.
type recordSlot struct {
	lock atomic.Uint32
	NotificationRecord
}

// history is a worker's list of its latest records, which any goroutine may read while the worker writes.
type history struct {
	slots   []recordSlot  // a power of 2 of them
	written atomic.Uint64 // records, dropped ones included
}

// historySize is the number of bytes that newHistory needs.
func historySize(records int) int { return records * int(unsafe.Sizeof(recordSlot{})) }

// newHistory lays a list over memory, zeroed and 8-byte aligned.
func newHistory(memory []byte, records int) history {
	return history{slots: unsafe.Slice((*recordSlot)(unsafe.Pointer(unsafe.SliceData(memory))), records)}
}

// begin is the slot of the next record, to be written whole; nil if somebody reads it. Only the worker calls it.
func (h *history) begin() *recordSlot {
	n := h.written.Load()
	s := &h.slots[n&uint64(len(h.slots)-1)]
	if !s.lock.CompareAndSwap(0, 1) {
		h.written.Store(n + 1)
		return nil
	}
	s.Number = n
	return s
}

// end publishes the record in the slot that begin gave.
func (h *history) end(s *recordSlot) {
	next := s.Number + 1
	s.lock.Store(0)
	h.written.Store(next)
}

// read copies the records from a number on, the oldest first, as many as fit. It returns how many it copied, and the number to go on from: if that is
// further away than so many, the others are lost.
func (h *history) read(from uint64, to []NotificationRecord) (n int, next uint64) {
	written := h.written.Load()
	if size := uint64(len(h.slots)); written > size {
		from = max(from, written-size)
	}
	for ; from < written && n < len(to); from++ {
		s := &h.slots[from&uint64(len(h.slots)-1)]
		if !s.share() {
			continue
		}
		if s.Number == from {
			to[n] = s.NotificationRecord
			n++
		}
		s.lock.Add(^uint32(1))
	}
	return n, from
}

// share locks the slot for a reader. It is false if the worker is writing a later record there.
func (s *recordSlot) share() bool {
	for {
		v := s.lock.Load()
		if v&1 != 0 {
			return false
		}
		if s.lock.CompareAndSwap(v, v+2) {
			return true
		}
	}
}

// Notifications copies the records of the notifications that the worker sent, or would have sent where it only observes, from a number on, the oldest
// first, as many as fit. It returns how many it copied, and the number to go on from: if that is further away than so many, the others are lost.
// Any goroutine may call it.
func (w *Worker) Notifications(from uint64, to []NotificationRecord) (n int, next uint64) {
	return w.notifications.read(from, to)
}

// NotificationsRecorded is the number that the next record of Notifications will have. Any goroutine may call it.
func (w *Worker) NotificationsRecorded() uint64 { return w.notifications.written.Load() }

// SuppressedNotifications is Notifications for those that were suppressed: of each reason one in 10 ms, at most.
func (w *Worker) SuppressedNotifications(from uint64, to []NotificationRecord) (n int, next uint64) {
	return w.suppressions.read(from, to)
}

// SuppressedRecorded is the number that the next record of SuppressedNotifications will have. Any goroutine may call it.
func (w *Worker) SuppressedRecorded() uint64 { return w.suppressions.written.Load() }
