package dataplane

import (
	"sync/atomic"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// slowDown reports that a host behind a port has sent a CNP.
type slowDown struct {
	host packet.Addr
	port int
}

// portPaceRequest is a request about a flow that leaves by a port.
type portPaceRequest struct {
	paceRequest
	port int
}

// mailbox passes messages from one worker to another: a notification may arrive at another worker than the packets that it is about. If it
// is full, a message is lost: the next notification follows soon.
type mailbox[T any] struct {
	written atomic.Uint32
	_       [60]byte
	read    atomic.Uint32
	_       [60]byte
	of      [mailboxSize]T
}

const mailboxSize = 64

// put is for the one worker that writes.
func (m *mailbox[T]) put(s T) {
	at := m.written.Load()
	if at-m.read.Load() == mailboxSize {
		return
	}
	m.of[at%mailboxSize] = s
	m.written.Store(at + 1)
}

// take is for the one worker that reads.
func (m *mailbox[T]) take() (s T, ok bool) {
	at := m.read.Load()
	if at == m.written.Load() {
		return s, false
	}
	s = m.of[at%mailboxSize]
	m.read.Store(at + 1)
	return s, true
}

// newMailboxes are those that a worker reads, by the worker that writes; nil without pacing.
func newMailboxes[T any](workers int, ports []PortConfig) []mailbox[T] {
	for i := range ports {
		if workers > 1 && ports[i].Paced > 0 {
			return make([]mailbox[T], workers)
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
			if p := w.egress[s.port].pacer; p.policy != nil {
				p.slow(s.host, w.now)
			}
		}
	}
	for from := range w.paceMail {
		for range mailboxSize {
			r, ok := w.paceMail[from].take()
			if !ok {
				break
			}
			w.obey(r.port, &r.paceRequest)
		}
	}
}
