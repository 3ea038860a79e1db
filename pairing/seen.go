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
			if a, ok := p.answers.of(slot.Ref()); ok && a.Ended() == Open {
				to = append(to, p.seen(g.Key(), side, &slot.View, a))
			}
		}
	}
	return to, true
}

func (p *Pairing) seen(k *store.Key, side int, v *store.View, a Answer) Seen {
	id, sent, ack := v.Identity(), v.Sent(), v.Ack()
	s := Seen{
		Remote: Remote{
			Key:  flowtable.Key{Src: k.Hosts[side], Dst: k.Hosts[1-side], DestQP: id.QP()},
			Port: id.Port(), Unreliable: id.Unreliable(), Requests: sent.Valid(), Responses: ack.Valid(),
			First: sent.First(), High: sent.High(), Acked: ack.Last(),
		},
		Slot: int(v.InStore()), Steady: id.Steady(), Answer: a,
	}
	scope := k.Scope
	if side == 1 && int(scope.Port()) < len(p.egress) {
		scope = scope.At(int(p.egress[scope.Port()]))
	}
	s.Key.SetScope(scope)
	return s
}

// Opposite is the key that a flow of the opposite direction to a QP would have.
func (p *Pairing) Opposite(k *flowtable.Key, destQP uint32) flowtable.Key {
	o := flowtable.Key{Src: k.Dst, Dst: k.Src, DestQP: destQP}
	scope := k.Scope()
	if int(scope.Port()) < len(p.egress) {
		scope = scope.At(int(p.egress[scope.Port()]))
	}
	o.SetScope(scope)
	return o
}
