package sim

import (
	"math/bits"
	"unsafe"

	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/internal/fastpath"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/splitmix"
	"github.com/cnpgate/cnpgate/internal/virtual"
)

// port is one end of a link: its queues, the frames on their way to the other end, and counters.
type port struct {
	node, peer int32 // peer is the port at the other end
	delay      int64
	free       int64  // when the line is free, ns
	perByte    uint64 // ns in 32.32 fixed point
	rest       uint64 // remainder of free, in 2^-32 ns
	overhead   int64
	lose       uint64 // a frame is lost if 64 random bits are below this
	random     splitmix.Rand
	queues     [classes]fifo
	flight     flight
	stoppedTo  int64 // the other end has asked for no data until then, ns
	ingress    ingress
	ecn        ecn
	rate       uint64
	stats      PortStats
}

// PortStats are a port's counters.
type PortStats struct {
	Sent       Volume
	Dropped    Volume // by the switch, for lack of buffer; frames that were to leave by the port
	Lost       Volume // on the link
	Marked     uint64 // CE
	Peak       int64  // most bytes of data queued at one time
	Pauses     uint64 // PFC frames sent to stop the other end
	Resumes    uint64 // PFC frames sent to let the other end resume
	StoppedFor int64  // for how long the other end has asked for no data, ns; includes the rest of a current pause
}

// Volume is a number of frames and of their bytes.
type Volume struct{ Frames, Bytes uint64 }

func (v *Volume) add(bytes uint32) {
	v.Frames++
	v.Bytes += uint64(bytes)
}

// nsPerByte converts a rate in bit/s to the time of a byte, in ns as 32.32 fixed point.
func nsPerByte(rate uint64) uint64 {
	const bitsByNs = 8e9
	perByte, _ := bits.Div64(bitsByNs>>32, bitsByNs<<32&(1<<64-1), rate)
	return perByte
}

// book advances free by the time of a frame that starts at now or when the line is free, and returns when the frame has left.
func (p *port) book(now int64, length uint32) int64 {
	if now > p.free {
		p.free, p.rest = now, 0
	}
	hi, lo := bits.Mul64(uint64(int64(length)+p.overhead), p.perByte)
	lo, carry := bits.Add64(lo, p.rest, 0)
	hi += carry
	p.free += int64(hi<<32 | lo>>32)
	p.rest = lo & (1<<32 - 1)
	return p.free
}

// start puts a frame on the line of a port, after those on it already.
func (l *lines) start(n int32, f int32, now int64) {
	p := &l.ports[n]
	length := l.store.at(f).length
	left := p.book(now, length)
	p.stats.Sent.add(length)
	if p.lose != 0 && p.random.Next() < p.lose {
		p.stats.Lost.add(length)
		if l.passed != nil {
			l.pass(n, f, now, -1)
		}
		l.store.release(f)
		return
	}
	l.hops++
	at := left + p.delay
	if l.passed != nil {
		l.pass(n, f, now, at)
	}
	if p.flight.frames.Len() == 0 {
		l.agenda.Set(l.arrivalOf(n), at)
	}
	p.flight.frames.Push(flying{at, f, length})
	p.flight.bytes += int64(length)
}

// transmit starts the next frame of a port whose line is free.
func (l *lines) transmit(n int32, now int64) {
	p := &l.ports[n]
	f := none
	switch {
	case !p.queues[classControl].empty():
		f = p.queues[classControl].pop(&l.store)
	case !p.queues[classHigh].empty():
		f = l.leave(p, classHigh)
	case !p.queues[classData].empty() && p.stoppedTo <= now:
		f = l.leave(p, classData)
	}
	if f != none {
		l.start(n, f, now)
	}
	l.agenda.Set(int(n), p.next())
}

// next is when a port may start another frame, Never if none is queued.
func (p *port) next() int64 {
	switch {
	case !p.queues[classHigh].empty() || !p.queues[classControl].empty():
		return p.free
	case !p.queues[classData].empty():
		return max(p.free, p.stoppedTo)
	}
	return virtual.Never
}

// wake schedules the transmission of what a port has queued.
func (l *lines) wake(n int32, now int64) {
	if at := l.ports[n].next(); at > now {
		l.agenda.Set(int(n), at)
	} else {
		l.transmit(n, now)
	}
}

// arrive processes the frame at the far end of a port's link.
func (s *Sim) arrive(n int32, now int64) {
	p := &s.ports[n]
	arrived, next := p.flight.frames.Pop(), virtual.Never
	p.flight.bytes -= int64(arrived.length)
	if p.flight.frames.Len() > 0 {
		coming := p.flight.frames.At(0)
		fastpath.Prefetch(unsafe.Pointer(s.store.at(coming.frame))) // on a long link, the caches don't have it any more
		next = coming.at
	}
	s.agenda.Set(s.arrivalOf(n), next)
	f, in := arrived.frame, p.peer
	node := s.ports[in].node
	switch s.kinds[node] {
	case HostNode:
		s.toHost(s.of[node], f, now)
	case SwitchNode:
		s.toSwitch(in, f, now)
	case GatewayNode:
		s.toGateway(s.of[node], in, f, now)
	}
}

// trace adds a hop to a packet's trace, if it has one with a free entry.
func (l *lines) trace(f int32, hop *endpoint.Hop) {
	b := l.store.bytes(f)
	packet.Parse(b, l.store.at(f).length, &l.parsed)
	if l.parsed.HopOpts != 0 {
		endpoint.PutHop(b, &l.parsed, hop)
	}
}
