package dataplane

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/cnpdec"
	"github.com/cnpgate/cnpgate/dataplane/host"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// passed is the verdict on a frame that is forwarded, if it isn't dropped later. Other verdicts are the counter of a frame's end.
const passed Counter = 0

// classify gives each special frame of a batch its verdict: forward, consume, or drop by the domain filter. Every other frame is forwarded.
func (w *Worker) classify(b *batch) {
	if b.special == 0 {
		return
	}
	f := w.gateway.hostFrame(b.port)
	for left := b.special; left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(uint64(left))
		f.Data, f.Parsed = w.frame(b, i)
		if end := w.verdict(b, i, &f); end != passed {
			w.drop(b.port, end, b.frames[i])
			b.gone |= 1 << i
		}
	}
	w.inHand = notInHand
}

// verdict counts a notification, and returns the end of a frame that is not forwarded: MAC control of the link, a frame for the gateway, or
// one that the domain filter drops. MAC control for any other address is forwarded, and so is what is in a tunnel.
func (w *Worker) verdict(b *batch, i int, f *host.Frame) Counter {
	data, p, tunnelled := f.Data, f.Parsed, b.tunnel>>i&1 != 0
	if p.Kind == packet.MACControl && [6]byte(data) == packet.MACControlAddr {
		w.plane.links[b.port].Obey(w.now, data, p)
		return ConsumedMACControl
	}
	if !tunnelled {
		if end := w.gateway.receive(f); end != passed {
			return end
		}
	}
	code := &w.policy.Build.Code
	kind := packet.Classify(data, p, code)
	if t := w.trace.at(i); t != nil {
		t.Notification = kind
	}
	if kind != packet.NotANotification {
		w.counters.add(b.port, ReceivedFirst+Counter(kind), 1)
	}
	if reason, stops := w.policy.Border.stops(w.ports[b.port].Role, kind, data, p, code); stops && !w.policy.Border.onlyObserves(&w.counters, b.port, reason) {
		return reason
	}
	switch {
	case tunnelled: // flows in tunnels are not paced, and their senders get no notifications
	case kind != packet.NotANotification && w.ports[b.port].Role == WAN:
		w.passing(b.port, kind, data, p)
		w.enforce(b.port, kind, data, p)
	case kind == packet.StandardCNP:
		w.slowHost(b.port, p)
	}
	return passed
}

// passing records that a valid notification of a permitted gateway to a sender passes, except a Resume. A standard CNP comes from the flow's
// receiver, and a notification to a proxy is no notification to the sender yet.
func (w *Worker) passing(port int, kind packet.Notification, data []byte, p *packet.Parsed) {
	if kind == packet.StandardCNP || kind == packet.ProxyNotification {
		return
	}
	scope := packet.ScopeOf(uint16(w.ports[port].Peer), p)
	host := packet.Host{Addr: p.Dst, Scope: scope}
	if !w.plane.watches(host) || !w.permitted(kind, p) || w.hear(data, p) != cnpdec.Accepted {
		return
	}
	r, ok := paceRequestOf(&w.heard)
	if !ok || r.action == cnpdec.Resume || r.action == cnpdec.EndPause {
		return
	}
	r.scope = scope
	w.senders.notifiedElsewhere(port, &r)
	for _, other := range w.plane.workers {
		if other != w && other.senders.head(host).Load() != 0 {
			other.passedMail[w.id].put(portPaceRequest{paceRequest: r, port: port}) // if it is full, this one doesn't count there
		}
	}
}

// watches reports whether a worker may watch a sender: reading a notification that concerns none would only cost time.
func (d *Dataplane) watches(host packet.Host) bool {
	for _, w := range d.workers {
		if w.senders.head(host).Load() != 0 {
			return true
		}
	}
	return false
}

// hear reads a notification into w.heard.
func (w *Worker) hear(data []byte, p *packet.Parsed) cnpdec.Reason {
	w.hearing = cnpdec.Receiver{Code: w.policy.Build.Code, Extension: w.extensionOf(p.Dst), ICRC: cnpdec.ICRCEither}
	return w.hearing.Decode(data, p, &w.heard)
}

// drop ends a frame: its buffer goes back, and the counter says why.
func (c *common) drop(port int, reason Counter, f burst.Frame) {
	c.counters.add(port, reason, 1)
	c.batch.Free = append(c.batch.Free, f.Buf)
	c.trace.dropped(f.Buf, reason)
}
