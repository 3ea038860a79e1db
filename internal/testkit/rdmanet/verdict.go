package rdmanet

import (
	"fmt"
	"net"
	"slices"
	"strings"
)

// Claim is a verdict about two hosts, or about one.
type Claim struct {
	Verdict string
	Subject string // addresses in order, joined by a blank, or a MAC address
}

// Subject joins the addresses of what a verdict is about.
func Subject(of ...string) string {
	of = slices.Clone(of)
	slices.Sort(of)
	return strings.Join(of, " ")
}

// Expected are the verdicts of a capture.
type Expected struct {
	True map[Claim]bool // they hold, whether the capture shows it or not
	Must map[Claim]bool // and the capture suffices to prove them
}

// How many of a kind a capture must show so that a verdict must be given. Fewer may be a coincidence.
const (
	fewSpurious = 3    // time-outs
	fewLate     = 3    // packets
	fewCopies   = 3    // packets
	fewMissed   = 3    // packets
	fewTries    = 6    // transmissions of a packet without an answer
	fewSmall    = 16   // packets of a size that passes: that the peer goes down behind them is a coincidence
	fewMarked   = 10   // packets
	fewCNPs     = 64   // packets, by which a sender that obeys has become slower in any case: by 0.25 % each at the least (health/run.go)
	mostWindow  = 128  // packets, of any NIC that is drawn
	firstCNPs   = 8    // those that a sender must have obeyed: less than half of its rate is left
	fewAnswers  = 20   // of each receiver
	fewRequests = 64   // packets of one direction
	ownRoundsIn = 12   // round trips from one spurious time-out to the next
	pausedLong  = 10   // ms
	pausedShare = 0.01 // of the time
)

func (e *Expected) say(must bool, verdict string, of ...string) {
	claim := Claim{verdict, Subject(of...)}
	e.True[claim] = true
	if must {
		e.Must[claim] = true
	}
}

// Expected says which verdicts hold. All must have run.
func (c *Capture) Expected() Expected {
	e := Expected{map[Claim]bool{}, map[Claim]bool{}}
	for _, conn := range c.Network.Conns {
		for _, h := range conn.Half {
			if len(h.requests) > 0 {
				(&judge{capture: c, half: h, expected: &e, shown: c.of(h)}).all()
			}
		}
	}
	c.pauses(&e)
	return e
}

// judge says what holds of the requests of one end.
type judge struct {
	capture  *Capture
	half     *Half
	expected *Expected
	shown    []*Packet // in the capture
	again    []*Packet // of them those that are sent again
	begun    []*Episode
}

func (j *judge) all() {
	if len(j.shown) == 0 {
		return
	}
	j.again = j.capture.again(j.half)
	in := map[*Episode]bool{}
	for _, p := range j.again {
		if e := p.Again; !in[e] && p.Seq <= e.Seq {
			in[e] = true
			j.begun = append(j.begun, e)
		}
	}
	j.losses()
	j.timeOuts()
	j.reordering()
	j.refusals()
	j.silence()
	j.bigPackets()
	j.copies()
	j.gaps()
	j.congestion()
	j.corruption()
	j.oneSided()
	j.sluggishness()
	if len(j.again) > 0 || slices.ContainsFunc(j.shown, func(p *Packet) bool { _, nak := p.nak(); return nak || p.rnr() }) {
		j.hold(false, "retransmission-unexplained")
	}
	if s := j.half.Conn.Scene; s.Kind == Waiting || j.half.Conn.Path.Trip() >= msec && j.took() >= 9000*msec {
		j.hold(s.Kind == Waiting && j.full() && j.took() > 11_000*msec, "window-limits-throughput")
	}
}

// took is the time from the first packet in the capture to the last, ns.
func (j *judge) took() int64 { return j.shown[len(j.shown)-1].Passed - j.shown[0].Passed }

// Trip is the time for the path there and back, ns.
func (p *Path) Trip() (sum int64) {
	for _, side := range p.Segments {
		for _, s := range side {
			sum += s.Delay
		}
	}
	return sum
}

func (j *judge) addr(end int) string { return j.half.Conn.Host[end].Addr.String() }

