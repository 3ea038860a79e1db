package health

import "github.com/cnpgate/cnpgate/internal/packet"

// big follows packets of the largest size: a path whose MTU is too small loses all of these, and no others. A READ counts by the size of its responses.
type big struct {
	psn      uint32 // one that is outstanding
	waiting  size   // its size, or its response's; 0: there is none
	Passed   size   // the largest that was acknowledged
	Stuck    size   // the smallest one of a packet that was sent stuckTries times without being acknowledged
	attempts uint32 // of the packet at again
	again    uint32
	since    int64 // when that was first sent again
	waited   int64 // how long the packet of Stuck was sent again at most, ns
	heard    bool  // the responder has asked for it, or has answered since it was sent again
}

// size is that of a packet behind its BTH. Of packets with the same payload, those with more headers, such as a RETH, are longer.
type size struct{ data, headers uint16 }

func (s size) sum() uint32 { return uint32(s.data) + uint32(s.headers) }

func larger(a, b size) size {
	if a.sum() > b.sum() {
		return a
	}
	return b
}

const (
	stuckTries  = 3
	coincidence = 16 // smaller packets that passed before the first large one: that the peer went down just then is no coincidence
)

// sizeOf is the size of a request, or of the largest response to a READ on a path with an MTU; 0: it isn't known.
func sizeOf(p *Packet, mtu uint32) size {
	switch {
	case p.Opcode.Role() != packet.ReadRequest:
		return size{clamp(p.Data), uint16(p.Opcode.HeadersLen())}
	case mtu == 0:
		return size{clamp(min(p.Message, maximum)), packet.AETHLen}
	}
	return size{clamp(min(p.Message, mtu)), packet.AETHLen}
}

// outstanding notes a request of a size.
func (b *big) outstanding(psn uint32, of size) {
	if b.waiting == (size{}) && of.data > 0 && of.sum() > b.Passed.sum() {
		b.psn, b.waiting = psn, of
	}
}

// delivered notes an ACK. latest is the last packet that it acknowledges, if known.
func (b *big) delivered(acked uint32, latest *sent) {
	if b.waiting != (size{}) && ahead(acked, b.psn) > 0 {
		b.Passed, b.waiting = larger(b.Passed, b.waiting), size{}
	}
	if latest != nil {
		b.Passed = larger(b.Passed, size{latest.data, uint16(latest.headers)})
	}
	if ahead(acked, b.again) > 0 {
		b.attempts = 0
	}
}

// stuck notes that a request of a size is sent again. asked: the responder has asked for just this one, which something behind it made it do.
func (b *big) stuck(psn uint32, of size, asked bool, now int64) {
	if b.attempts == 0 || b.again != psn {
		b.again, b.attempts, b.heard, b.since = psn, 0, asked, now
	}
	if b.attempts++; b.attempts < stuckTries || of.data == 0 {
		return
	}
	if b.Stuck == (size{}) || of.sum() < b.Stuck.sum() {
		b.Stuck, b.waited = of, 0
	}
	if of == b.Stuck {
		b.waited = max(b.waited, now-b.since)
	}
}

// inTime reports whether the answers to a packet that was sent again and again would have come meanwhile: the time-out isn't shorter than a round trip, which is
// less than farTrip if it isn't known.
func (b *big) inTime(h *Half) bool {
	const farTrip = 50 * ms
	trip := farTrip
	if h.clean.n > 0 {
		trip = h.clean.most
	}
	return b.waited > 2*trip
}
