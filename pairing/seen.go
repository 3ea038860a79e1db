package pairing

import (
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
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

// News appends the numbers of the groups that have got a flow since the last call, or that Tell named. One goroutine at a time may call it.
func (p *Pairing) News(to []int) []int { return p.store.News(to) }

// Tell makes the flows between two hosts news, if no worker makes or drops groups just now.
func (p *Pairing) Tell(from, to packet.Addr) {
	if !p.store.Lock.TrySoon() {
		return
	}
	defer p.store.Lock.Release()
	for port, peer := range p.egress {
		for _, hosts := range [...][2]packet.Addr{{from, to}, {to, from}} {
			if k := (store.Key{Hosts: hosts}); port <= int(peer) {
				k.Scope = k.Scope.At(port)
				p.store.TellBetween(&k)
			}
		}
	}
}

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
