package dataplane

import (
	"github.com/cnpgate/cnpgate/internal/packet"
)

// slowDown reports that a host behind a port has sent a CNP.
type slowDown struct {
	host packet.Host
	port int
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
