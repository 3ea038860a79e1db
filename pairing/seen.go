package pairing

import (
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/pairing/store"
)

// Seen is what this gateway knows of one of its flows, for other gateways.
type Seen struct {
	Remote
	Slot   int  // its number in the store
	Steady bool // the UDP source port hasn't changed lately
	Answer Answer
}

// Groups is the number of groups that there have ever been at a time. Their numbers are 1 to Groups().
func (p *Pairing) Groups() int { return p.store.Groups() }

// See appends the gateway's own flows of a group, not remote ones. It is for any goroutine. If a worker has the group's lock, it returns
// false, and the caller may try again later.
func (p *Pairing) See(group int, to []Seen) ([]Seen, bool) {
	g := p.store.Group(group)
	if g.Flows(0)+g.Flows(1) == 0 {
		return to, true
	}
	if !g.Lock().Try() {
		return to, false
	}
	defer g.Lock().Release()
	for side := range 2 {
		for n := range g.Used(side) {
			slot, ok := p.store.Occupied(g, side, n)
			if !ok || p.isRemote(slot.Ref()) {
				continue
			}
			t, x, state, live := p.answers.find(slot.Ref())
			if a := Answer(state.Answer()); live && a.Ended() == Open {
				if k, ok := t.KeyAt(x, state); ok {
					to = append(to, p.seen(&k, &slot.View, a))
				}
			}
		}
	}
	return to, true
}

func (p *Pairing) seen(k *flowtable.Key, v *store.View, a Answer) Seen {
	id, sent, ack := v.Identity(), v.Sent(), v.Ack()
	return Seen{
		Remote: Remote{
			Key: *k, Port: id.Port(), Unreliable: id.Unreliable(), Requests: sent.Valid(), Responses: ack.Valid(),
			First: sent.First(), High: sent.High(), Acked: ack.Last(),
		},
		Slot: int(v.InStore()), Steady: id.Steady(), Answer: a,
	}
}

// Opposite is the key that a flow of the opposite direction to a QP would have in the same scope.
func (p *Pairing) Opposite(k *flowtable.Key, destQP uint32) flowtable.Key {
	o := flowtable.Key{Src: k.Dst, Dst: k.Src, DestQP: destQP}
	scope := k.Scope()
	if int(scope.Port()) < len(p.egress) {
		scope = scope.At(int(p.egress[scope.Port()]))
	}
	o.SetScope(scope)
	return o
}
