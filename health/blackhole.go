package health

import "github.com/cnpgate/cnpgate/internal/packet"

// big follows packets of the largest size: a path whose MTU is too small loses all of these, and no others. A READ counts by the size of its responses.
type big struct {
	psn      uint32 // one that is outstanding
	waiting  uint32 // its payload, or its response's; 0: there is none
	Passed   uint32 // the largest payload that was acknowledged
	Stuck    uint32 // the smallest payload of a packet that was sent stuckTries times without being acknowledged
	attempts uint32 // of the packet at again
	again    uint32
	heard    bool // the responder has asked for it, or has answered since it was sent again
}

const (
	stuckTries  = 3
	coincidence = 16 // smaller packets that passed before the first large one: that the peer went down just then is no coincidence
)

// sizeOf is the payload of a request, or of the largest response to a READ.
func (h *Half) sizeOf(p *Packet) uint32 {
	if p.Opcode.Role() != packet.ReadRequest {
		return p.Data
	}
	if h.mtu == 0 {
		return min(p.Message, maximum)
	}
	return min(p.Message, h.mtu)
}

// outstanding notes a request of a size.
func (b *big) outstanding(psn, size uint32) {
	if b.waiting == 0 && size > b.Passed {
		b.psn, b.waiting = psn, size
	}
}

// delivered notes an ACK. latest is the last packet that it acknowledges, if known.
func (b *big) delivered(acked uint32, latest *sent) {
	if b.waiting != 0 && ahead(acked, b.psn) > 0 {
		b.Passed, b.waiting = max(b.Passed, b.waiting), 0
	}
	if latest != nil {
		b.Passed = max(b.Passed, uint32(latest.data))
	}
	if ahead(acked, b.again) > 0 {
		b.attempts = 0
	}
}

// stuck notes that a request of a size is sent again. asked: the responder has asked for just this one, which something behind it made it do.
func (b *big) stuck(psn, size uint32, asked bool) {
	if b.attempts == 0 || b.again != psn {
		b.again, b.attempts, b.heard = psn, 0, asked
	}
	if b.attempts++; b.attempts >= stuckTries && size > 0 && (b.Stuck == 0 || size < b.Stuck) {
		b.Stuck = size
	}
}
