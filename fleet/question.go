package fleet

import (
	"encoding/json"

	"github.com/cnpgate/cnpgate/fleet/wire"
)

// pending is a question that waits for answers.
type pending struct {
	left  map[string]bool
	until int64
	done  func(answers map[string]json.RawMessage)
	got   map[string]json.RawMessage
}

// maxPending bounds the questions at a time, and maxAnswer the bytes of an answer.
const (
	maxPending = 16
	// MaxAnswer is the largest answer to a question, bytes.
	MaxAnswer = 192 << 10
)

// Question asks all active members, and calls done with their answers, by name, once all have answered or the time (ns) has passed.
func (m *Member) Question(request []byte, now, timeout int64, done func(map[string]json.RawMessage)) {
	m.now = now
	p := &pending{left: map[string]bool{}, until: now + timeout, done: done, got: map[string]json.RawMessage{}}
	if m.pending == nil {
		m.pending = map[uint64]*pending{}
	}
	for name := range m.others {
		if m.active(name) && len(m.pending) < maxPending {
			p.left[name] = true
		}
	}
	if len(p.left) == 0 {
		done(p.got)
		return
	}
	m.sequence++
	id := m.sequence
	m.pending[id] = p
	for name := range p.left {
		m.send(wire.Ask, name, encode(question{ID: id, Request: request}))
	}
}

func (m *Member) takeAnswer(from string, body []byte) {
	var r reply
	if json.Unmarshal(body, &r) != nil {
		m.stats.Refused["content"]++
		return
	}
	p := m.pending[r.ID]
	if p == nil || !p.left[from] {
		return
	}
	delete(p.left, from)
	if p.got[from] = r.Answer; len(p.left) == 0 {
		delete(m.pending, r.ID)
		p.done(p.got)
	}
}

// expireQuestions ends those for which the time has passed.
func (m *Member) expireQuestions() {
	for id, p := range m.pending {
		if m.now > p.until {
			delete(m.pending, id)
			p.done(p.got)
		}
	}
}
