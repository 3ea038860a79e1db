package endpoint

// congested notes that a CE-marked data packet arrived for a QP. Unless the host has no notification point, the sender gets a CNP, at most
// one each CNPInterval (IBTA Annex A17).
func (h *Host) congested(now int64, q *qp) {
	h.counters.CEReceived++
	if h.c.NoCNP || q.cnpDue || q.lastCNP != -never && now-q.lastCNP < h.c.CNPInterval {
		return
	}
	q.lastCNP, q.cnpDue = now, true
}
