package dataplane

import "github.com/cnpgate/cnpgate/dataplane/counters"

// Drain stops reception; Step still sends queued frames.
func (w *Worker) Drain() { w.state.IO.Drain = true }

// Close returns every buffer to the backend. Frames that were still queued count as dropped by the shutdown.
func (w *Worker) Close() {
	s := &w.state
	s.IO.Drain = true
	for port := range s.IO.Ports { // of all ports, before the first exchange: no port may send buffers that are about to be freed
		s.IO.Ports[port].Tx = s.Egress[port].List()
	}
	for port := range s.Egress {
		q := &s.Egress[port]
		if s.ID == 0 {
			if buf := w.plane.links[port].TakeBuffer(); buf != 0 {
				w.giveBack(buf)
			}
		}
		for q.Notifications.Len() > 0 {
			f, tag := q.Notifications.Pop()
			w.giveBack(f.Buf)
			w.transmitter.countNotSent(port, tag.Index, counters.Shutdown)
		}
		p := s.Pacers[port]
		for at, _, any := p.First(); any; at, _, any = p.First() {
			f, _, _ := p.Release(at, s.Now)
			w.giveBack(f.Frame.Buf)
			s.Counters.Add(port, counters.DroppedShutdown, 1)
		}
		for class := range q.Classes {
			for q.Classes[class].Len() > 0 {
				w.giveBack(q.Classes[class].Leave().Buf)
				s.Counters.Add(port, counters.DroppedShutdown, 1)
			}
		}
	}
	for _, f := range s.IO.Spare {
		w.giveBack(f.Buf)
	}
	s.IO.Spare = s.IO.Spare[:0]
	w.backend.Exchange()
	w.publish()
	w.histograms.sample(s.Now, s.Egress, s.ID == 0)
}

// giveBack frees a buffer at the next exchange; it runs one at once if no more fit.
func (w *Worker) giveBack(buf uint64) {
	if len(w.state.IO.Free) == cap(w.state.IO.Free) {
		w.backend.Exchange()
	}
	w.state.IO.Free = append(w.state.IO.Free, buf)
}
