package synth

import (
	"math"
	"math/bits"

	"github.com/cnpgate/cnpgate/internal/transport"
)

// window is how many messages a requester may have outstanding.
const window = 16

// newMessage draws a requester's next message.
func (t *Traffic) newMessage(l *live, number int) transport.Message {
	r := &l.rng
	var common rng
	if t.c.Schedule == Lockstep { // the same for all connections
		common = rng(mix(t.c.Seed ^ uint64(number)<<8))
		r = &common
	}
	m := transport.Message{Number: uint32(number), Op: t.drawOp(l.kind, r), Bytes: t.drawSize(r)}
	switch {
	case m.Op == transport.Atomic:
		m.Bytes = 8
	case l.kind == UD:
		m.Bytes = min(m.Bytes, uint32(t.c.MTU))
	}
	return m
}

// ops are the operations in the order of Mix.
var ops = [...]transport.Op{transport.Send, transport.SendImm, transport.Write, transport.WriteImm, transport.Read, transport.Atomic}

func (t *Traffic) drawOp(tr Transport, r *rng) transport.Op {
	m := t.c.Mix
	op := ops[r.weighted([]int{m.Send, m.SendImm, m.Write, m.WriteImm, m.Read, m.Atomic})]
	switch {
	case tr == UD && op != transport.SendImm:
		return transport.Send
	case tr == UC && (op == transport.Read || op == transport.Atomic):
		return transport.Write
	}
	return op
}

// drawSize draws a number of bytes. Each range between powers of two has the same probability.
func (t *Traffic) drawSize(r *rng) uint32 {
	lo, hi := uint64(t.c.Sizes[0]), uint64(t.c.Sizes[1])
	if lo == hi {
		return uint32(lo)
	}
	least, most := bits.Len64(lo), bits.Len64(hi)
	n := least + int(r.below(uint64(most-least+1)))
	from, to := max(lo, 1<<n>>1), min(hi, 1<<n-1)
	return uint32(from + r.below(to-from+1))
}

// nextDue is when a requester posts the message after the present one.
func (t *Traffic) nextDue(l *live, due int64) int64 {
	period := float64(t.c.Period) * l.speed
	if t.c.Schedule == Free { // exponential intervals
		period *= -math.Log(float64(l.rng.below(1<<32)+1) / (1 << 32))
	}
	return due + int64(period)
}
