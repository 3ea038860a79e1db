package trace

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/frames"
	"github.com/cnpgate/cnpgate/dataplane/mailbox"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing"
)

// Tracer is a worker's part of a trace. Of a nil tracer, which traces nothing, the stages may call at, each, began, learned, dropped, queued,
// marked, burstEnded and left.
type Tracer struct {
	trace   *Trace
	now     int64         // of this step, Unix time in ns
	b       *frames.Batch // at hand
	used    frames.Mask   // of slots
	inBurst frames.Mask   // slots of packets in the burst at hand
	slots   [tracedAtOnce]Packet
	new     [burst.MaxSize]flowtable.Index // flows that began in this burst
	newN    int
	records mailbox.Box[PacketRecord]

	headers packet.Parsed // of a frame that is dropped
	drop    PacketRecord
}

// Packet is a packet that is traced, and what the stages have decided about it so far.
type Packet struct {
	buf   uint64
	Place uint8 // in the burst
	PacketRecord
}

// At is the part of a worker at a time, Unix time in ns; nil of a nil Trace. It records packets that have waited too long.
func (t *Trace) At(worker int, now int64) *Tracer {
	if t == nil {
		return nil
	}
	s := &t.workers[worker]
	s.now = now
	for left := s.used; left != 0; left &= left - 1 {
		if i := bits.TrailingZeros64(uint64(left)); now-s.slots[i].Time > traceTime {
			s.finish(i)
		}
	}
	return s
}

// Begin chooses packets of a burst.
func (s *Tracer) Begin(b *frames.Batch) {
	if s == nil {
		return
	}
	s.b, s.newN, s.inBurst = b, 0, 0
	if s.trace.Drops != 0 {
		return
	}
	for i := range b.Frames {
		if !s.wants(i) {
			continue
		}
		free := bits.TrailingZeros64(uint64(^s.used))
		if free >= tracedAtOnce || !s.trace.Rate.Allow(&s.trace.spent, s.now) {
			s.trace.skipped.Add(1)
			continue
		}
		f, p := &b.Frames[i], &b.Records[i]
		t := &s.slots[free]
		*t = Packet{buf: f.Buf, Place: uint8(i)}
		t.Notification = packet.NotANotification
		t.Time, t.In, t.Length, t.Plain = s.now, uint8(b.Port), f.Len, b.Whole>>i&1 == 0
		t.Kind, t.Opcode, t.TOS = p.Kind, p.Opcode, p.TOS
		t.Bytes = uint16(copy(t.Frame[:], b.Data(i)))
		s.used |= 1 << free
		s.inBurst |= 1 << free
	}
}

// wants reports whether a packet is of the flow.
func (s *Tracer) wants(i int) bool {
	t, r := s.trace, &s.b.Records[i]
	if r.Flow != packet.NoFlow {
		return r.Flow.Src == t.Source && r.Flow.Dst == t.Destination && (t.AnyQP || r.DestQP() == t.DestQP)
	}
	return t.has(s.b.Headers(i))
}

// has reports whether headers are those of a packet of the flow.
func (t *Trace) has(p *packet.Parsed) bool {
	return p.Family != 0 && p.Src == t.Source && p.Dst == t.Destination && (t.AnyQP || p.Kind == packet.RoCEv2 && p.DestQP == t.DestQP)
}

// At is the packet at a place of the burst at hand, nil if it isn't traced.
func (s *Tracer) At(place int) *Packet {
	if s == nil {
		return nil
	}
	for left := s.inBurst; left != 0; left &= left - 1 {
		if t := &s.slots[bits.TrailingZeros64(uint64(left))]; int(t.Place) == place {
			return t
		}
	}
	return nil
}

// Each calls do for each traced packet among these of the burst at hand.
func (s *Tracer) Each(these frames.Mask, do func(t *Packet)) {
	if s == nil {
		return
	}
	for left := s.inBurst; left != 0; left &= left - 1 {
		if t := &s.slots[bits.TrailingZeros64(uint64(left))]; these>>t.Place&1 != 0 {
			do(t)
		}
	}
}

// Began is called when a flow begins.
func (s *Tracer) Began(x flowtable.Index) {
	if s != nil && s.newN < len(s.new) {
		s.new[s.newN] = x
		s.newN++
	}
}

// Learned notes what the flow table and the learner have found.
func (s *Tracer) Learned(flows *flowtable.Table, l *pairing.Learner) {
	if s == nil {
		return
	}
	s.Each(^(s.b.Gone | s.b.Flowless), func(t *Packet) {
		x := s.b.Flow[t.Place].Index
		if x == flowtable.None {
			t.Flow = FlowFull
			return
		}
		t.Flow, t.QP = FlowFound, l.Answer(x, flows.State(x).Answer())
		for n, y := range s.new[:s.newN] {
			if x == y {
				t.Flow, s.new[n] = FlowBegan, flowtable.None
			}
		}
	})
}

