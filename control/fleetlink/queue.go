//go:build !nofleet

package fleetlink

import "sync"

// message is a message on its way.
type message struct {
	subject string
	data    []byte
}

// queue is a queue of messages of bounded size. If it is full, the oldest ones are dropped and counted. ready has a token while there is
// something to take.
type queue struct {
	mutex   sync.Mutex
	of      []message // a ring
	first   int
	n       int
	bytes   int
	dropped uint64
	ready   chan struct{}
}

const (
	queueMessages = 8192
	queueBytes    = 16 << 20
)

func newQueue() *queue {
	return &queue{of: make([]message, queueMessages), ready: make(chan struct{}, 1)}
}

// put adds a message, and never waits for more than the lock.
func (q *queue) put(m message) {
	q.mutex.Lock()
	for q.n > 0 && (q.n == len(q.of) || q.bytes+len(m.data) > queueBytes) {
		q.drop()
		q.dropped++
	}
	q.of[(q.first+q.n)%len(q.of)] = m
	q.n++
	q.bytes += len(m.data)
	q.mutex.Unlock()
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// drop removes the oldest message.
func (q *queue) drop() message {
	m := q.of[q.first]
	q.of[q.first] = message{}
	q.first = (q.first + 1) % len(q.of)
	q.n--
	q.bytes -= len(m.data)
	return m
}

// take returns the oldest message; false if there is none.
func (q *queue) take() (m message, ok bool) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if q.n == 0 {
		return m, false
	}
	return q.drop(), true
}

// state is the number of messages and bytes, and of those that were dropped so far.
func (q *queue) state() (n, bytes int, dropped uint64) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	return q.n, q.bytes, q.dropped
}
