package dataplane

import (
	"github.com/cnpgate/cnpgate/cnpdec"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/mailbox"
	"github.com/cnpgate/cnpgate/dataplane/notify"
	"github.com/cnpgate/cnpgate/dataplane/pacing"
	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// listener reads the notifications of other gateways and of receivers that pass. A sender that one has reached counts as notified, and
// where the operator says so, the gateway carries the notification out itself (enforce.go).
type listener struct {
	*stage.State
	peers   []*listener // of all workers
	senders *notify.Senders
	heard   cnpdec.Notification            // the one that is being read
	hearing cnpdec.Receiver                // by these rules
	passed  []mailbox.Box[portPaceRequest] // notifications to senders that pass at other workers, by the worker that writes
	paces   []mailbox.Box[portPaceRequest] // requests to slow down a flow; the same
	trials  [trialSlots]pacing.Trial       // of the requests that this worker has passed to the others
	trial   uint8                          // the last one
}

// portPaceRequest is a request about a flow that leaves by a port. All workers try it.
type portPaceRequest struct {
	pacing.Request
	port  int
	trial uint8 // its place in trials of the worker that writes
}

// trialSlots is the number of requests of a worker that others may have not tried yet: more than a mailbox has, so that one late worker
// doesn't use all.
const trialSlots = 2 * mailbox.Size

// passing records that a valid notification of a permitted gateway to a sender passes, except a Resume. A standard CNP comes from the
// flow's receiver, and a notification to a proxy is no notification to the sender yet.
func (l *listener) passing(port int, kind packet.Notification, data []byte, p *packet.Parsed) {
	if kind == packet.StandardCNP || kind == packet.ProxyNotification {
		return
	}
	scope := packet.ScopeOf(uint16(l.Ports[port].Peer), p)
	host := packet.Host{Addr: p.Dst, Scope: scope}
	if !l.watches(host) || !l.permitted(kind, p) || l.hear(data, p) != cnpdec.Accepted {
		return
	}
	r, ok := pacing.RequestOf(&l.heard)
	if !ok || r.Action == cnpdec.Resume || r.Action == cnpdec.EndPause {
		return
	}
	r.Scope = scope
	l.senders.NotifiedElsewhere(port, &r)
	for id, other := range l.peers {
		if id != l.ID && other.senders.Head(host).Load() != 0 {
			other.passed[l.ID].Put(portPaceRequest{Request: r, port: port}) // if it is full, this one doesn't count there
		}
	}
}

// watches reports whether a worker may watch a sender: reading a notification that concerns none would only cost time.
func (l *listener) watches(host packet.Host) bool {
	for _, p := range l.peers {
		if p.senders.Head(host).Load() != 0 {
			return true
		}
	}
	return false
}

// hear reads a notification into l.heard.
func (l *listener) hear(data []byte, p *packet.Parsed) cnpdec.Reason {
	l.hearing = cnpdec.Receiver{Code: l.Policy.Build.Code, Extension: l.extensionOf(p.Dst), ICRC: cnpdec.ICRCEither}
	return l.hearing.Decode(data, p, &l.heard)
}

// enforce carries out a notification that passes from a WAN port to the fabric. Its flow leaves by the same port.
func (l *listener) enforce(port int, kind packet.Notification, data []byte, p *packet.Parsed) {
	if !l.Pacers[port].Active() || kind != packet.ProxyNotification && !l.Enforces(port, p.Dst) {
		return
	}
	if !l.permitted(kind, p) {
		l.unenforced(port, pacing.UntrustedSource)
		return
	}
	if l.hear(data, p) != cnpdec.Accepted {
		l.unenforced(port, pacing.Malformed)
		return
	}
	l.enforceNotification(port, p, &l.heard)
}

// enforceNotification carries out a valid notification of a permitted source. p is the result of packet.Parse for it.
func (l *listener) enforceNotification(port int, p *packet.Parsed, n *cnpdec.Notification) {
	r, ok := pacing.RequestOf(n)
	if !ok {
		l.unenforced(port, pacing.Malformed)
		return
	}
	if !l.Enforces(port, r.Sender) {
		return
	}
	r.Scope, r.At = packet.ScopeOf(uint16(l.Ports[port].Peer), p), l.Now
	switch n.Kind {
	case packet.StandardCNP: // its flow's source QP must be confirmed; that of the other direction may not have sent anything yet
		r.Unverified = !l.Confirmed(port, p)
	case packet.ProxyNotification: // it is for the proxy, and may come without tags
		k := flowtable.Key{Src: r.Sender, Dst: r.Receiver, DestQP: r.QP}
		k.SetScope(r.Scope)
		if l.Locate(&k) {
			l.unenforced(port, pacing.Ambiguous)
			return
		}
		r.Scope = k.Scope()
	}
	l.pass(port, &r)
}

// enforceForProxy carries out a notification about a flow to the gateway as a proxy, whose source is permitted.
func (l *listener) enforceForProxy(k *flowtable.Key) {
	port := l.Ports[k.Port].Peer
	if k.SourceQP != 0 || !l.Enforces(port, k.Src) { // a flow of UD isn't named by the receiver's QP
		return
	}
	l.pass(port, &pacing.Request{Sender: k.Src, Receiver: k.Dst, QP: k.DestQP, Scope: k.Scope(), At: l.Now})
}

// pass gives a request to all workers: any of them may have the flow. If too many requests wait for other workers, only this one tries it.
func (l *listener) pass(port int, r *pacing.Request) {
	l.trial = (l.trial + 1) % trialSlots
	t, p := &l.trials[l.trial], l.Pacers[port]
	if !t.Begin(len(l.peers)) {
		if p.Obey(r, l.Now) != pacing.Taken {
			l.unenforced(port, pacing.NoSpaceForRequest)
		}
		return
	}
	for id, other := range l.peers {
		if id != l.ID && !other.paces[l.ID].Put(portPaceRequest{*r, port, l.trial}) {
			l.unenforced(port, t.Tried(pacing.NoSlot))
		}
	}
	l.unenforced(port, t.Tried(p.Obey(r, l.Now)))
}

// permitted reports whether a notification's source may slow a sender down. A standard CNP comes from a receiver, and names its flow with
// the receiver's address and the sender's QP. Any other notification comes from a gateway, which the operator must have listed
// (draft-xiao-fast-cnp 5, draft-tian 9, draft-xiao-proxy 6). One in the gateway's own name is forged.
func (l *listener) permitted(kind packet.Notification, p *packet.Parsed) bool {
	return kind == packet.StandardCNP || l.Policy.Domain != nil && l.Policy.Domain.From(p) && !l.Policy.Owns(p.Src)
}

// extensionOf is what the extension bit of a CNP to a sender means: PPFC if the operator says so of the sender, otherwise Long-haul CNP.
func (l *listener) extensionOf(sender packet.Addr) packet.Notification {
	if accepted, ok := l.Policy.Who.Endpoints.Lookup(sender); ok && accepted.Accepts(packet.PPFC) {
		return packet.PPFC
	}
	return packet.LongHaulCNP
}

// unenforced counts a request that was not carried out, unless why is Unenforceds.
func (l *listener) unenforced(port int, why pacing.Unenforced) {
	if why != pacing.Unenforceds {
		l.Counters.Add(port, counters.UnenforcedFirst+counters.Counter(why), 1)
	}
}

// readMail does what notifications ask for that arrived at other workers.
func (l *listener) readMail() {
	for from := range l.paces {
		for range mailbox.Size {
			r, ok := l.paces[from].Take()
			if !ok {
				break
			}
			l.unenforced(r.port, l.peers[from].trials[r.trial].Tried(l.Pacers[r.port].Obey(&r.Request, l.Now)))
		}
	}
	for from := range l.passed {
		for range mailbox.Size {
			r, ok := l.passed[from].Take()
			if !ok {
				break
			}
			l.senders.NotifiedElsewhere(r.port, &r.Request)
		}
	}
}

// newMailboxes are those that a worker reads, by the worker that writes; nil without pacing.
func newMailboxes[M any](workers int, ports []PortConfig) []mailbox.Box[M] {
	for i := range ports {
		if workers > 1 && ports[i].Paced > 0 {
			return make([]mailbox.Box[M], workers)
		}
	}
	return nil
}