func (j *judge) hold(must bool, verdict string) {
	j.expected.say(must, verdict, j.addr(0), j.addr(1))
}

// full reports whether the capture shows all of the connection.
func (j *judge) full() bool {
	return j.capture.both() && j.capture.readable(j.half.Conn.NIC)
}

func (j *judge) shows(p *Packet) bool { return p != nil && slices.Contains(j.shown, p) }

// losses before the capture and behind it.
func (j *judge) losses() {
	full := j.full()
	broken := j.broken()
	for _, p := range j.half.sent {
		before := p.Fate == LostBefore || p.Fate == CorruptedBefore
		behind := p.Fate == LostBehind || p.Fate == CorruptedBehind
		switch {
		case before && p.data():
			gap := j.leftGap(p)
			j.hold(full && p.Fate == LostBefore && gap && j.wanted(p), "loss-upstream")
			if p.Kind == Response && !gap {
				j.hold(false, "loss-downstream") // the capture shows a request without a response: either was lost on the responder's side
			}
		case before || behind && p.data():
			j.hold(false, "loss-downstream")
		case behind:
			j.hold(false, "ack-loss")
		}
		if p.data() && (p.Kind == Response && behind) {
			j.hold(false, "ack-loss") // of a READ: its response is the answer
		}
		if p.Fate == CorruptedBefore && p.data() && !j.capture.whole(p) {
			j.hold(false, "loss-downstream") // the capture doesn't show which
		}
	}
	for _, e := range j.begun {
		if e.Trigger != Asked && j.capture.View.Skew != 0 { // by other clocks, an answer that was lost and one that came too late look the same
			full = false
		} else {
			full = j.full()
		}
		switch reason := e.Reason(); {
		case reason == DataBehind && j.shows(e.About()):
			j.hold(full && !broken, "loss-downstream")
		case reason == AckBefore:
			j.hold(full && !broken, "loss-downstream")
		case reason == AckBehind:
			j.hold(full && j.shows(e.About()), "ack-loss")
		case reason == Reordered && len(j.late()) == 0:
			j.hold(false, "loss-downstream") // a packet overtaken behind the capture looks lost
		}
	}
}

// broken reports whether the path or the peer lets nothing, or nothing large, through for good, or the requester has given up: that is a verdict of its own.
func (j *judge) broken() bool {
	c := j.half.Conn
	return j.half.GaveUp || c.Host[j.half.End^1].Down != 0 || c.Scene.Kind == Hole || c.Scene.Kind == BigHole
}

// wanted reports whether a packet was asked for, or waited for, and not only sent again with others: then the capture may have missed it.
func (j *judge) wanted(lost *Packet) bool {
	return slices.ContainsFunc(j.begun, func(e *Episode) bool { return e.About() == lost })
}

// leftGap reports whether the capture shows that a packet was missing: those before and behind it pass, then the packet when it's sent again.
func (j *judge) leftGap(lost *Packet) bool {
	before, behind := false, false
	for _, p := range j.shown {
		switch {
		case p.Kind != lost.Kind || !p.data():
		case p.Seq > lost.Seq:
			behind = true
		case p.Seq == lost.Seq || p.Kind == Request && p.Seq+p.PSNs > lost.Seq:
			return before && behind && p.Again != nil
		default:
			before = true
		}
	}
	return false
}

func (j *judge) timeOuts() {
	n, first, last := int64(0), int64(0), int64(0)
	for _, e := range j.begun {
		if e.Trigger != TimedOut || e.Reason() != TooShort {
			continue
		}
		if n == 0 {
			first = e.At
		}
		n, last = n+1, e.At
	}
	if n == 0 {
		return
	}
	trip := j.half.Conn.Path.Trip()
	often := n >= fewSpurious && (last-first)/(n-1) < ownRoundsIn*trip
	j.hold(often && j.full() && j.capture.View.Skew == 0, "timeout-shorter-than-rtt")
}

func (j *judge) refusals() {
	readable := j.capture.readable(j.half.Conn.NIC)
	for _, p := range j.half.sent {
		code, nak := p.nak()
		switch {
		case p.rnr():
			j.hold(readable && j.shows(p), "receiver-not-ready")
		case nak && code != 0:
			j.hold(readable && j.shows(p), "request-refused")
		}
	}
}

