// Package endpoint is a RoCEv2 host in software: queue pairs that send and receive RC messages (SEND, RDMA WRITE, RDMA READ), a NIC that
// paces them, a notification point that answers CE with CNPs, and a reaction point that obeys congestion notifications. It is pure: time
// (int64 nanoseconds), frames and buffers come from the caller, who moves frames between hosts.
//
//	h.Start(endpoint.Stream{QP: qp, Op: endpoint.Write, Bytes: 1 << 20})
//	for {
//		n, length := h.Next(now, buf) // a frame to send, or length 0
//		...
//		h.Receive(now, frame, length) // a frame that came in
//		now, ok = h.Due()             // when to ask again if nothing comes in
//	}
//
// Open opens QPs with numbers and PSNs that both hosts know. Alternatively, with CMConfig.Enabled, RDMA-CM sets them up: by Dial at one
// host, and Listen at the other. Ping, and CMConfig.Rping at the other end, exchange messages as rping does.
//
// A Host is for one goroutine. After its queues have grown to their working size, it allocates nothing per packet.
//
// ReactionPoint can be used without a Host: it is a reference for NIC firmware, and needs only the list of QPs from its host.
package endpoint

import (
	"fmt"

	"github.com/cnpgate/cnpgate/internal/cm"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/ring"
	"github.com/cnpgate/cnpgate/internal/transport"
)

// Host is one RoCEv2 host with one NIC.
type Host struct {
	c         Config
	transport transport.Config
	reaction  *ReactionPoint
	counters  Counters // except those that counted returns
	counted   transport.Counters

	manager *cm.Manager         // nil without RDMA-CM
	conns   map[uint32]*cm.Conn // by number of this host's QP
	madPSN  uint32              // of QP 1

	byNumber   map[uint32]*qp // nil for a number reserved for a connection that isn't established yet
	nextNumber uint32

	control  ring.Ring[*qp] // QPs with an acknowledgement or a CNP to send
	ready    ring.Ring[*qp] // QPs that may send data now
	pacing   timerHeap      // QPs that may send data later
	timers   timerHeap      // time-outs and messages to be posted
	lineFree int64          // when the NIC can start the next frame, ns
	lineRest int64          // remainder of lineFree, in 1/LineRate ns
	pausedTo [packet.PFCClasses]int64

	parsed  packet.Parsed
	scratch [maxHeaders]byte
}

// New makes a host. The error names the field of Config that is wrong.
func New(c Config) (*Host, error) {
	if err := c.complete(); err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	reaction, err := NewReactionPoint(c.Reaction)
	if err != nil {
		return nil, err
	}
	h := &Host{
		c: c, transport: c.transport(), reaction: reaction, conns: make(map[uint32]*cm.Conn), byNumber: make(map[uint32]*qp), nextNumber: c.FirstQP,
	}
	if h.manager, err = h.newManager(); err != nil {
		return nil, fmt.Errorf("endpoint: RDMA-CM: %w", err)
	}
	return h, nil
}

// Counters returns what the host has counted. Notifications are counted by ReactionPoint.
func (h *Host) Counters() Counters {
	c, t := h.counters, &h.counted
	c.Retransmitted, c.WentBack, c.TimedOut, c.NAKsReceived = t.Retransmitted, t.WentBack, t.TimedOut, t.NAKsReceived
	c.InSequence, c.Duplicates, c.OutOfSequence, c.ReadsDropped = t.InSequence, t.Duplicates, t.OutOfSequence, t.ReadsDropped
	return c
}

// ReactionPoint returns the host's reaction point, for its counters and the rates of QPs.
func (h *Host) ReactionPoint() *ReactionPoint { return h.reaction }

// Refusal is the syndrome of the NAK with which the peer refused a request of a QP for good (IBTA 9.7.5.2), 0 if it didn't.
func (h *Host) Refusal(number uint32) uint8 {
	if q := h.byNumber[number]; q != nil {
		return q.refused
	}
	return 0
}

// Next writes the next frame that may start by now to out. It returns the number of bytes written and the frame's length on the wire
// without FCS; length is 0 if there is no frame. In PayloadNone, n covers the headers only, except that CNPs are complete. out must hold a
// whole frame (MaxFrame bytes suffice). Acknowledgements and CNPs precede data.
func (h *Host) Next(now int64, out []byte) (n, length int) {
	h.expire(now)
	if now < h.lineFree {
		return 0, 0
	}
	if h.pausedTo[ackPriority] <= now {
		n, length = h.nextControl(out)
	}
	if length == 0 && h.pausedTo[h.c.Priority] <= now {
		n, length = h.nextData(now, out)
	}
	if length > 0 {
		h.occupyLine(now, length)
		h.counters.FramesSent++
		h.counters.BytesSent += uint64(length)
	}
	return n, length
}

// Due returns when to call Next if no frame arrives before. ok is false if the host has nothing to do until a frame arrives. A time in the
// past means now.
func (h *Host) Due() (at int64, ok bool) {
	at = never
	if t, more := h.timers.first(); more {
		at = t
	}
	if h.manager != nil {
		at = min(at, h.manager.Due())
	}
	if h.control.Len() > 0 || h.manager != nil && h.manager.Pending() {
		at = min(at, max(h.lineFree, h.pausedTo[ackPriority]))
	}
	lineFree := max(h.lineFree, h.pausedTo[h.c.Priority])
	if h.ready.Len() > 0 {
		at = min(at, lineFree)
	}
	if t, more := h.pacing.first(); more {
		at = min(at, max(t, lineFree))
	}
	return at, at != never
}

// occupyLine notes that a frame of length bytes starts at now. The remainder of the division carries over to the next frame, so that a busy
// line is exactly as fast as LineRate.
func (h *Host) occupyLine(now int64, length int) {
	const bitsByNs = 8 * second
	amount := int64(length+h.c.Overhead)*bitsByNs + h.lineRest
	h.lineFree = now + amount/h.c.LineRate
	h.lineRest = amount % h.c.LineRate
}

// expire runs the timers that are due.
func (h *Host) expire(now int64) {
	if h.manager != nil {
		h.manager.Expire(now)
	}
	for {
		q := h.timers.popDue(now)
		if q == nil {
			return
		}
		q.timerEnds(now)
	}
}
