package sim

import (
	"fmt"

	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/virtual"
)

// host is a host of the network and its port.
type host struct {
	node int
	port int32
	end  *endpoint.Host
}

// toHost passes a frame to a host.
func (s *Sim) toHost(h, f int32, now int64) {
	end := s.hosts[h].end
	end.Receive(now, s.store.bytes(f), int(s.store.at(f).length))
	s.store.release(f)
	if s.measure.first == 0 && slowedDown(end) {
		s.measure.first = now
	}
	s.schedule(h, now)
}

// slowedDown reports whether a host has ever obeyed a notification that slows it down.
func slowedDown(end *endpoint.Host) bool {
	d := &end.ReactionPoint().Counters().Decisions
	return d[endpoint.SlowedDown]+d[endpoint.Measured]+d[endpoint.Paused]+d[endpoint.Reduced] > 0
}

// isCNP recognises a receiver's CNP (IBTA Annex A17).
func isCNP(b []byte) bool {
	const opcode = atL4 + packet.UDPLen
	return len(b) > opcode && b[atNext] == packet.ProtoUDP && b[opcode] == byte(packet.CNP)
}

// schedule schedules a host's next action.
func (s *Sim) schedule(h int32, now int64) {
	at := virtual.Never
	if due, ok := s.hosts[h].end.Due(); ok {
		at = max(due, now)
	}
	s.agenda.Set(s.pumpOf(h), at)
}

// pump makes a host do what is due, and processes a frame that it sends.
func (s *Sim) pump(h int32, now int64) error {
	n, length := s.hosts[h].end.Next(now, s.scratch)
	if length > 0 {
		if n > longBytes {
			return fmt.Errorf("host %s sent a frame with %d bytes of headers, more than the %d that are kept", s.name(s.hosts[h].node), n, longBytes)
		}
		if f := s.store.put(s.scratch[:n], length); f != none {
			if isCNP(s.scratch[:n]) {
				s.measure.cnps++
			}
			s.start(s.hosts[h].port, f, now)
		}
		s.schedule(h, now)
		return nil
	}
	due, ok := s.hosts[h].end.Due()
	if !ok {
		due = virtual.Never
	}
	s.agenda.Set(s.pumpOf(h), max(due, now+1)) // a host with nothing to send has at most a timer: time must advance
	return nil
}