// silence: the peer does not answer.
func (j *judge) silence() {
	c := j.half.Conn
	if !j.broken() {
		return
	}
	tries, times := map[int64]int{}, map[int64]int{}
	most := 0
	for _, p := range j.shown {
		switch p.Kind {
		case Request:
			times[p.Seq]++
			tries[p.Seq] = times[p.Seq]
			most = max(most, tries[p.Seq])
		case Response:
			clear(tries)
			most = 0
		}
	}
	silent := c.Host[j.half.End^1].Down != 0 || c.Scene.Kind == Hole
	j.hold(j.full() && most >= fewTries && silent, "no-answer")
	if most < fewTries {
		j.hold(false, "loss-downstream") // it may be that
		if j.capture.View.both() && !slices.ContainsFunc(j.shown, func(p *Packet) bool { return p.Kind == Response }) {
			j.hold(false, "asymmetric-path")
		}
	}
}

func (v *View) both() bool { return !v.Hidden[0] && !v.Hidden[1] }

// bigPackets: those above a size don't come through.
func (j *judge) bigPackets() {
	s := j.half.Conn.Scene
	if s.Kind != BigHole {
		return
	}
	times, most, answered, heard, small, passed := map[int64]int{}, 0, false, false, never, 0
	for _, p := range j.shown {
		switch {
		case p.Fate == LostBehind && p.Payload > s.Over:
			times[p.Seq]++
			most = max(most, times[p.Seq])
		case p.Kind == Request:
			if small = min(small, p.Seq); most == 0 {
				passed++
			}
		default:
			answered = answered || p.Acked > small
			heard = heard || most > 1 // the peer lives: it didn't just go down with the first large packet
		}
	}
	answered = answered && (heard || passed >= fewSmall)
	j.hold(j.full() && most >= 4 && answered, "mtu-black-hole")
}

// copies: packets that come twice. A copy of which the capture has not the original looks like one.
func (j *judge) copies() {
	n, more, seen := 0, false, map[*Packet]bool{}
	for i := range j.capture.Records {
		p := j.capture.Records[i].Packet
		if p == nil || p.Half != j.half || !p.data() {
			continue
		}
		more = more || p.CopyOf != nil
		if p.CopyOf != nil {
			p = p.CopyOf
		}
		if seen[p] {
			n++
		}
		seen[p] = true
	}
	if n > 0 || more {
		j.hold(n >= fewCopies && j.capture.readable(j.half.Conn.NIC), "duplicate-packets")
	}
}

// gaps: packets that passed, were acknowledged, and are not in the capture. Until two packets are captured in sequence, each may be one that is sent again
// alone, as a selective NIC does: what is between them passed before the capture began.
func (j *judge) gaps() {
	acked, sequel, seen := int64(-1), never, map[int64]bool{}
	next := [2]int64{-1, -1}
	for _, p := range j.shown {
		if p.data() {
			if p.Seq == next[p.Kind] {
				sequel = min(sequel, p.Seq)
			}
			next[p.Kind] = p.Seq + max(p.PSNs, 1)
		}
		if p.Kind == Response {
			acked = max(acked, p.Acked)
		}
		if p.data() {
			seen[p.Seq<<1|int64(p.Kind)] = true
		}
	}
	n := 0
	for _, p := range j.capture.Missed {
		if p.Half == j.half {
			j.hold(false, "capture-incomplete")
		}
		if p.Half == j.half && p.data() && p.Seq > sequel && p.Acked < acked && p.Seq+p.PSNs < acked && !seen[p.Seq<<1|int64(p.Kind)] {
			n++
		}
	}
	if n > 0 {
		j.hold(n >= fewMissed && j.capture.readable(j.half.Conn.NIC), "capture-incomplete")
	}
}

