package health

import "fmt"

// This file has the rules about answers that come too late, never, or that refuse.

func shortTimeOut(c *Connection, i int) (Verdict, bool) {
	h := &c.Half[i]
	n, rtt := h.Retransmitted[Spurious], h.clean
	if h.Episodes[Spurious] < 2 || h.mostlyOwn(h.Episodes[Spurious]) || h.RNRNAKs > h.Episodes[Spurious] || h.Episodes[Spurious] <= c.notCaptured() || h.doubts.stoodStill(&h.clean) { // a requester that waits for its receiver sends again at odd times
		return Verdict{}, false
	}
	trip := rtt.mean
	if h.turn.n > 0 {
		trip += h.turn.least
	}
	if (h.turn.n == 0 || h.turn.most > 2*h.turn.least) && h.back == 0 { // how far the requester is isn't known, but each answer took longer than its time-out
		trip = max(trip, h.doubts.waited.least)
	}
	if rtt.n < 3 {
		trip = max(trip, h.doubts.elapsed.least, h.doubts.took.least, h.Interval.mean) // where a packet was lost, it took longer
	}
	if d := &h.doubts; d.packets > 0 && d.rounds >= 2*d.packets { // the ACKs take longer than so many time-outs
		trip = max(trip, int64(d.rounds/d.packets+1)*h.Interval.mean)
	}
	every := h.Interval.mean
	if h.Interval.n == 0 || every > trip {
		every = h.soon.most // at most the time-out, as it began to run at the packet or the last ACK
		if every > trip {   // once the host was busy
			every = h.soon.mean
		}
	}
	// Some senders time out too early now and then, at any RTT.
	if h.spacing.n == 0 || h.spacing.mean > 16*trip {
		return Verdict{}, false
	}
	if h.doubts.took.n >= 3 { // nothing was lost, so that it is a round trip, perhaps on a longer path than those before
		trip = max(trip, h.doubts.took.least)
	}
	when := fmt.Sprintf("every %v", Duration(every))
	if every == 0 {
		when = "too early"
	}
	first := h.soon
	if first.n == 0 {
		first = h.idle
	}
	if first.n > 0 && first.least*2 < h.Interval.mean && h.Interval.most > 2*h.Interval.least {
		when = fmt.Sprintf("first after %v, then at growing intervals of up to %v,", Duration(first.least), Duration(h.Interval.most))
	}
	return Verdict{
		Weight: n.Packets, timeout: timeoutFor(trip),
		Evidence: fmt.Sprintf("retransmits %s at an RTT of %v: the requester timed out %d times while the answer was already on its way; %s",
			when, Duration(trip), h.Episodes[Spurious], h.sentAgain()),
		Advice: fmt.Sprintf("raise the QP's timeout to %d or more (4.096 us * 2^timeout; ibv_modify_qp's timeout, perftest's -u, NCCL_IB_TIMEOUT), or turn adaptive retransmission off",
			timeoutFor(trip)),
	}, true
}

// timeoutFor is the smallest local ACK timeout that is at least twice a round trip (IBTA 9.7.6.1.3).
func timeoutFor(rtt int64) int {
	for t := 1; t < 31; t++ {
		if int64(4096)<<t >= 2*rtt {
			return t
		}
	}
	return 31
}

func blackHole(c *Connection, i int) (Verdict, bool) {
	h := &c.Half[i]
	b := &h.big
	if b.Stuck.data < 512 || h.NAKs[0] == 0 && !b.inTime(h) || b.Passed.sum() >= b.Stuck.sum() || !b.heard && (b.Passed == (size{}) || b.Passed.data >= b.Stuck.data || ahead(b.again, h.base) < coincidence) { // the peer may have gone down just then
		return Verdict{}, false
	}
	passed := "smaller packets pass"
	switch {
	case b.Passed.data >= b.Stuck.data:
		passed = fmt.Sprintf("with %d bytes of headers fewer they are", b.Stuck.headers-b.Passed.headers)
	case b.Passed.data > 0:
		passed = fmt.Sprintf("those of up to %d bytes are", b.Passed.data)
	}
	return Verdict{
		Weight:   h.Retransmissions().Packets + 1,
		Evidence: fmt.Sprintf("no packet with %d bytes of payload or more was ever acknowledged, in spite of %d attempts; %s", b.Stuck.data, max(b.attempts, stuckTries), passed),
		Advice: fmt.Sprintf("a link on the path has an MTU below %d bytes of IP: raise it there, or lower the path MTU of the QP (the interface's MTU at both hosts)",
			b.Stuck.sum()+ipOverhead(c)),
	}, true
}

