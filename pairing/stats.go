package pairing

import (
	"sync/atomic"
	"unsafe"
)

// Stats counts evidence and its results since Join.
type Stats struct {
	// Evidence counts pieces of evidence by source. For EvidenceStatic, EvidenceHint and EvidenceDETH it counts flows; for EvidenceCM messages,
	// for EvidencePort judgements in which the ports of two flows fit, for EvidencePSN flows that a response ruled out, for EvidenceCNP CNPs.
	Evidence [Evidences]uint64
	// Confirmed counts the flows whose source QP was confirmed, by evidence.
	Confirmed      [Evidences]uint64
	Contradictions uint64 // pairs that packets contradicted
	Reuses         uint64 // flow records that ended because a QP began to serve another connection
	Skipped        uint64 // times that evidence was skipped, without budget or because another worker held a lock
	NoSlot         uint64 // failed attempts to give a flow a slot
	CMDropped      uint64 // messages of RDMA-CM that found the queue of waiting ones full
	Displaced      uint64 // flows that lost their slot to a flow whose source has fewer
	Ambiguous      uint64 // flows that a hint without destination didn't name, as others match it, too
}

// counts is what a worker counts, and what other goroutines may read of it.
type counts struct {
	Stats
	changed   bool
	published [statsWords]atomic.Uint64
}

const statsWords = unsafe.Sizeof(Stats{}) / 8

// words is the numbers of the stats, in their order.
func (s *Stats) words() *[statsWords]uint64 { return (*[statsWords]uint64)(unsafe.Pointer(s)) }

// change returns the counts to change one.
func (c *counts) change() *Stats {
	c.changed = true
	return &c.Stats
}

// skipped counts that the budget or a lock kept a step from its work, which waits.
func (c *counts) skipped() { c.change().Skipped++ }

// flow counts a flow that evidence confirms by itself.
func (c *counts) flow(why Evidence) {
	s := c.change()
	s.Evidence[why]++
	s.Confirmed[why]++
}

func (c *counts) publish() {
	if !c.changed {
		return
	}
	c.changed = false
	for i, n := range c.words() {
		c.published[i].Store(n)
	}
}

// Stats is safe for any goroutine. Each number is exact at the time of the worker's last Sweep.
func (l *Learner) Stats() (s Stats) {
	for i := range s.words() {
		s.words()[i] = l.counts.published[i].Load()
	}
	return s
}
