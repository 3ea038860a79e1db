package congestion

// Arrivals paces the notifications for packets of one flow that arrive with CE: a queue of the sender's own data centre has marked them. So
// the sender is notified a WAN round trip earlier than by the receiver. The zero Arrivals has had no such packet.
//
// It is one word, since each flow has one, and other goroutines may read it:
//
//	bit 63                                          8        7          6          5         0
//	| when a notification was due last, ns mod 2^56 | begun | answered | packets since then |
//
// The time wraps after more than two years.
type Arrivals uint64

const (
	marksBits   = 1<<6 - 1 // up to arrivalMarks
	answeredBit = 1 << 6   // the sender was notified then
	begunBit    = 1 << 7   // one was due
	timeShift   = 8
	timeBits    = 1<<56 - 1
)

// A notification is due at once if there was none for arrivalInterval. Under steady marking it is due sooner: after arrivalMarks packets,
// but not before arrivalLeast (DCQCN's reaction points reduce the rate at most once in that time).
const (
	arrivalInterval = 50_000 // ns
	arrivalMarks    = 4
	arrivalLeast    = 4_000 // ns
)

// Mark counts a packet with CE at a time (ns). It returns the new Arrivals, and whether a notification is due. The next interval begins
// then, whether one can be sent or not; Answered records that one was sent.
func (a Arrivals) Mark(now int64) (next Arrivals, due bool) {
	marks := min(a&marksBits+1, arrivalMarks)
	elapsed := a.elapsed(now)
	if a&begunBit != 0 && elapsed < arrivalInterval && (marks < arrivalMarks || elapsed < arrivalLeast) {
		return a&^marksBits | marks, false
	}
	return Arrivals(now)<<timeShift | begunBit, true
}

// Answered returns a, with the sender notified at the last due time.
func (a Arrivals) Answered() Arrivals { return a | answeredBit }

// IsAnswered reports whether the last due notification was sent.
func (a Arrivals) IsAnswered() bool { return a&answeredBit != 0 }

// AnsweredWithin reports whether the last due notification was sent, less than this many ns before now.
func (a Arrivals) AnsweredWithin(now, ns int64) bool {
	return a.IsAnswered() && a.elapsed(now) < uint64(max(ns, 0))
}

// elapsed is the time since the last due notification, ns.
func (a Arrivals) elapsed(now int64) uint64 { return (uint64(now) - uint64(a>>timeShift)) & timeBits }

// Arrived is the request to a sender whose packets arrive with CE: the same Notify as from a queue that begins to mark. The depth of the
// queue that has marked them isn't known, so no metric is disclosed.
func Arrived() Decision { return Decision{Action: Notify, Level: levelAtKMin, Rung: 1} }
