package dataplane

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/dataplane/host"
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
		f.Data, f.Parsed = b.frame(i)
		if end := w.verdict(b, i, &f); end != passed {
			w.drop(b.port, end, b.frames[i])
			b.gone |= 1 << i
		}
	}
	b.inHand = notInHand
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
		w.listener.passing(b.port, kind, data, p)
		w.listener.enforce(b.port, kind, data, p)
	case kind == packet.StandardCNP:
		w.slowHost(b.port, p)
	}
	return passed
}
