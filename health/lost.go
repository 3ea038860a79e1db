package health

import (
	"fmt"
	"strings"
)

// This file has the rules about packets that are lost, overtaken or copied.

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
		Weight: h.LostUpstream, lossy: from, class: to, notECT: h.incapable(),
		Evidence: fmt.Sprintf("%d packets (%s) were missing when they should have passed here: lost between %v and here; %s",
			h.LostUpstream, percent(h.LostUpstream, h.Requests.Packets+h.Responses.Packets), from, h.sentAgain()),
		Advice: fmt.Sprintf("look for drops, CRC errors and full queues between %v and here (switch counters, ethtool -S); RoCE needs PFC or enough buffer there", from),
	}, true
}

func lossDownstream(c *Connection, i int) (Verdict, bool) {
	h := &c.Half[i]
	const few = 4
	if late := h.OutOfOrder + h.overtaken; h.LostDownstream <= late || h.mostlyOwn(h.LostDownstream) || late > 0 && h.LostDownstream == h.lostAsked+h.lostBack && (h.lostAsked > 0 || h.LostDownstream <= few*late) { // what is asked for may have been overtaken
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
		Weight: h.LostDownstream, lossy: to, class: class{to, dscp}, notECT: h.incapable(),
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
		Weight: h.AcksLost,
		Evidence: fmt.Sprintf("%s the requester timed out although the ACK or READ response had passed here: lost between here and %v; %s%s",
			times(h.AcksLost), c.End[i].Addr.Netip(), h.sentAgain(), ended),
		Advice: fmt.Sprintf("look for drops between here and %v; ACKs should have the data's priority", c.End[i].Addr.Netip()),
	}, true
}

func reordering(c *Connection, i int) (Verdict, bool) {
	h := &c.Half[i]
	n, asked, lost := max(h.OutOfOrder, h.overtaken), h.overtaken, h.LostUpstream+h.LostDownstream // here, or behind
	if h.Lead > 0 {                                                                                // as for losses
		n, lost = h.OutOfOrder, lost-min(h.lostBack, lost)
	}
	const part = 4 // of what was asked for: else that was for another reason
	// Some that were lost, and sent again at once, look as if they were late.
	if n < 3 || n <= lost+c.notCaptured()+h.EarlyAnswers || h.flags&oneWay == 0 && (asked == 0 || part*asked < h.Episodes[NAKSequence]) {
		return Verdict{}, false
	}
	effect := "the receiver takes each for a loss"
	if h.flags&oneWay != 0 {
		effect = "UC drops the message"
	}
	return Verdict{
		Weight: n,
		Evidence: fmt.Sprintf("%d packets (%s) came late, behind packets that were sent after them; %s; %s",
			n, percent(n, h.Requests.Packets+h.Responses.Packets), effect, h.sentAgain()),
		Advice: "keep a connection on one path: balance load by flow (the UDP source port), not by packet, or use NICs that accept packets out of order",
	}, true
}

func duplication(c *Connection, i int) (Verdict, bool) {
	h := &c.Half[i]
	const few, most = 3, 20
	all := h.Requests.Packets
	if h.Messages[ReadOp]+h.Messages[Atomic] > 0 {
		all += h.Responses.Packets
	}
	each := h.Duplicates >= few && most*h.Duplicates >= (most/2-1)*all && most*h.Duplicates <= (most/2+1)*all && h.OutOfOrder == 0 // nobody sends all again, each once
	if !each && (h.copies < few+h.OutOfOrder || 8*h.copies < h.Duplicates || !h.twins() && h.Duplicates < 4*(h.AgainRequests.Packets+h.AgainResponses.Packets)) {
		return Verdict{}, false
	}
	v := Verdict{
		Weight:   h.Duplicates,
		Evidence: fmt.Sprintf("%d packets (%s) came twice, and were not sent again by the requester", h.Duplicates, percent(h.Duplicates, h.Requests.Packets+h.Responses.Packets)),
		Advice:   "look for a loop, or a device that copies packets",
	}
	switch all = h.Requests.Packets + h.Responses.Packets; {
	case h.Duplicates > all-all/5: // a packet came more than five times; four are the two ports of two switches
		v.Evidence = fmt.Sprintf("a packet came %d times on average (%d copies), and was not sent again by the requester so often", all/max(all-h.Duplicates, 1), h.Duplicates)
		v.Advice = "look for a forwarding loop (does the TTL fall from copy to copy?), or a mirror whose output is mirrored, too"
	case h.eachTwice():
		v.Advice = "the capture or mirror has each frame twice (in and out of a switch, or a bridge and its port): capture at one place only"
	}
	return v, true
}
