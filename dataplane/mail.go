package dataplane

import (
	"sync/atomic"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// slowDown reports that a host behind a port has sent a CNP.
type slowDown struct {
	host packet.Host
	port int
}

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

// newMailboxes are those that a worker reads, by the worker that writes; nil without pacing.
func newMailboxes[M any](workers int, ports []PortConfig) []mailbox[M] {
	for i := range ports {
		if workers > 1 && ports[i].Paced > 0 {
			return make([]mailbox[M], workers)
		}
	}
	return nil
}

// readMail does what notifications ask for that arrived at other workers.
func (w *Worker) readMail() {
	for from := range w.mail {
		for range mailboxSize {
			s, ok := w.mail[from].take()
			if !ok {
				break
			}
			if p := w.pacers[s.port]; p.Active() {
				p.Slow(s.host, w.now)
			}
		}
	}
}
