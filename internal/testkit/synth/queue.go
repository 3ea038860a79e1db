package synth

import "math/bits"

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
	taskShow                 // the first pending packet passes the tap
	taskAttack               // the attacker off the path acts
	taskPlanned              // a planned packet passes the tap
	taskForesee              // the attacker learns of a future connection: connection
	taskBits     = 28
	taskSubjects = 1<<taskBits - 1
)

func (t timer) before(u timer) bool { return t.at < u.at || t.at == u.at && t.rank < u.rank }

func (t timer) task() task { return task(t.rank >> taskBits & 0xf) }

func (t timer) subject() uint32 { return uint32(t.rank & taskSubjects) }

// queue holds timers: those of the present bucket and those beyond the wheel in heaps, the others in a wheel of buckets, which stay
// unordered until their time. With many packets on the path, that is twice as fast as one heap.
type queue struct {
	present, far heap
	first        int64          // the present bucket's first ns
	heads        [buckets]int32 // of lists in nodes, plus 1
	used         [buckets / 64]uint64
	nodes        []node
	free         int32 // head of the list of unused nodes, plus 1
	serial       uint32
	waiting      int // in the wheel
}

type node struct {
	timer
	next int32
}

const (
	bucketBits = 8 // 256 ns, so that the wheel spans 2 ms
	bucketSpan = 1 << bucketBits
	buckets    = 1 << 13
)

func (q *queue) push(at int64, what task, subject uint32) {
	t := timer{at, uint64(q.serial)<<32 | uint64(what)<<taskBits | uint64(subject)}
	q.serial++
	switch ahead := (at - q.first) >> bucketBits; {
	case ahead <= 0:
		q.present.push(t)
	case ahead >= buckets:
		q.far.push(t)
	default:
		q.enlist(t)
	}
}

func bucketOf(at int64) int { return int(at >> bucketBits & (buckets - 1)) }

func (q *queue) enlist(t timer) {
	b, i := bucketOf(t.at), q.free
	if i == 0 {
		q.nodes = append(q.nodes, node{})
		i = int32(len(q.nodes))
	} else {
		q.free = q.nodes[i-1].next
	}
	q.nodes[i-1] = node{t, q.heads[b]}
	q.heads[b] = i
	q.used[b/64] |= 1 << (b % 64)
	q.waiting++
}

// pop removes and returns the first timer; false if there is none.
func (q *queue) pop() (timer, bool) {
	for len(q.present) == 0 {
		if !q.advance() {
			return timer{}, false
		}
	}
	return q.present.pop(), true
}

// advance moves on to the next bucket that holds a timer.
func (q *queue) advance() bool {
	next := q.first
	switch {
	case q.waiting > 0:
		next += int64(q.distance()) << bucketBits
		if len(q.far) > 0 {
			next = min(next, q.far[0].at&^(bucketSpan-1))
		}
	case len(q.far) > 0:
		next = q.far[0].at &^ (bucketSpan - 1)
	default:
		return false
	}
	q.first = next
	for len(q.far) > 0 && q.far[0].at < next+bucketSpan {
		q.present.push(q.far.pop())
	}
	b := bucketOf(next)
	for i := q.heads[b]; i != 0; {
		n := &q.nodes[i-1]
		q.present.push(n.timer)
		q.waiting--
		i, n.next, q.free = n.next, q.free, i
	}
	q.heads[b] = 0
	q.used[b/64] &^= 1 << (b % 64)
	return true
}

// distance is how many buckets after the present one the next nonempty one lies. There must be one.
func (q *queue) distance() int {
	from := (bucketOf(q.first) + 1) % buckets
	word := q.used[from/64] >> (from % 64) << (from % 64)
	for i := from / 64; ; {
		if word != 0 {
			b := i*64 + bits.TrailingZeros64(word)
			return (b-from+buckets)%buckets + 1
		}
		i = (i + 1) % len(q.used)
		word = q.used[i]
	}
}

// heap is a 4-ary heap.
type heap []timer

func (q *heap) push(t timer) {
	*q = append(*q, t)
	h := *q
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

// pop removes and returns the first timer. The heap must not be empty.
func (q *heap) pop() timer {
	h := *q
	first, t := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	*q = h
	if len(h) == 0 {
		return first
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
	return first
}
