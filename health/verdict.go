package health

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/cnpgate/cnpgate/internal/units"
)

// Verdict is one thing that is wrong, where, how that shows, and what to change.
type Verdict struct {
	Name        string `json:"verdict" doc:"Its name."`
	Title       string `json:"title" doc:"The same in plain words."`
	Meaning     string `json:"meaning" doc:"What that means, for people who don't know RDMA."`
	Subject     string `json:"subject" doc:"The hosts, from the requester to the responder, or the one host."`
	Evidence    string `json:"evidence" doc:"How it shows."`
	Advice      string `json:"advice" doc:"What to change."`
	Connections int    `json:"connections" doc:"How many connections show it; the evidence is of the worst one."`
	Weight      uint64 `json:"weight" doc:"How much it matters: for most verdicts the packets concerned. Verdicts are sorted by it."`
	// Pairs are those that the verdict is about, if they are several: the worst ones first.
	Pairs  []About `json:"pairs,omitempty" doc:"The pairs of hosts that it is about, if they are several: the worst ones first, up to 64."`
	Others int     `json:"other_pairs,omitempty" doc:"How many more there are."`
	// Commands are what to type, with a comment that says where.
	Commands []string `json:"commands,omitempty" doc:"What to type to change it or to look closer, with where."`

	of       []int // numbers of the connections
	from, to netip.Addr
	timeout  int        // of ShortTimeOut: the local ACK timeout that suffices
	lossy    netip.Addr // of a loss: the host on whose side it is
	class    class      // and what was lost
	notECT   bool       // what is sent there can't be marked CE
}

// judge returns the verdicts about one end's requests.
func (c *Connection) judge(i int) (all []Verdict) {
	h := &c.Half[i]
	for _, rule := range []func(*Connection, int) (Verdict, bool){
		shortTimeOut, blackHole, noAnswer, asymmetric, refused, notReady, lossUpstream, lossDownstream, ackLoss, reordering, duplication, windowLimit, incomplete, gatewayDrops,
	} {
		if v, ok := rule(c, i); ok {
			all = append(all, v)
		}
	}
	if v, ok := unexplained(c, i); ok && !slices.ContainsFunc(all, explains) {
		all = append(all, v)
	}
	for n := range all {
		all[n].Subject, all[n].from, all[n].to = c.subject(i), c.End[i].Addr.Netip(), c.End[i^1].Addr.Netip()
	}
	// What follows from these needs no verdict of its own.
	has := func(name string) bool {
		return slices.ContainsFunc(all, func(v Verdict) bool { return v.Name == name })
	}
	all = slices.DeleteFunc(all, func(v Verdict) bool {
		switch v.Name {
		case LossUpstream, LossDownstream, NoAnswer:
			return has(BlackHole) || v.Name == LossDownstream && (has(NoAnswer) && h.LostDownstream <= uint64(h.repeat.tries)+1 || has(Asymmetric) || has(ShortTimeOut) && h.rare(h.LostDownstream))
		case AckLoss:
			return has(ShortTimeOut) && 2*h.AcksLost < h.Episodes[Spurious]
		case Asymmetric:
			return has(NoAnswer)
		}
		return false
	})
	for _, rule := range []func(*Connection, int) (Verdict, bool){ignoresCNP, ceWithoutCNP} {
		if v, ok := rule(c, i); ok {
			all = append(all, v)
		}
	}
	return all
}

// notCaptured is how many packets of a connection were acknowledged, and never seen here: so many may have passed that seem to be lost or late.
func (c *Connection) notCaptured() uint64 { return c.Half[0].NotCaptured + c.Half[1].NotCaptured }

// perhapsMissed is how many of the episodes of an end that prove a loss may be of packets that the capture missed.
func (c *Connection) perhapsMissed(h *Half) uint64 {
	missed := c.notCaptured()
	if !h.incomplete() {
		return min(missed, 1)
	}
	const times = 4 // as many as there should be, as it misses several in a row
	return min(missed, 1+times*missed*(h.Episodes[NAKSequence]+h.Episodes[Implied])/max(h.Requests.Packets+h.Responses.Packets, 1))
}

// rare reports whether so few losses may be time-outs that were not known to be spurious.
func (c *Counts) rare(lost uint64) bool { return c.NAKs[0] == 0 && 7*lost < c.Episodes[Spurious] }

// lateAfterAll is how many packets came that had been sent again, and weren't copied by what copies others: they may be those that seemed to be lost.
func (c *Counts) lateAfterAll() uint64 {
	if c.twins() {
		return 0
	}
	return c.Duplicates - min(c.copies, c.Duplicates)
}

