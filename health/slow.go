package health

import (
	"fmt"

	"github.com/cnpgate/cnpgate/internal/units"
)

// This file has the rules about senders that wait or don't slow down, and about what the capture misses.

// windowLimit: a sender with few requests at a time waits for each round trip, and nothing is wrong with that. It is if it goes on for so long that there
// must be much to send, at a small part of the rate at which it sends when it may. Before that, it is noted.
func windowLimit(c *Connection, i int) (Verdict, bool) {
	h := &c.Half[i]
	evidence, advice := c.window(i)
	if evidence == "" || h.Ended-h.Begun < lasting {
		return Verdict{}, false
	}
	return Verdict{Weight: h.Requests.Packets, Evidence: evidence, Advice: advice}, true
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
	few := 2 + h.EarlyAnswers // a single one may have passed before the first packet, and what is recorded behind its answer was captured
	// Without answers, or if other clocks were corrected, what comes late and what doesn't come look the same.
	if h.NotCaptured < few || h.lateOnly() && (h.NotCaptured < few+h.OutOfOrder || h.flags&answered == 0) || h.Lead > 0 && h.EarlyAnswers == 0 {
		return Verdict{}, false
	}
	of := h.Requests.Packets + h.NotCaptured
	if h.reads.known {
		of += h.Responses.Packets
	}
	return Verdict{
		Weight:   h.NotCaptured,
		Evidence: fmt.Sprintf("%d packets (%s) were acknowledged but never seen here", h.NotCaptured, percent(h.NotCaptured, of)),
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
		Weight: r.CNPs, Subject: fmt.Sprintf("%v", c.End[i].Addr.Netip()),
		Evidence: fmt.Sprintf("%d CNPs went to it; after %d of %d that could be judged its rate did not fall", r.CNPs, r.Episodes-r.Obeyed, r.Episodes),
		Advice:   "turn DCQCN's reaction point on for the traffic's priority (mlnx_qos, /sys/class/net/IF/ecn/roce_rp/enable/PRIO), and check that the NIC counts CNPs (rp_cnp_handled, rp_cnp_ignored)",
	}, true
}
