package link

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/dataplane/egress"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/lossless"
)

// pfcFrame is the length of a PFC frame, padded to Ethernet's minimum (IEEE 802.3 3.2.8), without FCS.
const pfcFrame = 60

// pfcSender makes the PFC frames of one link. It owns one buffer, so that notifications can't leave it without one.
type pfcSender struct {
	classes [account.MaxClasses]lossless.Xoff
	buffer  burst.Frame // Buf is 0 while it has none
	due     uint8       // priorities in the next frame
}

// Why a PFC frame did not leave when it was due.
const (
	unsentNoBuffer = iota // tried again in the next step
	unsentRefused         // the device refused it: tried again in the next step
	unsentLost            // the device dropped it: while the other end must stop, the next refresh repeats it; otherwise its pause ends by itself
	unsentReasons
)

var unsentNames = [unsentReasons]string{"no-buffer", "device-full", "lost"}

// Announce appends the PFC frame that is due to tx. It goes first, and the shaper doesn't delay or count it: such frames use at most a
// thousandth of the line. q is the peer's queue, which the frames that arrive on this link enter. Only the first worker calls it.
func (l *Link) Announce(now int64, q *egress.Port, b *burst.Batch, tx []burst.Frame) []burst.Frame {
	s := &l.sender
	if n := len(b.Spare); s.buffer.Buf == 0 && n > 0 {
		s.buffer, b.Spare = b.Spare[n-1], b.Spare[:n-1]
	}
	l.updateXoff(now, q, b.Drain)
	switch {
	case s.due == 0:
		return tx
	case s.buffer.Buf == 0:
		l.counts.unsent[unsentNoBuffer].Add(1)
		return tx
	}
	f := s.buffer
	f.Head, f.Len = pfcFrame, pfcFrame
	l.build(b.Bytes(f))
	return append(tx, f)
}

// updateXoff finds the priorities of the next frame: those that changed or must be renewed now, and those whose last frame did not leave.
func (l *Link) updateXoff(now int64, q *egress.Port, drain bool) {
	s := &l.sender
	for class := range q.Classes {
		c := &l.Lossless[class]
		if !c.On {
			continue
		}
		depth, frames := q.Classes[class].Waiting(), q.Classes[class].Frames()
		if drain { // nothing more is received: the other end may resume
			depth, frames = 0, 0
		}
		switch s.classes[class].Update(&c.Thresholds, now, depth, frames) {
		case lossless.Silent:
			continue
		case lossless.Expired:
			l.counts.expired[c.Priority].Add(1)
		}
		s.due |= 1 << c.Priority
	}
}

// build writes a frame with the present state of the priorities that are due.
func (l *Link) build(b []byte) {
	clear(b)
	copy(b, packet.MACControlAddr[:])
	copy(b[6:], l.Address[:])
	b[12], b[13] = packet.EtherTypeMACControl>>8, packet.EtherTypeMACControl&0xff
	pfc := packet.PFC{Enabled: l.sender.due}
	for class := range l.Lossless {
		if l.sender.classes[class].Stopped() {
			pfc.Time[l.Lossless[class].Priority] = lossless.MaxQuanta
		}
	}
	for priority := range pfc.Time {
		if pfc.Enabled>>priority&1 == 0 {
			pfc.Time[priority] = 0
		}
	}
	pfc.Put(b[packet.EthernetLen:])
}

// Complete records the result for the PFC frame at the head of a port's list. lost: the backend dropped it.
func (l *Link) Complete(sent, lost bool) {
	s := &l.sender
	if !sent {
		l.counts.unsent[unsentRefused].Add(1)
		return
	}
	for due := s.due; due != 0 && !lost; due &= due - 1 {
		l.counts.pfcSent[bits.TrailingZeros8(due)].Add(1)
	}
	if lost {
		l.counts.unsent[unsentLost].Add(1)
	}
	s.due, s.buffer = 0, burst.Frame{}
}

// TakeBuffer takes the buffer of PFC frames away, 0 if there is none.
func (l *Link) TakeBuffer() (buf uint64) {
	if l != nil {
		buf, l.sender.buffer = l.sender.buffer.Buf, burst.Frame{}
	}
	return buf
}
