package pairing

import "github.com/cnpgate/cnpgate/pairing/store"

// begun reports whether the flow's requests began where RDMA-CM claims, or up to firstSlack PSNs later. If first PSNs are random, an
// unrelated flow does so with probability 2^-18.
func begun(f *store.View) bool {
	c, sent := f.Claim(), f.Sent()
	return c != 0 && sent.Valid() && (sent.First()-c.PSN())&psnMask <= firstSlack
}

// cmRule finds the peer flow that RDMA-CM claims for a flow: the claims about the two flows name each other, and their data agrees with the
// claims.
func cmRule(f *store.View) (peer store.View, ok bool) {
	c := f.Claim()
	if c == 0 {
		return peer, false
	}
	for n := range f.Others() {
		o, ok := f.Other(n)
		if ok && o.Identity().QP() == c.SourceQP() && (claimNames(&o, f) || begun(f) && !o.Sent().Valid() && !f.Identity().Unreliable()) {
			return o, asClaimed(f, &o)
		}
	}
	return peer, false
}

// claimNames reports whether RDMA-CM's claim about the flow names the destination QP of another flow.
func claimNames(f, o *store.View) bool {
	return f.Claim() != 0 && f.Claim().SourceQP() == o.Identity().QP()
}

// asClaimed reports whether the data of two flows agrees with RDMA-CM's claims: at least one flow has sent requests, each that has began at
// the PSN of its claim, and one flow has responded to the other. UC flows have no responses, so both must have begun, or the UDP source
// port must be the one that results from RDMA-CM's flow label. If the first PSNs can be guessed, the port must also be the connection's
// own.
func asClaimed(a, b *store.View) bool {
	if !begun(a) && !begun(b) || a.Sent().Valid() && !begun(a) || b.Sent().Valid() && !begun(b) {
		return false
	}
	if a.Identity().Unreliable() { // UC has no responses
		if (near0(a.Claim().PSN()) || near0(b.Claim().PSN())) && !ownPort(a, b) {
			return false // anyone might guess where the two flows begin
		}
		return begun(a) && begun(b) || a.Claim().Port() != 0 && a.Claim().Port() == a.Identity().Port()
	}
	return respondedAsClaimed(a, b) || respondedAsClaimed(b, a)
}

// respondedAsClaimed reports whether the responses of b to a are evidence for RDMA-CM's claim. If the connection begins at a PSN that can be
// guessed, there must be several such responses in a row, and the UDP source port must be the one that results from RDMA-CM's flow label or
// the formula.
func respondedAsClaimed(a, b *store.View) bool {
	if !responded(a, b) {
		return false
	}
	return !near0(a.Claim().PSN()) || ownPort(a, b) && b.Elimination().Plausible >= minAgreeing
}
