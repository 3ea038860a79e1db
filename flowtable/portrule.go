package flowtable

// symmetricPort is the UDP source port that Linux gives to packets of a connection without a flow label, in both directions
// (rdma_calc_flow_label and rdma_flow_label_to_udp_sport): it depends on the product of the two QP numbers.
func symmetricPort(a, b uint32) uint16 {
	v := uint64(a) * uint64(b)
	v ^= v >> 20
	v ^= v >> 40
	label := uint32(v) & 0xfffff
	return uint16(label&0x3fff^label>>14) | 0xc000
}

const (
	regimeSample = 16 // flows looked at to tell how the ports of two hosts are made
	smallGroup   = 16 // flows of one direction from which on one agreeing pair may be chance
)

// portRule looks for the one flow of the other side whose QP, multiplied with this one's, gives the port of both. The number of
// the place is -1 if there is none or more than one; sure is false if the pair is only a candidate.
func (p *Pairing) portRule(pl *place) (n int, sure bool) {
	id := pl.id()
	n = p.onlyFit(pl, id)
	if n < 0 {
		return -1, false
	}
	mate, _ := p.at(pl.g, 1-pl.side, n)
	if p.onlyFit(&mate, mate.id()) != pl.n {
		return -1, false
	}
	sure = (id.unreliable() || answered(pl, &mate) || answered(&mate, pl)) && p.symmetricRegime(pl)
	return n, sure
}

// answered tells whether the last response of b is one to a.
func answered(a, b *place) bool { return b.ack().valid() && a.sent().has(b.ack().last()) }

// onlyFit is the one place of the other side that fits, or -1.
func (p *Pairing) onlyFit(pl *place, id identity) int {
	fit := -1
	if !id.steady() {
		return fit
	}
	for n := range int(pl.g.used[1-pl.side].Load()) {
		o, ok := p.at(pl.g, 1-pl.side, n)
		if !ok || o.owner() == 0 {
			continue
		}
		if i := o.id(); !fits(id, i) || !pl.may(n) || !o.may(pl.n) {
			continue
		}
		if fit >= 0 {
			return -1
		}
		fit = n
	}
	return fit
}

func fits(a, b identity) bool {
	return a.port() == b.port() && a.steady() && b.steady() && a.unreliable() == b.unreliable() && symmetricPort(a.qp(), b.qp()) == a.port()
}

// symmetricRegime tells whether the two hosts make their ports by the formula at all. With ports that are all equal, or random, one
// pair in 2^14 fits by chance; with 256 flows a side there are 2^16 pairs. So of the pairs that have equal ports most must fit, and where
// there are many flows, at least two pairs.
func (p *Pairing) symmetricRegime(pl *place) bool {
	used := int(pl.g.used[pl.side].Load())
	others := int(pl.g.used[1-pl.side].Load())
	step := max(1, used/regimeSample)
	equal, fit := 0, 0
	for n := pl.n % step; n < used; n += step {
		a, ok := p.at(pl.g, pl.side, n)
		if !ok || a.owner() == 0 {
			continue
		}
		id := a.id()
		for m := range others {
			b, ok := p.at(pl.g, 1-pl.side, m)
			if !ok || b.owner() == 0 {
				continue
			}
			if o := b.id(); o.port() == id.port() && o.steady() && id.steady() {
				equal++
				if fits(id, o) {
					fit++
				}
			}
		}
	}
	return 2*fit > equal && (fit > 1 || min(used, others) < smallGroup)
}
