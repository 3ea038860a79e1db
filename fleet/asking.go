package fleet

import (
	"github.com/cnpgate/cnpgate/fleet/wire"
	"github.com/cnpgate/cnpgate/flowtable"
)

// This file is about who wants to know which flows. A gateway whose flow from A to B has no source QP wants the flows from B to A. It asks
// all; who sees some sends them to it, and to nobody else.

// asking has the pairs of hosts that this member wants, and those that others want of it.
type asking struct {
	*core
	own    map[wire.Hosts]want
	others map[wire.Hosts]interest
	fresh  []byte // wants to be sent
}

// patient is how often a want is sent before it asks again: until then, about a second, what it asks for comes several times (repeat).
const (
	patient = 4
	lately  = 500e6 // ns; a look may not visit all flows
)

// want is an own interest.
type want struct {
	until, sent int64
	times       uint8  // it was sent
	lacked      int64  // when the peer flow of some flow was unknown last
	scope       uint64 // of the wanted flows here, with their port
	several     bool   // at several pairs of ports
}

// interest is what others want. Up to four members share one: more than those that see one direction of a flow.
type interest struct {
	who [4]struct {
		name  string
		until int64
	}
	changes uint32 // of who, and of what they lack: then all is news
}

func newAsking(c *core) asking {
	return asking{core: c, own: map[wire.Hosts]want{}, others: map[wire.Hosts]interest{}}
}

// want notes that the flows of the direction opposite to a flow are wanted. lacks: the flow's own peer flow is unknown.
func (a *asking) want(opposite *flowtable.Key, lacks bool) {
	h := wire.Hosts{From: opposite.Src, To: opposite.Dst, Scope: opposite.Scope().Named()}
	w, ok := a.own[h]
	if !ok && len(a.own) >= maxWants {
		a.stats.Full++
		return
	}
	scope := uint64(opposite.Scope())
	w.several = w.several || ok && w.scope != scope
	w.scope, w.until = scope, a.now+wantFor
	if lacks {
		w.lacked = a.now
	}
	if w.times == 0 || a.now-w.sent >= min(int64(wantFirst)<<min(w.times, 16), wantAgain) { // the first messages may be lost
		a.fresh = (&wire.Wanted{Hosts: h, Again: w.times > patient && a.now-w.lacked < lately}).Append(a.fresh)
		w.sent, w.times = a.now, min(w.times, 100)+1
	}
	a.own[h] = w
}

// tell sends the wants that are new or due.
func (a *asking) tell() {
	a.sendRecords(wire.Want, "", a.fresh, wire.WantedSize)
	a.fresh = a.fresh[:0]
}

// wanted notes what another member wants.
func (a *asking) wanted(who string, w *wire.Wanted) {
	i, ok := a.others[w.Hosts]
	if !ok && len(a.others) >= maxWants {
		a.stats.Full++
		return
	}
	slot := &i.who[0]
	for n := range i.who {
		s := &i.who[n]
		if s.name == who {
			slot = s
			break
		}
		if s.until < slot.until {
			slot = s
		}
	}
	if slot.name != who || slot.until < a.now || w.Again {
		i.changes++
		if a.Pairing != nil {
			a.Pairing.Tell(w.From, w.To)
		}
	}
	slot.name, slot.until = who, a.now+wantFor
	a.others[w.Hosts] = i
}

// expire forgets what is no longer wanted, a part of it at a time.
func (a *asking) expire() {
	const batch = 8192
	n := 0
	for h, w := range a.own {
		if n++; n > batch {
			break
		}
		if a.now > w.until {
			delete(a.own, h)
		}
	}
	n = 0
	for h, i := range a.others {
		if n++; n > batch {
			break
		}
		last := int64(0)
		for _, w := range i.who {
			last = max(last, w.until)
		}
		if a.now > last {
			delete(a.others, h)
		}
	}
}
