package dataplane

import (
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
)

// egress is one worker's part of the queues in front of one port: notifications, which go ahead of all else, then the classes in
// strict priority. Its depths are exact; the port's are the sum of these and what the other workers published.
type egress struct {
	line          *line
	notifications ring
	classes       []ring
	depth         []uint64     // bytes waiting, by class
	others        []uint64     // bytes waiting at the other workers, by class, as of the start of this burst
	othersFrames  []int        // frames waiting there
	shares        []flowShares // by class
	waits         []wait       // by class

	offered    [1 + MaxClasses]int // how many of the frames in Batch.Tx come from notifications and from each class
	backlogged bool                // frames were waiting after the last burst: the line has not been idle since it was free
	fraction   uint64              // of a nanosecond, see line.take
}

func (q *egress) init(l *line, p *PortConfig, a *accounts, c *Config) (err error) {
	*q = egress{line: l, classes: make([]ring, p.Classes), depth: make([]uint64, p.Classes),
		others: make([]uint64, p.Classes), othersFrames: make([]int, p.Classes), shares: make([]flowShares, p.Classes), waits: make([]wait, p.Classes)}
	if q.notifications, err = c.ring(notificationFrames); err != nil {
		return err
	}
	for i := range q.classes {
		if q.classes[i], err = c.ring(p.Frames); err != nil {
			return err
		}
		memory, err := c.Allocate(8 * (1 + p.Frames))
		if err != nil {
			return err
		}
		q.shares[i] = newFlowShares(memory, a)
	}
	return nil
}

func (c *Config) ring(frames int) (ring, error) {
	memory, err := c.Allocate(frames * entrySize)
	if err != nil {
		return ring{}, err
	}
	return newRing(memory), nil
}

// queued counts the data frames that wait.
func (q *egress) queued() int {
	n := 0
	for i := range q.classes {
		n += q.classes[i].n
	}
	return n
}

func (q *egress) empty() bool { return q.notifications.n == 0 && q.queued() == 0 }

// offer lists in tx the frames that may start by now, in the order they are to leave; they stay queued until completeTransmits.
func (q *egress) offer(now int64, tx []burst.Frame) []burst.Frame {
	q.offered = [1 + MaxClasses]int{}
	if q.empty() {
		q.backlogged = false
		return tx
	}
	backlogged := q.backlogged || q.othersWait()
	q.backlogged = true
	if q.line.busy(now) {
		return tx
	}
	tx = q.notifications.list(tx)
	for i := range q.classes {
		tx = q.classes[i].list(tx)
	}
	n := q.line.take(now, backlogged, tx, &q.fraction)
	q.divide(n)
	return tx[:n]
}

// othersWait says whether frames were waiting for the line at another worker: then the line has not been idle, and a frame that is
// new here must not use up the time that the other worker may still use.
func (q *egress) othersWait() bool {
	for _, frames := range q.othersFrames {
		if frames > 0 {
			return true
		}
	}
	return false
}

// divide notes where the first n listed frames came from.
func (q *egress) divide(n int) {
	q.offered[0] = min(n, q.notifications.n)
	n -= q.offered[0]
	for i := range q.classes {
		q.offered[1+i] = min(n, q.classes[i].n)
		n -= q.offered[1+i]
	}
}

// leave takes the first frame of a class out of the queue.
func (q *egress) leave(class int) entry {
	e := q.classes[class].pop()
	q.depth[class] -= uint64(e.frame.Len)
	if s := &q.shares[class]; s.tracked {
		s.remove(e.tag, e.frame.Len)
	}
	return e
}

// leaveAll takes the first n frames of a class out of the queue and returns their bytes.
func (q *egress) leaveAll(class, n int) (bytes uint64) {
	r, s := &q.classes[class], &q.shares[class]
	if !s.tracked {
		bytes = r.leave(n)
		q.depth[class] -= bytes
		return bytes
	}
	q.unrank(class, r.n-n)
	s.exact = false
	for n > 0 {
		frames, tags := r.front(n)
		for i, x := range tags {
			size := frames[i].Len
			bytes += uint64(size)
			if x == flowtable.None {
				s.other -= uint64(size)
				continue
			}
			f := s.accounts.known(x)
			f.queued -= size
			if s.ranked {
				s.lower(x, f)
			}
		}
		n -= len(tags)
		r.drop(len(tags))
	}
	q.depth[class] -= bytes
	q.untrack(class)
	return bytes
}

// enter puts a frame at the end of a class; the class's ring must have room.
func (q *egress) enter(class int, e entry) {
	s := &q.shares[class]
	if q.classes[class].n >= someFrames {
		q.track(class)
	}
	if s.tracked {
		e.tag = s.add(e.tag, s.accounts.get(e.tag), class, e.frame.Len)
	}
	q.classes[class].push(e)
	q.depth[class] += uint64(e.frame.Len)
}
