package cm

// RDMA-CM's messages come only once. A message that can't be read at once, for lack of budget or because another worker holds a lock or has
// an older message, waits in its worker's queue. The frame that carried it doesn't wait.

const (
	// MaxWaiting is the capacity of a worker's queue: the messages of some thousand connections that are set up at once.
	MaxWaiting = 16384
	// WaitingShares is the number of parts into which the hash divides the groups. Each has this much space of its own, the rest is common.
	WaitingShares = 64
	OwnWaiting    = 64
)

// Queue is a ring of messages, oldest first.
type Queue struct {
	of   []Message // MaxWaiting
	next int       // the oldest message
	n    int
	// from is how many messages each share of the groups has here, common how many of all are in the common space.
	from   [WaitingShares]uint16
	common int
}

// NewQueue makes an empty queue of this length.
func NewQueue(of []Message) Queue { return Queue{of: of} }

// Len is the number of messages.
func (q *Queue) Len() int { return q.n }

// Add appends a message, if there is space. A share gets no more of the common space than it leaves free, so a flood between two hosts
// leaves half of it for the messages of others.
func (q *Queue) Add(m *Message) bool {
	share := m.Group % WaitingShares
	if excess := int(q.from[share]) - OwnWaiting; excess >= 0 {
		if excess >= len(q.of)-WaitingShares*OwnWaiting-q.common {
			return false
		}
		q.common++
	}
	if q.n == 0 {
		q.next = 0 // so that the memory that a short queue touches stays small
	}
	q.of[(q.next+q.n)%len(q.of)] = *m
	q.n++
	q.from[share]++
	return true
}

// Oldest returns the message that has waited longest, nil if there is none.
func (q *Queue) Oldest() *Message {
	if q.n == 0 {
		return nil
	}
	return &q.of[q.next]
}

// Remove removes the oldest message.
func (q *Queue) Remove() {
	share := q.of[q.next].Group % WaitingShares
	if q.from[share]--; q.from[share] >= OwnWaiting {
		q.common--
	}
	q.next = (q.next + 1) % len(q.of)
	q.n--
}
