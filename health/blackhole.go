package health

// big follows packets of the largest size: a path whose MTU is too small loses all of these, and no others.
type big struct {
	psn      uint32 // one that is outstanding
	waiting  uint32 // its payload; 0: there is none
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

// outstanding notes a request.
func (b *big) outstanding(p *Packet) {
	if b.waiting == 0 && p.Data > b.Passed {
		b.psn, b.waiting = p.PSN, p.Data
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

// stuck notes that a packet is sent again. asked: the responder has asked for just this one, which something behind it made it do.
func (b *big) stuck(p *Packet, asked bool) {
	if b.attempts == 0 || b.again != p.PSN {
		b.again, b.attempts, b.heard = p.PSN, 0, asked
	}
	if b.attempts++; b.attempts >= stuckTries && p.Data > 0 && (b.Stuck == 0 || p.Data < b.Stuck) {
		b.Stuck = p.Data
	}
}
