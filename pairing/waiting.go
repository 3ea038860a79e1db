package pairing

// RDMA-CM's messages come only once. A message that can't be read at once, for lack of budget or because another worker holds a lock or has
// an older message, waits in its worker's queue. The frame that carried it doesn't wait.

const (
	// maxWaiting is the capacity of a worker's queue: the messages of some thousand connections that are set up at once.
	maxWaiting = 16384
	// waitingShares is the number of parts into which the hash divides the groups. Each has this much space of its own, the rest is common.
	waitingShares = 64
	ownWaiting    = 64
	// readsAtOnce bounds the waiting messages that a StartBurst or a Sweep reads. They use no budget, so they are also read in steps without
	// a burst.
	readsAtOnce = 4
)

// waitingQueue is a ring of messages, oldest first.
type waitingQueue struct {
	of   []cmMessage
	next int // the oldest message
	n    int
	// from is how many messages each share of the groups has here, common how many of all are in the common space.
	from   [waitingShares]uint16
	common int
}

// add appends a message, if there is space. A share gets no more of the common space than it leaves free, so a flood between two hosts leaves
// half of it for the messages of others.
func (q *waitingQueue) add(m *cmMessage) bool {
	share := m.group % waitingShares
	if excess := int(q.from[share]) - ownWaiting; excess >= 0 {
		if excess >= len(q.of)-waitingShares*ownWaiting-q.common {
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

// oldest returns the message that has waited longest, nil if there is none.
func (q *waitingQueue) oldest() *cmMessage {
	if q.n == 0 {
		return nil
	}
	return &q.of[q.next]
}

func (q *waitingQueue) remove() {
	share := q.of[q.next].group % waitingShares
	if q.from[share]--; q.from[share] >= ownWaiting {
		q.common--
	}
	q.next = (q.next + 1) % len(q.of)
	q.n--
}

// receiveCM reads a message, or lets it wait. A message is dropped if the queue has no space for it.
func (l *Learner) receiveCM(m *cmMessage) {
	if l.waiting.n == 0 && l.budget > 0 && l.readCM(m) {
		l.budget -= madCost
		return
	}
	if !l.waiting.add(m) {
		l.counts.CMDropped++
		l.dirty = true
	}
	l.publishOldest()
}

// readWaiting reads messages that have waited.
func (l *Learner) readWaiting() {
	if l.waiting.n == 0 {
		return
	}
	for range readsAtOnce {
		m := l.waiting.oldest()
		if m == nil || !l.readCM(m) {
			break
		}
		l.waiting.remove()
	}
	l.publishOldest()
}

// publishOldest informs the other workers about the time of this worker's oldest message; 0 for none.
func (l *Learner) publishOldest() {
	time := int64(0)
	if m := l.waiting.oldest(); m != nil {
		time = m.time
	}
	if l.oldest.Load() != time {
		l.oldest.Store(time)
	}
}

// readCM reads a message if no other worker has an older one and no lock is held: the messages of a connection may come through two
// workers, and a DREQ before its REP means nothing.
func (l *Learner) readCM(m *cmMessage) bool {
	p := l.pairing
	for _, o := range p.learners {
		if t := o.oldest.Load(); o != l && t != 0 && t < m.time {
			return false
		}
	}
	if !p.cm.lock.try() {
		return false
	}
	defer p.cm.lock.release()
	return m.read(l)
}
