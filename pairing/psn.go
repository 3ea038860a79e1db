package pairing

import (
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing/store"
)

// catchUp updates the highest PSN with the requests that Routine has skipped.
func (f *flow) catchUp() {
	if f.flags&sends != 0 && f.last&inexact == 0 && packet.PSNAtMost(f.top, f.last) {
		f.top, f.high = f.last, f.last
	}
}

const (
	// readsAhead is the maximum number of outstanding READs of a requester on common NICs. widestRead bounds the PSNs that each of them
	// counts.
	readsAhead = 16
	widestRead = 1 << 15
)

// noteRequest records the PSNs that a request uses, and publishes them for the other side's workers. Unless exactly is set, it publishes a
// highest PSN only once in 64 (coarse) PSNs.
func (f *flow) noteRequest(p *arrival, exactly bool) {
	psn := p.PSN
	span := uint32(0)
	if p.Opcode.Role() == packet.ReadRequest {
		span = readSpan(p)
	}
	before := f.high
	switch {
	case f.flags&sends == 0:
		f.flags |= sends
		f.first, f.top, f.high = psn, psn, (psn+span)&packet.PSNMask
		exactly = true
	case (f.first-psn)&packet.PSNMask <= firstSlack && psn != f.first:
		f.first = psn
		exactly = true
	case packet.PSNAtMost(f.top, psn): // so all earlier requests end before it, also a READ that might have used more PSNs
		if f.high != f.top { // this many READs may be outstanding, and their PSNs don't show that the peer flow is silent
			f.width = max(f.width, readsAhead/4*min((psn-f.top)&packet.PSNMask, widestRead))
		}
		f.top, f.high = psn, (psn+span)&packet.PSNMask
	}
	if (f.top-f.first)&packet.PSNMask > maxSpan {
		f.first = (f.top - maxSpan) & packet.PSNMask
	}
	f.last = psn
	if span != 0 {
		f.last |= inexact
	}
	if exactly || before/coarse != f.high/coarse {
		f.slot.PublishSent(f.lease, store.MakeSent(f.first, f.high, f.lease))
	}
}

// readSpan is the number of PSNs that a READ request uses beyond its own: one for each packet of the response. Their number is not known,
// so readSpan assumes the smallest path MTU.
func readSpan(p *arrival) uint32 {
	at := p.Ext() + p.Opcode.Offset(packet.HasRETH)
	if at+packet.RETHLen > len(p.frame) {
		return 0
	}
	const smallestMTU = 256
	bytes := uint64(packet.DecodeRETH(p.frame[at:]).DMALength)
	return uint32(min((max(bytes, 1)-1)/smallestMTU, maxSpan))
}

// asksForACK reports whether a request has the AckReq bit (IBTA 9.2.13).
func asksForACK(p *arrival) bool {
	at := int(p.BTH) + 8
	return at < len(p.frame) && p.frame[at]&0x80 != 0
}

// isACK reports whether a response is a positive acknowledgement and nothing else.
func isACK(p *arrival) bool {
	at := p.Ext()
	return acknowledges(p) && at < len(p.frame) && p.frame[at]>>5 == 0
}

// acknowledges reports whether a response is an ACK or a NAK and nothing else. (READ and atomic responses may be sent again.)
func acknowledges(p *arrival) bool {
	return p.Opcode.Headers() == packet.HasAETH && !p.Opcode.HasPayload()
}

const (
	// nextSlack is the number of packets, at the start of a retransmission, that may be lost before the gateway.
	nextSlack   = 3
	nakSequence = 3 // the upper three bits of the AETH's syndrome in a NAK (IBTA 9.7.5.2)
)

// noteNext records the PSN that a response waits for: the one after the PSN that it acknowledges, or the PSN that a NAK names.
func (f *flow) noteNext(p *arrival) {
	next := p.PSN
	if at := p.Ext(); !acknowledges(p) || at < len(p.frame) && p.frame[at]>>5 != nakSequence {
		next = (next + 1) & packet.PSNMask
	}
	if next |= noteBit; f.slot.Next(int(f.responses-1)%store.NextRing) == next {
		return
	}
	f.slot.SetNext(int(f.responses)%store.NextRing, next)
	f.responses++
}

// waitsFor reports whether one of a flow's last responses waits for a PSN, or for one up to nextSlack before it.
func waitsFor(f *store.View, psn uint32) bool {
	for i := range store.NextRing {
		if w := f.Next(i); w != 0 && (psn-w)&packet.PSNMask <= nextSlack {
			return true
		}
	}
	return false
}
