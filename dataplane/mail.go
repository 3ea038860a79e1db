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

// mailbox passes messages from one worker to another: a CNP may arrive at another worker than the packets towards its host. If it is full,
// a message is lost: the host's next CNP follows soon.
type mailbox struct {
	written atomic.Uint32
	_       [60]byte
	read    atomic.Uint32
	_       [60]byte
	of      [mailboxSize]slowDown
}

const mailboxSize = 64

// put is for the one worker that writes.
func (m *mailbox) put(s slowDown) {
	at := m.written.Load()
	if at-m.read.Load() == mailboxSize {
		return
	}
	m.of[at%mailboxSize] = s
	m.written.Store(at + 1)
}

// take is for the one worker that reads.
func (m *mailbox) take() (s slowDown, ok bool) {
	at := m.read.Load()
	if at == m.written.Load() {
		return slowDown{}, false
	}
	s = m.of[at%mailboxSize]
	m.read.Store(at + 1)
	return s, true
}

// newMailboxes are those that a worker reads, by the worker that writes; nil without pacing.
func newMailboxes(workers int, ports []PortConfig) []mailbox {
	for i := range ports {
		if workers > 1 && ports[i].Paced > 0 {
			return make([]mailbox, workers)
		}
	}
	return nil
}

// readMail slows down the hosts whose CNPs arrived at other workers.
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
}
