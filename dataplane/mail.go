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

// portPaceRequest is a request about a flow that leaves by a port. All workers try it.
type portPaceRequest struct {
	paceRequest
	port  int
	trial uint8 // its place in trials of the worker that writes
}

// trial is what the workers have made of a request, in one word so that the last one finds the result of all: 16 bits each for the workers that have not
// tried it yet, those that have taken it, and those that had no slot for it.
type trial struct{ atomic.Uint64 }

const (
	untried   = 1
	taken     = 1 << 16
	noSlot    = 1 << 32
	trialMask = 1<<16 - 1
)

// trialSlots is the number of requests of a worker that others may have not tried yet: more than a mailbox has, so that one late worker doesn't use all.
const trialSlots = 2 * mailboxSize

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
			if p := w.pacers[s.port]; p.policy != nil {
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
			w.tried(&w.plane.workers[from].trials[r.trial], r.port, w.obey(r.port, &r.paceRequest))
		}
	}
	for from := range w.passedMail {
		for range mailboxSize {
			r, ok := w.passedMail[from].take()
			if !ok {
				break
			}
			w.senders.notifiedElsewhere(r.port, &r.paceRequest)
		}
	}
}
