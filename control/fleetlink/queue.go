//go:build !nofleet

package fleetlink

import (
	"sync"

	"github.com/cnpgate/cnpgate/internal/ring"
)

// message is a message on its way.
type message struct {
	subject string
	data    []byte
}

// queue is a queue of messages of bounded size. If it is full, the oldest ones are dropped and counted. ready has a token while there is
// something to take.
type queue struct {
	mutex   sync.Mutex
	of      ring.Ring[message]
	bytes   int
	dropped uint64
	ready   chan struct{}
}

const (
	queueMessages = 8192
	queueBytes    = 16 << 20
)

func newQueue() *queue {
	return &queue{ready: make(chan struct{}, 1)}
}

// put adds a message, and never waits for more than the lock.
func (q *queue) put(m message) {
	q.mutex.Lock()
	for n := q.of.Len(); n > 0 && (n == queueMessages || q.bytes+len(m.data) > queueBytes); n-- {
		q.drop()
		q.dropped++
	}
	q.of.Push(m)
	q.bytes += len(m.data)
	q.mutex.Unlock()
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// drop removes the oldest message.
func (q *queue) drop() message {
	m := q.of.Pop()
	q.bytes -= len(m.data)
	return m
}

// take returns the oldest message; false if there is none.
func (q *queue) take() (m message, ok bool) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if q.of.Len() == 0 {
		return m, false
	}
	return q.drop(), true
}

// state is the number of messages and bytes, and of those that were dropped so far.
func (q *queue) state() (n, bytes int, dropped uint64) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	return q.of.Len(), q.bytes, q.dropped
}
