package pairing

import "sync/atomic"

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
}

// published is what Stats reads.
type published struct {
	evidence, confirmed                                [Evidences]atomic.Uint64
	contradictions, reuses, skipped, noSlot, cmDropped atomic.Uint64
}

// Stats is safe for any goroutine. Each number is exact at the time of the worker's last Sweep.
func (l *Learner) Stats() Stats {
	p := &l.published
	s := Stats{
		Contradictions: p.contradictions.Load(), Reuses: p.reuses.Load(), Skipped: p.skipped.Load(), NoSlot: p.noSlot.Load(),
		CMDropped: p.cmDropped.Load(),
	}
	for i := range s.Evidence {
		s.Evidence[i], s.Confirmed[i] = p.evidence[i].Load(), p.confirmed[i].Load()
	}
	return s
}

func (l *Learner) publish() {
	if !l.dirty {
		return
	}
	l.dirty = false
	p, c := &l.published, &l.counts
	p.contradictions.Store(c.Contradictions)
	p.reuses.Store(c.Reuses)
	p.skipped.Store(c.Skipped)
	p.noSlot.Store(c.NoSlot)
	p.cmDropped.Store(c.CMDropped)
	for i := range c.Evidence {
		p.evidence[i].Store(c.Evidence[i])
		p.confirmed[i].Store(c.Confirmed[i])
	}
}
