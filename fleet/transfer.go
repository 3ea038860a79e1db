package fleet

import (
	"github.com/cnpgate/cnpgate/fleet/wire"
	"github.com/cnpgate/cnpgate/pairing"
)

// transfer is both ends of what a gateway that starts gets from another: all pairs that this one keeps, and its own.
type transfer struct {
	*core
	roster   *roster
	heirs    *heirs
	snapshot snapshot
	request  request
	seen     []pairing.Seen
}

// snapshot is the answer to a member that has started. It asks for one window after the other, so that no queue between fills up, and again for
// what was lost.
type snapshot struct {
	to    string
	pairs []byte
	next  int // the byte that is sent next
	until int // and where the window ends
	asked int64
}

// request is the other end: what this member has got.
type request struct {
	from  string
	got   int // pairs
	asked int64
	done  bool
}

const (
	chunkPairs    = chunk / wire.PairSize
	windowPairs   = 32 * chunkPairs
	snapshotAgain = 1e9
	snapshotFor   = 30e9
)

// ask asks a member for its pairs, once after the start: of the members that are heard, the one that has been up longest. If that falls silent,
// another one is asked.
func (t *transfer) ask(started bool) {
	r := &t.request
	if t.Pairing == nil || r.done || r.from == "" && !started {
		return
	}
	if r.from != "" && t.roster.active(r.from) {
		if t.now-r.asked > snapshotAgain {
			t.askFrom(r.from)
		}
		return
	}
	if best := t.roster.longest(); best != "" {
		*r = request{from: best}
		t.askFrom(best)
	}
}

// restarted notes that a member has begun anew: it doesn't go on with an answer.
func (t *transfer) restarted(name string) {
	if t.request.from == name && !t.request.done {
		t.request = request{}
	}
}

func (t *transfer) askFrom(name string) {
	t.request.asked = t.now
	t.send(wire.Ask, name, encode(question{Pairs: true, First: t.request.got}))
}

// take takes a part of a snapshot, if it is the next one.
func (t *transfer) take(from string, body []byte) error {
	part, pairs, err := wire.ReadPart(body)
	r := &t.request
	if err != nil || from != r.from || r.done || int(part.First) != r.got {
		return err
	}
	if err := wire.EachPair(pairs, t.heirs.take); err != nil {
		return err
	}
	r.got += len(pairs) / wire.PairSize
	r.asked = t.now
	if r.done = r.got >= int(part.Total); !r.done && r.got%windowPairs == 0 {
		t.askFrom(from)
	}
	return nil
}

// allPairs are the pairs that this member keeps, and its own.
func (t *transfer) allPairs() []byte {
	b := make([]byte, 0, len(t.heirs.of)*wire.PairSize)
	for k, v := range t.heirs.of {
		b = (&wire.Pair{Hosts: k.Hosts, QP: k.qp, SourceQP: v.sourceQP, Port: v.port, Evidence: v.evidence, Unreliable: v.unreliable}).Append(b)
	}
	if t.Pairing == nil {
		return b
	}
	for g := 1; g <= t.Pairing.Groups(); g++ {
		t.seen, _ = t.Pairing.See(g, t.seen[:0])
		for i := range t.seen {
			if f := &t.seen[i]; f.Answer.State() == pairing.Confirmed && f.Answer.Evidence() != pairing.EvidenceDETH {
				b = pairOf(&wire.Hosts{From: f.Key.Src, To: f.Key.Dst, Scope: f.Key.Scope().Named()}, f).Append(b)
			}
		}
	}
	return b
}

// answer begins to send a window of the pairs. One member at a time is answered; another one asks again.
func (t *transfer) answer(to string, first int) {
	s := &t.snapshot
	if s.to != to || first == 0 {
		if s.to != "" && s.to != to && t.now-s.asked < snapshotFor {
			return
		}
		*s = snapshot{to: to, pairs: t.allPairs()}
	}
	s.asked = t.now
	s.next = min(max(first, 0)*wire.PairSize, len(s.pairs))
	s.until = min(s.next+(windowPairs-first%windowPairs)*wire.PairSize, len(s.pairs))
	if len(s.pairs) == 0 {
		t.send(wire.Snapshot, to, wire.Part{}.Append(nil))
	}
}

// proceed sends the next parts of the window.
func (t *transfer) proceed() {
	s := &t.snapshot
	for range maxSnapshot {
		if s.next >= s.until {
			break
		}
		n := min(s.until-s.next, chunkPairs*wire.PairSize)
		body := wire.Part{First: uint32(s.next / wire.PairSize), Total: uint32(len(s.pairs) / wire.PairSize)}.Append(nil)
		t.send(wire.Snapshot, s.to, append(body, s.pairs[s.next:s.next+n]...))
		s.next += n
	}
	if s.to != "" && t.now-s.asked > snapshotFor {
		*s = snapshot{}
	}
}
