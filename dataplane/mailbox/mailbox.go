// Package mailbox passes messages between two goroutines, without locks and allocations.
package mailbox

import "sync/atomic"

// Box passes messages of one type from one worker to another: a CNP may arrive at another worker than the packets towards its host, and a
// notification to the gateway as a proxy at another one than its flow. If it is full, put refuses a message, and the caller
// counts that.
type Box[M any] struct {
	written atomic.Uint32
	_       [60]byte
	read    atomic.Uint32
	_       [60]byte
	of      [Size]M
}

const Size = 64

// Put is for the one worker that writes. It returns false if the mailbox is full.
func (m *Box[M]) Put(s M) bool {
	at := m.written.Load()
	if at-m.read.Load() == Size {
		return false
	}
	m.of[at%Size] = s
	m.written.Store(at + 1)
	return true
}

// Take is for the one worker that reads.
func (m *Box[M]) Take() (s M, ok bool) {
	at := m.read.Load()
	if at == m.written.Load() {
		return s, false
	}
	s = m.of[at%Size]
	m.read.Store(at + 1)
	return s, true
}