func ipOverhead(c *Connection) uint32 {
	if c.End[0].Addr.Is4() {
		return 20 + 8 + 12 + 4
	}
	return 40 + 8 + 12 + 4
}

// LinkLocal is advice about such addresses.
const LinkLocal = "a link-local address isn't routed: choose a GID with an IP address of the network (NCCL_IB_GID_INDEX, UCX_IB_GID_INDEX, perftest's -x; show_gids lists them); "

// OneHop is advice about packets that no router forwards.
const OneHop = "its packets have a TTL or hop limit of 1, so no router forwards them: raise the hop_limit of the QP's address (ibv_modify_qp, ibv_create_ah); "

// SamePSN is advice about ends that expect different PSNs.
const SamePSN = "let both ends begin with the same PSN (the requester's sq_psn is the peer's rq_psn, ibv_modify_qp), and reset both QPs if one of them was"

// neverSent is the PSN that a NAK asks for though the requester doesn't have it: it is from before the first packet that passed, and the requester goes back to a later one.
func (r *repeat) neverSent(base uint32) (psn uint32, is bool) {
	for i := range r.naks {
		if n := &r.naks[i]; n.at != 0 && ahead(n.psn, base) < 0 {
			return n.psn, true
		}
	}
	return 0, false
}

func noAnswer(c *Connection, i int) (Verdict, bool) {
	h := &c.Half[i]
	enough := h.big.attempts >= gaveUp && (h.Responses.Packets == 0 || c.How == GaveUp && h.repeat.tries >= gaveUp && ahead(h.answers.acked, h.repeat.latestPSN) <= 0)
	if h.flags&oneWay != 0 || !enough && !c.silent(i) {
		return Verdict{}, false
	}
	peer := c.End[i^1].Addr.Netip()
	every, timeout := "", ""
	if h.Interval.n > 0 {
		every, timeout = fmt.Sprintf(", one every %v", Duration(h.Interval.mean)), fmt.Sprintf(", time-out %d", timeoutOf(h.Interval.mean))
	}
	evidence := fmt.Sprintf("%v never answered: a packet was sent %d times%s", peer, max(h.repeat.tries, h.big.attempts)+1, every)
	if h.Responses.Packets > 0 {
		until := "before"
		if d := h.answers.at - c.First; d > 0 {
			until = fmt.Sprintf("until %v after the connection's first packet", Duration(d))
		}
		evidence = fmt.Sprintf("%v answered %s, and to none of %d transmissions of a packet since%s", peer, until, h.repeat.tries+1, every)
	}
	if c.How == GaveUp {
		evidence += fmt.Sprintf("; the requester has given up (retry count %d exceeded%s)", h.repeat.tries, timeout)
	}
	if b := &h.big; b.Passed.data > 0 && b.Passed.data < b.Stuck.data {
		evidence += fmt.Sprintf("; it has %d bytes of payload, and no packet of more than %d was ever acknowledged", b.Stuck.data, b.Passed.data)
	}
	advice := ""
	switch psn, strange := h.repeat.neverSent(h.base); {
	case strange:
		evidence += fmt.Sprintf("; its NAK asks for PSN %d, which the requester hasn't: it began to send at another PSN than the peer expects", psn)
		advice = SamePSN + "; "
	case h.Responses.Packets > 0:
	case peer.IsLinkLocalUnicast():
		advice = LinkLocal
	case h.hops.latest[0] == 1:
		advice = OneHop
	}
	return Verdict{
		Weight: h.Retransmissions().Packets + 1, Evidence: evidence,
		Advice: advice + "check that the peer's QP still exists, that its host is up, that no filter or route drops UDP port 4791 on the way there or back, and that the path takes packets as large as " +
			"this one's, and its response's",
	}, true
}

// silent reports whether the peer of an end has sent nothing for long, in spite of a few transmissions of a packet: a requester with a long time-out.
func (c *Connection) silent(i int) bool {
	h := &c.Half[i]
	heard := max(h.answers.latest, h.reads.latest, c.Half[i^1].Ended, h.Begun)
	return h.repeat.tries >= stuckTries-1 && h.big.attempts >= stuckTries-1 && ahead(h.answers.acked, h.repeat.latestPSN) <= 0 && h.Ended-heard >= idleAfter
}

