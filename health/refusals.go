package health

// refusals are the latest NAKs that the requester has yet to obey.
type refusals [4]refusal

// add notes a NAK, in place of the same one, or of the oldest one.
func (r *refusals) add(n refusal) {
	place := &r[0]
	for i := range r {
		if r[i].at != 0 && r[i].psn == n.psn {
			place = &r[i]
			break
		}
		if r[i].at < place.at {
			place = &r[i]
		}
	}
	*place = n
}

// of is the latest NAK, up to a time, that asks for a PSN, or for one a little before it: a few packets may be late, or more lost if they aren't acknowledged
// and haven't passed since; nil: none does.
func (r *refusals) of(h *Half, psn uint32, now int64) (found *refusal) {
	for i := range r {
		n := &r[i]
		if d := ahead(psn, n.psn); n.at == 0 || n.at > now || d < 0 || d >= inFlight || d > overtaken && ahead(h.answers.acked, n.psn) > 0 {
			continue
		}
		if s := h.recent.find(n.psn); n.psn != psn && h.reorders() && s != nil && s.time > n.at {
			continue // it was obeyed
		}
		if found == nil || ahead(n.psn, found.psn) > 0 {
			found = n
		}
	}
	return found
}

// obeyed removes a NAK, and those for earlier PSNs.
func (r *refusals) obeyed(psn uint32) {
	for i := range r {
		if ahead(r[i].psn, psn) <= 0 {
			r[i].at = 0
		}
	}
}

// refusal is a NAK or an RNR NAK that the requester has yet to obey.
type refusal struct {
	psn   uint32
	at    int64 // 0: there is none
	timer int64 // ns that an RNR NAK asks to wait
	// notReady: a NAK for what an RNR NAK has refused, as Soft-RoCE sends it. The requester obeys both.
	notReady bool
}

const (
	inFlight  = 64 // packets of a retransmission that may be lost before the first that is seen
	overtaken = 2  // packets of one that may be late
)

func near(psn, asked uint32) bool { d := ahead(psn, asked); return d >= 0 && d < inFlight }

// rnrTimers are in ns (IBTA table 45).
var rnrTimers = func() (t [32]int64) {
	for i, hundredths := range [32]int64{
		65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384,
		24576, 32768, 49152,
	} {
		t[i] = hundredths * ms / 100
	}
	return t
}()
