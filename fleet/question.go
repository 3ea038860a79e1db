package fleet

import (
	"encoding/json"
	"maps"
	"slices"

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

// question is the body of a message of the kind wire.Ask.
type question struct {
	Pairs   bool            `json:"pairs,omitempty"` // send all pairs, a window of them from First on
	First   int             `json:"first,omitempty"`
	ID      uint64          `json:"id,omitempty"`
	Request json.RawMessage `json:"request,omitempty"` // for Config.Answer
}

// reply is the body of a message of the kind wire.Answer.
type reply struct {
	ID     uint64          `json:"id"`
	Answer json.RawMessage `json:"answer"`
}

// questions are those of this member that wait for answers, by their numbers.
type questions struct {
	*core
	roster  *roster
	pending map[uint64]*pending
}

// ask asks all active members.
func (q *questions) ask(request []byte, timeout int64, done func(map[string]json.RawMessage)) {
	p := &pending{left: map[string]bool{}, until: q.now + timeout, done: done, got: map[string]json.RawMessage{}}
	for name := range q.roster.others {
		if q.roster.active(name) && len(q.pending) < maxPending {
			p.left[name] = true
		}
	}
	if len(p.left) == 0 {
		done(p.got)
		return
	}
	q.sequence++
	id := q.sequence
	q.pending[id] = p
	for _, name := range slices.Sorted(maps.Keys(p.left)) {
		q.send(wire.Ask, name, encode(question{ID: id, Request: request}))
	}
}

func (q *questions) takeAnswer(from string, body []byte) error {
	var r reply
	if err := json.Unmarshal(body, &r); err != nil {
		return err
	}
	p := q.pending[r.ID]
	if p == nil || !p.left[from] {
		return nil
	}
	delete(p.left, from)
	if p.got[from] = r.Answer; len(p.left) == 0 {
		delete(q.pending, r.ID)
		p.done(p.got)
	}
	return nil
}

// expire ends those for which the time has passed.
func (q *questions) expire() {
	for id, p := range q.pending {
		if q.now > p.until {
			delete(q.pending, id)
			p.done(p.got)
		}
	}
}