// Dropped is called when a frame, which arrived at port in, is consumed or dropped, in the burst at hand or later. data has its first bytes.
func (s *Tracer) Dropped(in int, f burst.Frame, data []byte, reason counters.Counter) {
	if s.trace.Drops.Has(reason) {
		s.dropped(in, f, data, reason)
		return
	}
	for left := s.used; left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(uint64(left))
		t := &s.slots[i]
		if t.buf != f.Buf || t.Ended {
			continue
		}
		if t.Ended, t.Reason = true, reason; s.inBurst>>i&1 == 0 {
			s.finish(i)
		}
	}
}

// dropped records a frame that is dropped, if it is wanted.
func (s *Tracer) dropped(in int, f burst.Frame, data []byte, reason counters.Counter) {
	p, r := &s.headers, &s.drop
	packet.Parse(data, f.Len, p)
	if !s.trace.AnyAddress && !s.trace.has(p) {
		return
	}
	if !s.trace.Rate.Allow(&s.trace.spent, s.now) {
		s.trace.skipped.Add(1)
		return
	}
	*r = PacketRecord{Time: s.now, In: uint8(in), Length: f.Len, Kind: p.Kind, Opcode: p.Opcode, TOS: p.DSCP<<2 | p.ECN, Notification: packet.NotANotification, Ended: true, Reason: reason}
	r.Bytes = uint16(copy(r.Frame[:], data))
	if !s.records.Put(*r) {
		s.trace.skipped.Add(1)
	}
}

// Queued is called when frames of a class have entered a queue that had a depth.
func (s *Tracer) Queued(out, class int, these frames.Mask, before uint64) {
	s.Each(these, func(t *Packet) {
		t.Queued, t.Out, t.Class, t.Depth = true, uint8(out), uint8(class), before
	})
}

// Responded is called with the state by which the response to frames of a class is chosen.
func (s *Tracer) Responded(kMin uint64, cause congestion.Cause, these frames.Mask) {
	s.Each(these, func(t *Packet) {
		t.KMin, t.Cause, t.Skip = kMin, cause, NoCongestion
	})
}

// Skips is called when a packet causes no notification, and no reason is counted.
func (s *Tracer) Skips(place int, why Skip) {
	if t := s.At(place); t != nil {
		t.Skip = why
	}
}

// Suppressed is called when a packet causes no notification, and the reason is counted.
func (s *Tracer) Suppressed(place uint8, why counters.Suppression) {
	if t := s.At(int(place)); t != nil && place != frames.NotInHand {
		t.Skip, t.Suppressed = NotSkipped, why
	}
}

// Sent is called when a packet has caused a notification.
func (s *Tracer) Sent(place uint8, format packet.Notification, to packet.Addr, by uint8, o counters.Outcome) {
	if t := s.At(int(place)); t != nil && place != frames.NotInHand {
		t.Skip, t.Suppressed, t.Notified, t.Outcome, t.Format, t.To, t.SentBy = NotSkipped, counters.Allowed, true, o, format, to, by
	}
}

// Marked is called with the packets that were to be marked, and those that were.
func (s *Tracer) Marked(asked, done frames.Mask, observed bool) {
	s.Each(asked, func(t *Packet) {
		t.MarkAsked, t.Marked, t.MarkObserved = true, done>>t.Place&1 != 0, observed
	})
}

// BurstEnded records the packets that need not be followed.
func (s *Tracer) BurstEnded() {
	if s == nil {
		return
	}
	for left := s.inBurst; left != 0; left &= left - 1 {
		if i := bits.TrailingZeros64(uint64(left)); s.slots[i].Ended || !s.trace.Decisions {
			s.finish(i)
		}
	}
	s.inBurst = 0
}

// Left is called with the frames that a port's device has taken.
func (s *Tracer) Left(sent []burst.Frame, lost []burst.Loss) {
	if s == nil {
		return
	}
	for place := range sent {
		for left := s.used; left != 0; left &= left - 1 {
			i := bits.TrailingZeros64(uint64(left))
			t := &s.slots[i]
			if t.buf != sent[place].Buf {
				continue
			}
			t.Left = max(s.now-t.Time, 1)
			for _, l := range lost {
				if int(l.Place) == place {
					t.Lost, t.LostBy = true, l.Cause
				}
			}
			s.finish(i)
		}
	}
}

// finish hands over the record in a slot, and frees it.
func (s *Tracer) finish(slot int) {
	if !s.records.Put(s.slots[slot].PacketRecord) {
		s.trace.skipped.Add(1)
	}
	s.used &^= 1 << slot
	s.slots[slot].buf = 0
}
