package fleet

import (
	"encoding/json"

	"github.com/cnpgate/cnpgate/fleet/wire"
	"github.com/cnpgate/cnpgate/pairing"
)

// This file is about what a gateway that starts, or takes over, gets from the others: the pairs that were confirmed. Each gateway sends its
// own to all, who keep them. A gateway that starts asks one of them for all that it keeps. A pair is a hint: it counts only for a flow whose
// packets have the UDP source port of the two QPs (pairing.Peers.Adopt).

type heirKey struct {
	wire.Hosts
	qp uint32
}

type heir struct {
	until      int64
	sourceQP   uint32
	port       uint16
	evidence   uint8
	unreliable bool
}

// heirs are the pairs of other gateways, and this one's own from before a restart.
type heirs struct {
	of   map[heirKey]heir
	most int
}

func pairOf(h *wire.Hosts, f *pairing.Seen) *wire.Pair {
	return &wire.Pair{
		Hosts: *h, QP: f.Key.DestQP, SourceQP: f.Answer.SourceQP(), Port: f.Port, Evidence: uint8(f.Answer.Evidence()), Unreliable: f.Unreliable,
	}
}

func (m *Member) takePair(p *wire.Pair) {
	k := heirKey{p.Hosts, p.QP}
	if p.SourceQP == 0 {
		delete(m.heirs.of, k)
		return
	}
	if _, ok := m.heirs.of[k]; !ok && len(m.heirs.of) >= m.heirs.most {
		m.stats.Full++
		return
	}
	m.heirs.of[k] = heir{m.now + pairLifetime, p.SourceQP, p.Port, p.Evidence, p.Unreliable}
}

// expire forgets pairs that nobody confirms any more, a part of them at a time.
func (h *heirs) expire(now int64) {
	n := 0
	for k, v := range h.of {
		if n++; n > 1<<15 {
			return
		}
		if now > v.until {
			delete(h.of, k)
		}
	}
}

// inherit gives an own flow the source QP that it had before, and reports whether the flow has it now.
func (m *Member) inherit(h *wire.Hosts, f *pairing.Seen) bool {
	v, ok := m.heirs.of[heirKey{*h, f.Key.DestQP}]
	if !ok || v.port != f.Port || v.unreliable != f.Unreliable || m.now > v.until {
		return false
	}
	r := pairing.Remote{Key: m.Pairing.Opposite(&f.Key, v.sourceQP), Port: v.port, Unreliable: v.unreliable}
	if !m.Peers.Adopt(&r, &f.Key, m.now) {
		return false
	}
	m.stats.Adopted++
	return true
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
	chunkPairs    = chunk / pairBytes
	windowPairs   = 32 * chunkPairs
	snapshotAgain = 1e9
	snapshotFor   = 30e9
)

// question is the body of a message of the kind wire.Ask.
type question struct {
	Pairs   bool            `json:"pairs,omitempty"` // send all pairs, a window of them from First on
	First   int             `json:"first,omitempty"`
	ID      uint64          `json:"id,omitempty"`
	Request json.RawMessage `json:"request,omitempty"` // for Config.Answer
}

// askForPairs asks a member for its pairs, once after the start: of the members that are heard, the one that has been up longest. If that falls
// silent, another one is asked.
func (m *Member) askForPairs() {
	r := &m.request
	if m.Pairing == nil || r.done || r.from == "" && m.now-m.began > 60e9 {
		return
	}
	if r.from != "" && m.active(r.from) {
		if m.now-r.asked > snapshotAgain {
			m.askFrom(r.from)
		}
		return
	}
	best := ""
	for name, o := range m.others {
		if o.Time != 0 && m.active(name) && (best == "" || o.UpMS > m.others[best].UpMS) {
			best = name
		}
	}
	if best != "" {
		*r = request{from: best}
		m.askFrom(best)
	}
}

func (m *Member) askFrom(name string) {
	m.request.asked = m.now
	m.send(wire.Ask, name, encode(question{Pairs: true, First: m.request.got}))
}

// takeSnapshot takes a part of a snapshot, if it is the next one.
func (m *Member) takeSnapshot(from string, body []byte) error {
	part, pairs, err := wire.ReadPart(body)
	r := &m.request
	if err != nil || from != r.from || r.done || int(part.First) != r.got {
		return err
	}
	if err := wire.EachPair(pairs, m.takePair); err != nil {
		return err
	}
	r.got += len(pairs) / pairBytes
	r.asked = m.now
	if r.done = r.got >= int(part.Total); !r.done && r.got%windowPairs == 0 {
		m.askFrom(from)
	}
	return nil
}

// reply is the body of a message of the kind wire.Answer.
type reply struct {
	ID     uint64          `json:"id"`
	Answer json.RawMessage `json:"answer"`
}

// takeAsk answers a question.
func (m *Member) takeAsk(from string, body []byte) {
	var q question
	if json.Unmarshal(body, &q) != nil {
		m.stats.Refused["content"]++
		return
	}
	if q.Pairs {
		m.answerSnapshot(from, q.First)
	}
	if q.Request != nil && m.Answer != nil {
		m.send(wire.Answer, from, encode(reply{q.ID, m.Answer(q.Request)}))
	}
}

// allPairs are the pairs that this member keeps, and its own.
func (m *Member) allPairs() []byte {
	b := make([]byte, 0, len(m.heirs.of)*pairBytes)
	for k, v := range m.heirs.of {
		b = (&wire.Pair{Hosts: k.Hosts, QP: k.qp, SourceQP: v.sourceQP, Port: v.port, Evidence: v.evidence, Unreliable: v.unreliable}).Append(b)
	}
	if m.Pairing == nil {
		return b
	}
	for g := 1; g <= m.Pairing.Groups(); g++ {
		m.scan.seen, _ = m.Pairing.See(g, m.scan.seen[:0])
		for i := range m.scan.seen {
			if f := &m.scan.seen[i]; f.Answer.State() == pairing.Confirmed && f.Answer.Evidence() != pairing.EvidenceDETH {
				b = pairOf(&wire.Hosts{From: f.Key.Src, To: f.Key.Dst, Scope: f.Key.Scope().Named()}, f).Append(b)
			}
		}
	}
	return b
}

// answerSnapshot begins to send a window of the pairs. One member at a time is answered; another one asks again.
func (m *Member) answerSnapshot(to string, first int) {
	s := &m.snapshot
	if s.to != to || first == 0 {
		if s.to != "" && s.to != to && m.now-s.asked < snapshotFor {
			return
		}
		*s = snapshot{to: to, pairs: m.allPairs()}
	}
	s.asked = m.now
	s.next = min(max(first, 0)*pairBytes, len(s.pairs))
	s.until = min(s.next+(windowPairs-first%windowPairs)*pairBytes, len(s.pairs))
	if len(s.pairs) == 0 {
		m.send(wire.Snapshot, to, wire.Part{}.Append(nil))
	}
}

// sendSnapshot sends the next parts of the window.
func (m *Member) sendSnapshot() {
	s := &m.snapshot
	for range maxSnapshot {
		if s.next >= s.until {
			break
		}
		n := min(s.until-s.next, chunkPairs*pairBytes)
		body := wire.Part{First: uint32(s.next / pairBytes), Total: uint32(len(s.pairs) / pairBytes)}.Append(nil)
		m.send(wire.Snapshot, s.to, append(body, s.pairs[s.next:s.next+n]...))
		s.next += n
	}
	if s.to != "" && m.now-s.asked > snapshotFor {
		*s = snapshot{}
	}
}
