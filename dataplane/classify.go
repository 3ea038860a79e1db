package dataplane

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/frames"
	"github.com/cnpgate/cnpgate/dataplane/host"
	"github.com/cnpgate/cnpgate/dataplane/link"
	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// passed is the verdict on a frame that is forwarded, if it isn't dropped later. Any other is the counter of the frame's end.
const passed = counters.RxPackets

// classifier is the stage that gives each special frame its verdict.
type classifier struct {
	*stage.State
	links    []*link.Link // by port
	gateway  *ownHost
	listener *listener
	pacer    *pacer
}

// classify gives each special frame of a batch its verdict: forward, consume, or drop by the domain filter. Every other frame is forwarded.
func (c *classifier) classify(b *frames.Batch) {
	if b.Special == 0 {
		return
	}
	f := c.gateway.hostFrame(b.Port)
	for left := b.Special; left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(uint64(left))
		f.Data, f.Parsed = b.Frame(i)
		if end := c.verdict(b, i, &f); end != passed {
			c.Drop(b.Port, end, b.Frames[i])
			b.Gone |= 1 << i
		}
	}
	b.InHand = frames.NotInHand
}

// verdict counts a notification, and returns the end of a frame that is not forwarded: MAC control of the link, a frame for the gateway, or
// one that the domain filter drops. MAC control for any other address is forwarded, and so is what is in a tunnel.
func (c *classifier) verdict(b *frames.Batch, i int, f *host.Frame) counters.Counter {
	data, p, tunnelled := f.Data, f.Parsed, b.Tunnel>>i&1 != 0
	if p.Kind == packet.MACControl && [6]byte(data) == packet.MACControlAddr {
		c.links[b.Port].Obey(c.Now, data, p)
		return counters.ConsumedMACControl
	}
	if !tunnelled {
		if end := c.gateway.receive(f); end != passed {
			return end
		}
	}
	code := &c.Policy.Build.Code
	kind := packet.Classify(data, p, code)
	if t := c.Trace.At(i); t != nil {
		t.Notification = kind
	}
	if kind != packet.NotANotification {
		c.Counters.Add(b.Port, counters.ReceivedFirst+counters.Counter(kind), 1)
	}
	role := c.Ports[b.Port].Role
	if domain := c.Policy.Domain; domain != nil {
		if reason, stops := domain.Stops(role, kind, data, p, code); stops && !domain.OnlyObserves(&c.Counters, b.Port, reason) {
			return reason
		}
	}
	switch {
	case tunnelled: // flows in tunnels are not paced, and their senders get no notifications
	case kind != packet.NotANotification && role == WAN:
		c.listener.passing(b.Port, kind, data, p)
		c.listener.enforce(b.Port, kind, data, p)
	case kind == packet.StandardCNP:
		c.pacer.slowHost(b.Port, p)
	}
	return passed
}
