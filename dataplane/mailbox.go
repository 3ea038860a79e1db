package dataplane

import "sync/atomic"

// mailbox passes messages of one type from one worker to another: a CNP may arrive at another worker than the packets towards its host, and a
// notification to the gateway as a proxy at another one than its flow. If it is full, put refuses a message, and the caller
// counts that.
type mailbox[M any] struct {
	written atomic.Uint32
	_       [60]byte
	read    atomic.Uint32
	_       [60]byte
	of      [mailboxSize]M
}

const mailboxSize = 64

// put is for the one worker that writes. It returns false if the mailbox is full.
func (m *mailbox[M]) put(s M) bool {
	at := m.written.Load()
	if at-m.read.Load() == mailboxSize {
		return false
	}
	m.of[at%mailboxSize] = s
	m.written.Store(at + 1)
	return true
}

// take is for the one worker that reads.
func (m *mailbox[M]) take() (s M, ok bool) {
	at := m.read.Load()
	if at == m.written.Load() {
		return s, false
	}
	s = m.of[at%mailboxSize]
	m.read.Store(at + 1)
	return s, true
}
