package synth

import (
	"github.com/cnpgate/cnpgate/internal/splitmix"
)

// timer is a task at a time. Timers of the same time run in the order of their creation, so that runs are repeatable.
type timer struct {
	at   int64  // ns
	rank uint64 // serial number, 32 bits, then the task, 4 bits, and its subject, 28 bits
}

// task is the purpose of a timer.
type task uint32

const (
	taskStart    task = iota // a connection begins: connection
	taskDepart               // a requester sends its next packet: connection and end
	taskRespond              // a responder sends its next response: connection and end
	taskTimeout              // a requester checks whether it made progress: connection and end
	taskFlush                // a responder sends a delayed acknowledgement: connection and end
	taskManage               // a communication manager repeats a message: connection and end
	taskClose                // a connection ends: connection
	taskSucceed              // the next connection replaces it: connection
	taskTap                  // a packet passes the tap: flight
	taskArrive               // a packet arrives: flight
	taskAttack               // the attacker off the path acts
	taskPlanned              // a planned packet passes the tap
	taskForesee              // the attacker learns of a future connection: connection
	taskBits     = 28
	taskSubjects = 1<<taskBits - 1
)

func (t timer) before(u timer) bool { return t.at < u.at || t.at == u.at && t.rank < u.rank }

func (t timer) task() task { return task(t.rank >> taskBits & 0xf) }

func (t timer) subject() uint32 { return uint32(t.rank & taskSubjects) }

// queue holds timers in a 4-ary heap.
type queue struct {
	timers []timer
	serial uint32
}

func (q *queue) push(at int64, what task, subject uint32) {
	t := timer{at, uint64(q.serial)<<32 | uint64(what)<<taskBits | uint64(subject)}
	q.serial++
	q.timers = append(q.timers, t)
	h := q.timers
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 4
		if !t.before(h[up]) {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = t
}

// pop removes and returns the first timer; false if there is none.
func (q *queue) pop() (first timer, ok bool) {
	h := q.timers
	if len(h) == 0 {
		return first, false
	}
	first, t := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	q.timers = h
	if len(h) == 0 {
		return first, true
	}
	i := 0
	for {
		least := 4*i + 1
		if least >= len(h) {
			break
		}
		for c, end := least+1, min(least+4, len(h)); c < end; c++ {
			if h[c].before(h[least]) {
				least = c
			}
		}
		if !h[least].before(t) {
			break
		}
		h[i] = h[least]
		i = least
	}
	h[i] = t
	return first, true
}

// pool holds values by number. It reuses the numbers of those that were taken.
type pool[T any] struct {
	items  []T
	unused []uint32
}

func (p *pool[T]) put(v T) uint32 {
	n := len(p.unused)
	if n == 0 {
		p.items = append(p.items, v)
		return uint32(len(p.items) - 1)
	}
	i := p.unused[n-1]
	p.unused = p.unused[:n-1]
	p.items[i] = v
	return i
}

func (p *pool[T]) take(i uint32) T {
	p.unused = append(p.unused, i)
	return p.items[i]
}

// rng draws random numbers.
type rng struct{ splitmix.Rand }

func newRNG(seed uint64) rng { return rng{splitmix.Rand(splitmix.Mix(seed))} }

// upTo returns a uniform random number from 0 to n.
func (r *rng) upTo(n int64) int64 {
	if n <= 0 {
		return 0
	}
	return int64(r.Below(uint64(n) + 1))
}

// hit returns true with a probability. 0 and 1 need no random number.
func (r *rng) hit(p float64) bool {
	return p > 0 && (p >= 1 || r.Next() < uint64(p*(1<<32)*(1<<32)))
}

// weighted returns a random index, with probabilities in proportion to the weights. The sum of the weights must not be 0.
func (r *rng) weighted(weights []int) int {
	sum := 0
	for _, w := range weights {
		sum += w
	}
	at := int(r.Below(uint64(sum)))
	for i, w := range weights {
		if at -= w; at < 0 {
			return i
		}
	}
	return len(weights) - 1
}
