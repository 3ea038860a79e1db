package pacing

import (
	"sync/atomic"

	"github.com/cnpgate/cnpgate/cnpdec"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// A sender may obey no notification. Then the gateway near the sender can do what a notification asks: it holds the frames of the flow that
// the notification names, in front of its WAN port's queue, with the pacer of that port. It forwards the notification. At another gateway,
// which congests, the flow then arrives as slowly as if the sender had obeyed.

// Unenforced is why the gateway didn't carry out what a notification asks for.
type Unenforced uint8

const (
	UntrustedSource   Unenforced = iota // the source may not send notifications to the domain
	Malformed                           // cnpdec refuses it, or its fields contradict each other
	NoSpaceForRequest                   // no slot for the request or its flow
	TooSoon                             // the last change of the flow's pace was too recent
	NothingToResume                     // a resume of a flow that isn't slowed down
	Ambiguous                           // it has no tags, and flows of several scopes have the addresses and QPs that it names
	// Unenforceds is the number of reasons.
	Unenforceds
)

// UnenforcedNames are the names of the reasons in counters.
var UnenforcedNames = [Unenforceds]string{"untrusted-source", "malformed", "no-space", "too-soon", "nothing-to-resume", "ambiguous"}

// RequestOf is what a notification asks for; false if its fields contradict each other, or it names no QP that carries data.
func RequestOf(n *cnpdec.Notification) (Request, bool) {
	r := &n.Asks
	return Request{Sender: r.Sender, Receiver: r.Receiver, QP: r.QP, sendersQP: r.SendersQP, Action: r.Ask, parameter: r.Parameter},
		r.Consistent() && r.QP >= packet.ManagementQPs
}

// Obey carries out a request for the flow of a port that it names. If that isn't slowed down, the request waits for the flow's next packet. It returns
// Taken, NoSlot, or nothing for a Resume of a flow that isn't slowed down here.
func (p *Pacer) Obey(r *Request, now int64) Result {
	if !p.Active() {
		return Taken
	}
	at := p.senders.flows[p.senders.bucket(r.Host())]
	for range longestList {
		if at == 0 {
			break
		}
		h := &p.hosts.of[at]
		if r.Names(&h.key, p.sourceQPOf(h)) {
			p.carryOut(at, r, now)
			return Taken
		}
		at = h.enforced.next
	}
	switch resumes := r.Action == cnpdec.Resume || r.Action == cnpdec.EndPause; {
	case resumes && !p.requests.cancel(r):
		return nothing
	case !resumes && !p.requests.expect(r):
		return NoSlot
	}
	return Taken
}

// sourceQPOf is the source QP of a slowed flow, 0 if it isn't known.
func (p *Pacer) sourceQPOf(h *pacedHost) uint32 {
	e := &h.enforced
	if p.Accounts.Flows.Live(e.ref) {
		if qp, known := p.Learner.SourceQP(e.ref.Index); known {
			e.sourceQP = qp
		}
	}
	return e.sourceQP
}

// takeRequests carries out the requests that have waited for a packet of this flow. It reads only lists of requests that may name the flow:
// whoever sends many about other flows of the same sender costs its packets nothing.
func (p *Pacer) takeRequests(flow flowtable.Ref, now int64) {
	k := p.Accounts.Flows.Key(flow.Index)
	sender := p.senders.hash(SenderOf(k))
	sourceQP, known := p.Learner.SourceQP(flow.Index)
	if !known {
		sourceQP = 0
	}
	p.takeNamed(flow, sourceQP, now, p.requests.named(sender, k.Dst, k.DestQP, false))
	if sourceQP != 0 {
		p.takeNamed(flow, sourceQP, now, p.requests.named(sender, k.Dst, sourceQP, true))
		p.takeNamed(flow, sourceQP, now, p.requests.named(sender, packet.Addr{}, sourceQP, true))
	}
}

// takeNamed carries out the requests of a list that name a flow.
func (p *Pacer) takeNamed(flow flowtable.Ref, sourceQP uint32, now int64, link *uint32) {
	k := p.Accounts.Flows.Key(flow.Index)
	for *link != 0 { // at most requestsABucket
		r := p.requests.waiting.of[*link]
		switch {
		case r.ends() <= now:
			p.requests.remove(link)
		case r.Names(k, sourceQP):
			p.requests.remove(link)
			p.start(flow, sourceQP, &r, now)
		default:
			link = &p.requests.waiting.next[*link]
		}
	}
}

// start carries out a request for a flow that may not be slowed down yet.
func (p *Pacer) start(flow flowtable.Ref, sourceQP uint32, r *Request, now int64) {
	at := p.hosts.add(p.Accounts.Flows.Key(flow.Index), now)
	if at == 0 {
		p.count(NoSpaceForRequest)
		return
	}
	e := &p.hosts.of[at].enforced
	if !e.linked {
		p.senders.link(at)
	}
	e.ref, e.sourceQP = flow, sourceQP
	p.carryOut(at, r, now)
}

// carryOut carries out a request for a flow with a slot, and counts it.
func (p *Pacer) carryOut(at uint32, r *Request, now int64) {
	if why := p.hosts.of[at].change(p.policy, r, now); why != Unenforceds {
		p.count(why)
		return
	}
	p.due.move(at)
	p.Events[r.Action]++
	p.Counted = true
}

// Tally counts what a pacer did about requests.
type Tally struct {
	Counted bool           // Events has any
	Events  [events]uint64 // since the worker has counted them
}

// count counts a request that is not carried out.
func (t *Tally) count(why Unenforced) {
	t.Events[int(cnpdec.Asks)+int(why)]++
	t.Counted = true
}

// events are the number of the actions that were carried out, and after these of the reasons why they were not.
const events = int(cnpdec.Asks) + int(Unenforceds)

// Result is what a worker has made of a request.
type Result uint64

const (
	nothing Result = 0 // there is nothing to do for it
	Taken   Result = 1 << 16
	NoSlot  Result = 1 << 32
)

// Trial is what the workers have made of a request, in one word so that the last one finds the result of all: 16 bits each for the workers that have not
// tried it yet, those that have taken it, and those that had no slot for it.
type Trial struct{ all atomic.Uint64 }

const (
	untried   = 1
	trialMask = 1<<16 - 1
)

// Begin begins the trial of a request by some workers; false if that of another one is not over.
func (t *Trial) Begin(workers int) bool {
	if t.all.Load()&trialMask != 0 {
		return false
	}
	t.all.Store(uint64(workers) * untried)
	return true
}

// Tried notes what a worker has made of a request. Of the last worker it returns why, if none has taken it; otherwise Unenforceds.
func (t *Trial) Tried(r Result) Unenforced {
	switch all := t.all.Add(uint64(r) - untried); {
	case all&trialMask != 0 || all/uint64(Taken)&trialMask != 0:
		return Unenforceds
	case all/uint64(NoSlot) != 0:
		return NoSpaceForRequest
	}
	return NothingToResume
}
