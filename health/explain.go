package health

import (
	"fmt"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// unexplained are retransmissions of which nothing proves a cause.
func unexplained(c *Connection, i int) (Verdict, bool) {
	h := &c.Half[i]
	const fewest, asked = 6, 3 // of NAKs whose requests don't pass here, each proves that one was missing
	again, naks := h.AgainRequests.Packets-min(h.Perhaps.Packets, h.AgainRequests.Packets), h.NAKs[0]
	if again < fewest && naks < fewest && (naks < asked || h.Requests.Packets > 0) || h.lateOnly() || naks == 0 && h.eachTwice() { // those may be copies
		return Verdict{}, false
	}
	v := Verdict{
		Name: Unexplained, Weight: max(again, naks),
		Evidence: fmt.Sprintf("%s; %d NAKs; the cause is unknown: one of loss on either side, a lost ACK, or a time-out that is too short", h.sentAgain(), naks),
		Advice:   "capture both directions, near the sender, with whole headers (tcpdump -s 128), from before the first request",
	}
	switch all := h.Retransmissions().Packets; all {
	case 0:
		if h.Requests.Packets == 0 {
			v.Evidence = fmt.Sprintf("%d NAKs ask for packets that did not come to their receiver; requests don't pass here, so where these were lost, or overtaken, isn't known", naks)
		}
	case h.Retransmitted[Spurious].Packets:
		v.Evidence = h.sentAgain() + ": the requester timed out although the answer was on its way; either the responder or the path stood still, or the timeout is too short"
		v.Advice = "look for pauses (PFC) and at the responder's CPU and PCIe at these times, or raise the QP's timeout"
	case h.Retransmitted[NAKSequence].Packets:
		v.Evidence = fmt.Sprintf("%s: %d NAKs asked for it; on which side of here what they ask for was lost, or overtaken, isn't known", h.sentAgain(), naks)
	}
	switch {
	case h.Responses.Packets == 0:
		v.Evidence += "; no answer passed here"
	case h.early.foreign(h):
		v.Evidence = fmt.Sprintf("%s; the answers acknowledge PSNs up to %d, which the requester has never sent: the peer expects another PSN than it sends", h.sentAgain(), (h.early.acked-1)&packet.PSNMask)
		v.Advice = SamePSN
	}
	if h.flags&blind != 0 {
		v.Evidence = h.sentAgain() + "; the cause is unknown: the capture has cut off the AETH of answers, which distinguishes a NAK from an ACK"
		v.Advice = "capture more of each frame (tcpdump -s 192, the mirror's truncation size)"
	}
	return v, true
}

// ceWithoutCNP: congestion was marked for long enough that a CNP must have come back, and none did, although answers do.
func ceWithoutCNP(c *Connection, i int) (Verdict, bool) {
	r, answers := &c.Reaction[i], c.Reaction[i^1].Packets
	const fewest = 8
	wait := 2*max(c.Half[i].clean.most, c.Half[i^1].clean.most) + 2*ms
	if !c.Paired || r.CNPs > 0 || r.CE < fewest || answers < fewest || c.Last-r.FirstCE < wait {
		return Verdict{}, false
	}
	to := c.End[i^1].Addr.Netip()
	return Verdict{
		Subject: to.String(), Weight: r.CE,
		Evidence: fmt.Sprintf("%d of %d packets to it are marked CE (%s), its answers pass here, and it sent no CNP in %v",
			r.CE, r.Packets, percent(r.CE, r.Packets), Duration(c.Last-r.FirstCE)),
		Advice: fmt.Sprintf("enable DCQCN's notification point at %v for the traffic's priority (/sys/class/net/IF/ecn/roce_np/enable/PRIO, mlnx_qos), and check that CNPs "+
			"aren't dropped or sent another way", to),
	}, true
}

// accepted reports whether packets that came late were accepted out of order: nothing was asked for or sent again because of them.
func (h *Half) accepted() bool {
	const few = 8 // a READ that is late may seem to be sent again
	return h.flags&oneWay == 0 && h.NAKs[0] == 0 && few*(h.Episodes[NAKSequence]+h.Episodes[Implied]) <= h.OutOfOrder
}

// lateOnly reports whether packets that seem to be missing, to be there twice or to be sent again may be just late.
func (h *Half) lateOnly() bool { return h.OutOfOrder > 0 && h.accepted() }

// Again says how many requests and READ responses were sent again.
func (c *Counts) Again() string {
	part := func(a, of Amount, what string) string {
		return fmt.Sprintf("%d of %d %s (%s)", a.Packets, of.Packets, what, percent(a.Packets, of.Packets))
	}
	switch {
	case c.AgainResponses.Packets == 0:
		return part(c.AgainRequests, c.Requests, "requests")
	case c.AgainRequests.Packets == 0:
		return part(c.AgainResponses, c.Responses, "responses")
	}
	return part(c.AgainRequests, c.Requests, "requests") + " and " + part(c.AgainResponses, c.Responses, "responses")
}

// timeoutOf is the local ACK timeout whose time is nearest to one that was measured, ns (IBTA 9.7.6.1.3: 4.096 us * 2^timeout, up to four times as long).
func timeoutOf(interval int64) int {
	t := 1
	for t < 31 && int64(4096)<<(t+1) <= interval+interval/8 {
		t++
	}
	return t
}
