package replay

import (
	"cmp"
	"encoding/binary"
	"net"
	"slices"

	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// pauses are the PAUSE and PFC frames of a capture by their sender and priority; PAUSE counts as priority packet.PFCClasses.
type pauses map[pauseKey]*pausing

type pauseKey struct {
	from     [6]byte
	priority int
}

// pausing is what is known of one sender and priority.
type pausing struct {
	frames      uint64
	first, last int64
	since       int64 // when the present pause began; 0: there is none
	until       int64 // when it ends, unless it is renewed
	renew       int64 // a pause frame until then renews it
	paused      int64 // ns, of the pauses that have ended
	longest     int64
}

// mostPausing bounds the senders and priorities.
const mostPausing = 1 << 12

// A capture doesn't say how fast a link is, which the time of a pause depends on: quanta of 512 bit times. A single pause is taken for as long as at
// 100 Gbit/s. One that is renewed before it could end at 10 Gbit/s goes on, unless RDMA passed meanwhile.
const (
	quantum    = 5.12 // ns at 100 Gbit/s
	slowFactor = 10
)

// pause notes a PAUSE or PFC frame in the last pass.
func (h *judge) pause(b []byte) {
	if h.parsed.Kind != packet.MACControl || len(b) < packet.EthernetLen+4 {
		return
	}
	mac, from := b[packet.EthernetLen:], [6]byte(b[6:12])
	passed := h.passed.before(from)
	switch binary.BigEndian.Uint16(mac) {
	case packet.MACControlPause:
		h.pauses.note(pauseKey{from, packet.PFCClasses}, binary.BigEndian.Uint16(mac[2:]), h.now, passed)
	case packet.MACControlPFC:
		if len(mac) < packet.PFCLen {
			return
		}
		f := packet.DecodePFC(mac)
		for class, t := range f.Time {
			if f.Enabled>>class&1 != 0 {
				h.pauses.note(pauseKey{from, class}, t, h.now, passed)
			}
		}
	}
}

// traffic is when the latest RDMA packet passed, from whom, and when the latest one from anybody else.
type traffic struct {
	from      [6]byte
	at, other int64
	tagged    uint8 // the priorities of those with a VLAN tag
	untagged  bool
}

func (p *traffic) note(b []byte, now int64) {
	from := [6]byte(b[6:12])
	switch binary.BigEndian.Uint16(b[packet.EthernetLen-2:]) {
	case packet.EtherTypeCTag, packet.EtherTypeSTag:
		p.tagged |= 1 << (b[packet.EthernetLen] >> 5)
	default:
		p.untagged = true
	}
	if from != p.from {
		p.other = p.at
	}
	p.from, p.at = from, now
}

// before is when the latest packet passed that a device didn't send.
func (p *traffic) before(device [6]byte) int64 {
	if device == p.from {
		return p.other
	}
	return p.at
}

// note notes a frame that pauses a priority for a time in quanta; 0: it resumes. passed is when RDMA from others passed.
func (s *pauses) note(key pauseKey, quanta uint16, now, passed int64) {
	if *s == nil {
		*s = pauses{}
	}
	p := (*s)[key]
	switch {
	case p == nil && (quanta == 0 || len(*s) >= mostPausing):
		return
	case p == nil:
		p = &pausing{first: now}
		(*s)[key] = p
	}
	if p.since != 0 && (quanta == 0 || now > p.renew || passed > p.until) {
		p.end(min(now, p.until))
	}
	if quanta == 0 {
		return
	}
	p.frames++
	p.last = now
	if p.since == 0 {
		p.since = now
	}
	p.until, p.renew = now+int64(float64(quanta)*quantum), now+int64(float64(quanta)*quantum*slowFactor)
}

// end ends the present pause.
func (p *pausing) end(at int64) {
	if p.since == 0 {
		return
	}
	took := max(at-p.since, 0)
	p.paused += took
	p.longest = max(p.longest, took)
	p.since = 0
}

// report is what they are by sender; now is the time of the last frame.
func (s pauses) report(now int64, data *traffic) []health.Pauses {
	by := map[[6]byte]*health.Pauses{}
	for key, p := range s {
		p.end(min(now, p.until))
		o := by[key.from]
		if o == nil {
			o = &health.Pauses{From: net.HardwareAddr(key.from[:]).String(), First: p.first, Last: p.last}
			by[key.from] = o
		}
		o.Frames = max(o.Frames, p.frames)
		o.First, o.Last = min(o.First, p.first), max(o.Last, p.last)
		o.Priorities = append(o.Priorities, health.Paused{Priority: key.priority, Frames: p.frames, Time: p.paused, Longest: p.longest,
			Unused: key.priority < packet.PFCClasses && !data.untagged && data.tagged != 0 && data.tagged>>key.priority&1 == 0})
	}
	var all []health.Pauses
	for _, o := range by {
		slices.SortFunc(o.Priorities, func(a, b health.Paused) int { return cmp.Compare(a.Priority, b.Priority) })
		all = append(all, *o)
	}
	slices.SortFunc(all, func(a, b health.Pauses) int { return cmp.Compare(a.From, b.From) })
	return all
}