func asymmetric(c *Connection, i int) (Verdict, bool) {
	h := &c.Half[i]
	const many = 64
	if h.flags&oneWay != 0 || c.Service == transportUD || c.Last-max(h.Begun, c.First) < 10*ms { // answers may come yet, or requests have passed before the first packet
		return Verdict{}, false
	}
	v := Verdict{
		Advice: "capture or mirror both directions; if this is the only path, traffic takes another one back: round trips and the causes of retransmissions are unknown here, and the gateway can't learn the QP",
	}
	switch other := c.Half[i^1].Responses.Packets + c.Half[i^1].Requests.Packets; {
	case h.Requests.Packets >= many && h.Responses.Packets == 0 && other == 0 && h.AgainRequests.Packets*gaveUp <= h.Requests.Packets*(gaveUp-1): // answers reach the requester: it goes on
		v.Weight = h.Requests.Packets
		v.Evidence = fmt.Sprintf("%d requests passed here, and not one ACK", h.Requests.Packets)
	case h.Responses.Packets >= many && h.Requests.Packets == 0 && c.Half[i^1].Responses.Packets == 0: // the requester's packets don't pass here
		v.Weight = h.Responses.Packets
		v.Evidence = fmt.Sprintf("%d responses passed here, and not one request that they answer", h.Responses.Packets)
	default:
		return v, false
	}
	return v, true
}

func refused(c *Connection, i int) (Verdict, bool) {
	h := &c.Half[i]
	for code := 1; code < 5; code++ {
		if h.NAKs[code] > 0 {
			const reads = "the requester's max_rd_atomic must not exceed the responder's max_dest_rd_atomic (in RDMA-CM initiator_depth and responder_resources), and the QP must permit the operation (qp_access_flags)"
			const others = "compare the operation, its length and the path MTU with what the responder's QP allows (receive buffers' size)"
			to, invalid := "", others+"; for a READ or atomic, "+reads
			switch h.flags & (noRead | noOther) {
			case noRead:
				to, invalid = " to a READ or atomic", reads
			case noOther:
				to, invalid = " to a SEND or WRITE", others
			}
			return Verdict{
				Weight:   h.NAKs[code],
				Evidence: fmt.Sprintf("the responder sent NAK %s%s %s, which ends the connection", NAKName(code), to, times(h.NAKs[code])),
				Advice: [...]string{
					1: invalid,
					2: "check the remote key, address and length, and that the memory region permits the operation",
					3: "look at the responder's own errors: its QP could not complete the request",
					4: "the responder's RD domain doesn't match",
				}[code],
			}, true
		}
	}
	return Verdict{}, false
}

func notReady(c *Connection, i int) (Verdict, bool) {
	h := &c.Half[i]
	if h.RNRNAKs == 0 {
		return Verdict{}, false
	}
	v := Verdict{
		Weight: h.RNRNAKs + h.Retransmitted[RNR].Packets,
		Evidence: fmt.Sprintf("%v had no receive buffer %d times (RNR NAK) in %d messages, and asked to wait for up to %v each time; %d packets were sent again",
			c.End[i^1].Addr.Netip(), h.RNRNAKs, h.Messages[Send]+h.Messages[Write], Duration(h.repeat.wait), h.Retransmitted[RNR].Packets),
		Advice: "post more receives at the responder (a longer receive queue or SRQ), or post them sooner; a smaller min_rnr_timer shortens each wait, and with an rnr_retry of 7 the requester never gives up",
	}
	if c.unheard() {
		v.Evidence += "; what the requester sent last was never answered, nor sent again"
	}
	if 2*h.unpaged > h.RNRNAKs {
		v.Evidence = fmt.Sprintf("%v asked %d times to wait for up to %v (RNR NAK), most often before a READ, which needs no receive buffer: the pages of its memory weren't there (on-demand paging); "+
			"%d packets were sent again", c.End[i^1].Addr.Netip(), h.RNRNAKs, Duration(h.repeat.wait), h.Retransmitted[RNR].Packets)
		v.Advice = "register the memory at the responder without IBV_ACCESS_ON_DEMAND, or bring in its pages before (ibv_advise_mr)"
	}
	return v, true
}