// congestion: CE marks and CNPs for the data that an end sends.
func (j *judge) congestion() {
	c := j.half.Conn
	for from := range 2 {
		marked, answers, first, wait, cnps := 0, 0, never, int64(0), 0
		asked, since, more := never, int64(0), 0 // when enough CNPs had come to it, the packets that it has sent since, and the CNPs after all that waited then
		for i := range j.capture.Records {
			r := &j.capture.Records[i]
			p := r.Packet
			switch {
			case p == nil || p.Half.Conn != c || r.Twin:
			case p.Kind == Notification:
				if p.From != from {
					if cnps++; cnps == firstCNPs {
						asked = p.Arrived
					}
					waits := c.NIC.Window
					if marked > 0 { // in a queue before the capture, which doesn't show how many: as many as any sender may have on their way
						waits = mostWindow
					}
					if since >= waits+c.NIC.Window {
						more++
					}
				}
			case p.From != from:
				answers++
				if p.Kind == Response && p.Trigger.Passed != never {
					wait = max(wait, p.Passed-p.Trigger.Passed)
				}
			default:
				if p.CE {
					marked++
					first = min(first, r.At)
				}
				if p.Sent > asked {
					since++
				}
			}
		}
		if !c.NIC.Notifies && marked > 0 {
			last := j.shown[len(j.shown)-1].Passed
			lasts := last-first > 3*wait+4*msec
			j.expected.say(j.full() && marked >= fewMarked && answers >= fewMarked && lasts, "ce-without-cnp", j.addr(from^1))
		}
		if cnps > 0 && !c.NIC.Obeys {
			// What waits in queues passes on, whether its sender obeys or not: that may be a window, and it takes another one to see a rate.
			j.expected.say(j.full() && more >= fewCNPs, "sender-ignores-cnps", j.addr(from))
		}
	}
}

func (j *judge) corruption() {
	for _, p := range j.shown {
		if p.Fate == CorruptedBefore && j.capture.whole(p) {
			j.hold(true, "wrong-icrc")
		}
	}
}

func (j *judge) oneSided() {
	v := &j.capture.View
	if v.both() {
		return
	}
	other := j.half.Conn.Half[j.half.End^1]
	alone := len(other.requests) == 0
	j.hold(alone && !j.broken() && len(j.shown) >= fewRequests && j.took() > 12*msec && v.Sample <= 1 && j.capture.readable(j.half.Conn.NIC), "asymmetric-path")
}

// sluggishness: a receiver takes longer to answer than the others.
func (j *judge) sluggishness() {
	if j.half.Conn.Scene.Kind != Sluggish {
		return
	}
	enough := j.full() && j.capture.View.Skew == 0
	for _, c := range j.capture.Network.Conns { // those that it is compared with, too
		answers := 0
		for _, p := range j.capture.of(c.Half[j.half.End]) {
			if p.Kind == Response {
				answers++
			}
		}
		enough = enough && answers >= fewAnswers && c.NIC.IPv6 == j.half.Conn.NIC.IPv6
	}
	j.expected.say(enough, "slow-receiver", j.addr(j.half.End^1))
}

// pauses: PFC frames, at 100 Gbit/s.
func (c *Capture) pauses(e *Expected) {
	type pausing struct{ total, longest, since, until int64 }
	all := map[string]*pausing{}
	for i := range c.Records {
		r := &c.Records[i]
		if r.Pause == nil {
			continue
		}
		key := net.HardwareAddr(r.Pause.From[:]).String()
		p := all[key]
		if p == nil {
			p = &pausing{}
			all[key] = p
		}
		long := int64(float64(r.Pause.Quanta) * 512 / 100)
		if r.At > p.until {
			p.since, p.until = r.At, r.At
		}
		p.total += r.At + long - p.until // a shorter pause ends the present one early
		p.until = r.At + long
		p.longest = max(p.longest, p.until-p.since)
	}
	if len(c.Records) == 0 {
		return
	}
	took := c.Records[len(c.Records)-1].At - c.Records[0].At
	for from, p := range all {
		if p.longest >= pausedLong*msec/2 {
			e.say(p.longest >= pausedLong*msec*3/2, "pfc-storm", from)
		}
		if share := float64(p.total) / float64(took); p.total >= msec/2 && share >= pausedShare/2 {
			e.say(p.longest < pausedLong*msec/2 && p.total >= 2*msec && share >= 2*pausedShare, "pfc-pauses", from)
		}
	}
}

// String describes a claim.
func (c Claim) String() string { return fmt.Sprintf("%s (%s)", c.Verdict, c.Subject) }