func (c *Connection) subject(i int) string { return Subject(c.End[i].Addr, c.End[i^1].Addr, c.Scope) }

func shortTimeOut(c *Connection, i int) (Verdict, bool) {
	h := &c.Half[i]
	n, rtt := h.Retransmitted[Spurious], h.clean
	if h.Episodes[Spurious] < 2 || h.mostlyOwn(h.Episodes[Spurious]) || h.RNRNAKs > h.Episodes[Spurious] || h.Episodes[Spurious] <= c.notCaptured() || h.stoodStill() { // a requester that waits for its receiver sends again at odd times
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
		Name: ShortTimeOut, Weight: n.Packets, timeout: timeoutFor(trip),
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
	if b.Stuck.data < 512 || b.Passed.sum() >= b.Stuck.sum() || !b.heard && (b.Passed == (size{}) || b.Passed.data >= b.Stuck.data || ahead(b.again, h.base) < coincidence) { // the peer may have gone down just then
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
		Name: BlackHole, Weight: h.Retransmissions().Packets + 1,
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
func (h *Half) neverSent() (psn uint32, is bool) {
	for i := range h.repeat.naks {
		if n := &h.repeat.naks[i]; n.at != 0 && ahead(n.psn, h.base) < 0 {
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
	advice := ""
	switch psn, strange := h.neverSent(); {
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
		Name: NoAnswer, Weight: h.Retransmissions().Packets + 1, Evidence: evidence,
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
		Name:   Asymmetric,
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
				Name: Refused, Weight: h.NAKs[code],
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
		Name: NotReady, Weight: h.RNRNAKs + h.Retransmitted[RNR].Packets,
		Evidence: fmt.Sprintf("%v had no receive buffer %d times (RNR NAK) in %d messages, and asked to wait for up to %v each time; %d packets were sent again",
			c.End[i^1].Addr.Netip(), h.RNRNAKs, h.Messages[Send]+h.Messages[Write], Duration(h.repeat.wait), h.Retransmitted[RNR].Packets),
		Advice: "post more receives at the responder (a longer receive queue or SRQ), or post them sooner; a smaller min_rnr_timer shortens each wait, and with an rnr_retry of 7 the requester never gives up",
	}
	if 2*h.unpaged > h.RNRNAKs {
		v.Evidence = fmt.Sprintf("%v asked %d times to wait for up to %v (RNR NAK), most often before a READ, which needs no receive buffer: the pages of its memory weren't there (on-demand paging); "+
			"%d packets were sent again", c.End[i^1].Addr.Netip(), h.RNRNAKs, Duration(h.repeat.wait), h.Retransmitted[RNR].Packets)
		v.Advice = "register the memory at the responder without IBV_ACCESS_ON_DEMAND, or bring in its pages before (ibv_advise_mr)"
	}
	return v, true
}

func lossUpstream(c *Connection, i int) (Verdict, bool) {
	h := &c.Half[i]
	if h.LostUpstream == 0 || h.mostlyOwn(h.LostUpstream) || h.flags&oneWay == 0 && h.provenUp <= c.perhapsMissed(h) || h.LostUpstream <= h.OutOfOrder+h.overtaken+h.lateAfterAll() { // some that are late look as if they were sent again
		return Verdict{}, false
	}
	from, to := c.End[i].Addr.Netip(), class{c.End[i^1].Addr.Netip(), h.dscp[0]}
	if h.Goodput == 0 && h.ReadGoodput > 0 {
		from, to = to.to, class{from, h.dscp[1]}
	}
	return Verdict{
		Name: LossUpstream, Weight: h.LostUpstream, lossy: from, class: to, notECT: h.incapable(),
		Evidence: fmt.Sprintf("%d packets (%s) were missing when they should have passed here: lost between %v and here; %s",
			h.LostUpstream, percent(h.LostUpstream, h.Requests.Packets+h.Responses.Packets), from, h.sentAgain()),
		Advice: fmt.Sprintf("look for drops, CRC errors and full queues between %v and here (switch counters, ethtool -S); RoCE needs PFC or enough buffer there", from),
	}, true
}

func lossDownstream(c *Connection, i int) (Verdict, bool) {
	h := &c.Half[i]
	if late := h.OutOfOrder + h.overtaken; h.LostDownstream <= late || h.mostlyOwn(h.LostDownstream) || late > 0 && h.LostDownstream == h.lostAsked+h.lostBack { // what is asked for may have been overtaken
		return Verdict{}, false
	}
	if h.Lead > 0 && h.LostDownstream == h.lostBack { // whether a response came before the READ that seems to ask for it again isn't known
		return Verdict{}, false
	}
	to, dscp := c.End[i^1].Addr.Netip(), h.dscp[0]
	if 2*h.lostBack > h.LostDownstream {
		to, dscp = c.End[i].Addr.Netip(), h.dscp[1]
		if h.LostDownstream*8 < h.LostUpstream { // the requester drops what comes behind a response that is missing, and may ask for it twice
			return Verdict{}, false
		}
	}
	alone := ""
	if h.discarded > h.LostDownstream {
		alone = fmt.Sprintf("; %d NAKs more asked for what the responder had dropped behind a missing packet, as the requester sends again only what a NAK asks for", h.discarded)
	}
	return Verdict{
		Name: LossDownstream, Weight: h.LostDownstream, lossy: to, class: class{to, dscp}, notECT: h.incapable(),
		Evidence: fmt.Sprintf("%s a packet passed here and did not arrive, or its ACK did not come back: lost between here and %v; %s%s", times(h.LostDownstream), to, h.sentAgain(), alone),
		Advice:   fmt.Sprintf("look for drops, CRC errors and full queues between here and %v; if the queue of a WAN port overflows, the senders must slow down earlier", to),
	}, true
}

// incapable reports whether the data that is sent can't be marked CE.
func (c *Counts) incapable() bool { return c.notECT == c.Requests.Packets && c.Goodput > 0 }

// sentAgain says what was sent again, by cause.
func (c *Counts) sentAgain() string {
	if c.Retransmissions().Packets == 0 {
		return "nothing was sent again"
	}
	var parts []string
	for cause, a := range c.Retransmitted {
		if a.Packets > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", a.Packets, Cause(cause)))
		}
	}
	return fmt.Sprintf("%s were sent again: %s", c.Again(), strings.Join(parts, ", "))
}

func ackLoss(c *Connection, i int) (Verdict, bool) {
	h := &c.Half[i]
	if h.AcksLost == 0 || h.mostlyOwn(h.AcksLost) || h.AcksLost*10 < h.RNRNAKs { // Soft-RoCE obeys some RNR NAKs twice
		return Verdict{}, false
	}
	ended := ""
	if h.repeat.active && h.repeat.tries >= retries {
		ended = fmt.Sprintf("; after %d time-outs in a row it sent nothing new (retry count exceeded)", h.repeat.tries)
	}
	return Verdict{
		Name: AckLoss, Weight: h.AcksLost,
		Evidence: fmt.Sprintf("%s the requester timed out although the ACK or READ response had passed here: lost between here and %v; %s%s",
			times(h.AcksLost), c.End[i].Addr.Netip(), h.sentAgain(), ended),
		Advice: fmt.Sprintf("look for drops between here and %v; ACKs should have the data's priority", c.End[i].Addr.Netip()),
	}, true
}

func reordering(c *Connection, i int) (Verdict, bool) {
	h := &c.Half[i]
	n, asked := max(h.OutOfOrder, h.overtaken), h.overtaken // here, or behind
	if h.Lead > 0 {
		n = h.OutOfOrder
	}
	const part = 4 // of what was asked for: else that was for another reason
	// Some that were lost, and sent again at once, look as if they were late.
	if n < 3 || n <= h.LostUpstream+h.LostDownstream+c.notCaptured()+h.EarlyAnswers || h.flags&oneWay == 0 && (asked == 0 || part*asked < h.Episodes[NAKSequence]) {
		return Verdict{}, false
	}
	effect := "the receiver takes each for a loss"
	if h.flags&oneWay != 0 {
		effect = "UC drops the message"
	}
	return Verdict{
		Name: Reordering, Weight: n,
		Evidence: fmt.Sprintf("%d packets (%s) came late, behind packets that were sent after them; %s; %s",
			n, percent(n, h.Requests.Packets+h.Responses.Packets), effect, h.sentAgain()),
		Advice: "keep a connection on one path: balance load by flow (the UDP source port), not by packet, or use NICs that accept packets out of order",
	}, true
}

func duplication(c *Connection, i int) (Verdict, bool) {
	h := &c.Half[i]
	if h.copies < 3+h.OutOfOrder || 8*h.copies < h.Duplicates || !h.twins() && h.Duplicates < 4*(h.AgainRequests.Packets+h.AgainResponses.Packets) {
		return Verdict{}, false
	}
	v := Verdict{
		Name: Duplication, Weight: h.Duplicates,
		Evidence: fmt.Sprintf("%d packets (%s) came twice, and were not sent again by the requester", h.Duplicates, percent(h.Duplicates, h.Requests.Packets+h.Responses.Packets)),
		Advice:   "look for a loop, or a device that copies packets",
	}
	switch all := h.Requests.Packets + h.Responses.Packets; {
	case h.Duplicates > all-all/5: // a packet came more than five times; four are the two ports of two switches
		v.Evidence = fmt.Sprintf("a packet came %d times on average (%d copies), and was not sent again by the requester so often", all/max(all-h.Duplicates, 1), h.Duplicates)
		v.Advice = "look for a forwarding loop (does the TTL fall from copy to copy?), or a mirror whose output is mirrored, too"
	case h.eachTwice():
		v.Advice = "the capture or mirror has each frame twice (in and out of a switch, or a bridge and its port): capture at one place only"
	}
	return v, true
}

// windowLimit: a sender with few requests at a time waits for each round trip, and nothing is wrong with that. It is if it goes on for so long that there
// must be much to send, at a small part of the rate at which it sends when it may. Before that, it is noted.
func windowLimit(c *Connection, i int) (Verdict, bool) {
	h := &c.Half[i]
	evidence, advice := c.window(i)
	if evidence == "" || h.Ended-h.Begun < lasting {
		return Verdict{}, false
	}
	return Verdict{Name: WindowLimit, Weight: h.Requests.Packets, Evidence: evidence, Advice: advice}, true
}

const lasting = 10_000 * ms

// window says how a sender waits with a full window, and what it needs for more; "": it doesn't.
func (c *Connection) window(i int) (evidence, advice string) {
	h := &c.Half[i]
	took := h.Ended - h.Begun
	const leastRTT, trips = ms, 20
	trip := h.clean.mean
	if h.turn.n > 0 && h.flags&midway != 0 { // within a message, it waits for nothing but ACKs
		trip += h.turn.least
	}
	if h.Window < 2 || h.clean.n < 8 || trip < leastRTT || took < trips*trip || h.Stalled*5 < took*4 {
		return "", ""
	}
	if again := h.Retransmissions().Packets; again*100 > h.Requests.Packets || c.Half[i^1].Goodput*10 > h.Goodput {
		return "", ""
	}
	goodput := float64(h.Goodput + h.ReadGoodput)
	has, could := goodput*8e9/float64(took), goodput*8e9/float64(max(took-h.Stalled, 1))
	return fmt.Sprintf("at most %d packets (%s) are on their way at once; at an RTT of %v that allows %s, and the sender waits %s of the time; it sends %s when it may",
			h.Window, units.Size(h.WindowBytes), Duration(trip), units.Rate(has), percent(uint64(h.Stalled), uint64(took)), units.Rate(could)),
		fmt.Sprintf("allow more on its way: at least %s (more or longer work requests, a deeper send queue, perftest's -t, more QPs; for READ a larger max_rd_atomic)",
			units.Size(uint64(could/8*float64(trip)/1e9)))
}

func incomplete(c *Connection, i int) (Verdict, bool) {
	h := &c.Half[i]
	if h.NotCaptured < 2 || h.lateOnly() || h.Lead > 0 { // a single one may have passed before the first packet
		return Verdict{}, false
	}
	return Verdict{
		Name: Incomplete, Weight: h.NotCaptured,
		Evidence: fmt.Sprintf("%d packets (%s) were acknowledged but never seen here", h.NotCaptured, percent(h.NotCaptured, h.Requests.Packets+h.NotCaptured)),
		Advice:   "the capture or mirror drops frames: give it a larger buffer (tcpdump -B) and a shorter snapshot length (-s 128), or some packets take another path",
	}, true
}

func ignoresCNP(c *Connection, i int) (Verdict, bool) {
	r := &c.Reaction[i]
	const enough = 3
	many := uint64(50)
	if c.Half[0].twins() || c.Half[1].twins() { // CNPs are there twice, too
		many *= 2
	}
	h := &c.Half[i]
	if r.Episodes < enough && r.Ignored < many || r.Obeyed*5 > r.Episodes || r.CNPs < 10 {
		return Verdict{}, false
	}
	if 2*h.Stalled > h.Ended-h.Begun && h.clean.mean+r.loop > recovers { // each window passes at the full rate, as it has made up for the CNPs of the one before
		return Verdict{}, false
	}
	return Verdict{
		Name: IgnoresCNP, Weight: r.CNPs, Subject: fmt.Sprintf("%v", c.End[i].Addr.Netip()),
		Evidence: fmt.Sprintf("%d CNPs went to it; after %d of %d that could be judged its rate did not fall", r.CNPs, r.Episodes-r.Obeyed, r.Episodes),
		Advice:   "turn DCQCN's reaction point on for the traffic's priority (mlnx_qos, /sys/class/net/IF/ecn/roce_rp/enable/PRIO), and check that the NIC counts CNPs (rp_cnp_handled, rp_cnp_ignored)",
	}, true
}
