package config

import (
	"fmt"
	"time"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/link"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/units"
	"github.com/cnpgate/cnpgate/lossless"
)

const (
	pollReaction    = 100 * time.Microsecond
	backoffReaction = time.Millisecond // a worker that sleeps may sleep that long
	gapShare        = 8                // XOn is an eighth of XOff below it
	gapFrames       = 2                // and at least two frames of greatest length
)

// resolveFlowControl completes the settings of a port's flow control, and checks its classes' priorities.
func (r *portResolver) resolveFlowControl() {
	s, p := r.s, r.p
	f := p.FlowControl
	if f != nil {
		if !s.FlowControl.Speed.given {
			f.Speed = s.Rate.V
		}
		for class := range f.Priority {
			f.Priority[class] = -1
		}
		if f.Speed == 0 {
			p.FlowControl = nil // its mistake is reported
		}
	}
	for i := range s.TrafficClasses.Items {
		switch c := &s.TrafficClasses.Items[i]; {
		case !c.Priority.given || !c.Priority.valid:
		case f != nil:
			f.Priority[i] = int8(c.Priority.V)
		case !c.Lossless.V:
			r.warn(c.Priority.place, "has no effect, as the port has no flow_control; add flow_control, or remove the priority")
		}
	}
}

// linkOf is the link of a port with flow control.
func linkOf(doc *document, s *portSection, speed uint64) lossless.Link {
	l := lossless.Link{Speed: speed, Frame: frameLength(int(s.MTU.V)), Response: lossless.Response(speed), Reaction: int64(pollReaction)}
	if doc.DPDK.Idle.V == idleBackoff {
		l.Reaction = int64(backoffReaction)
	}
	fill(&l, &s.FlowControl)
	return l
}

// idleBackoff is the number of the word backoff in the schema.
const idleBackoff = 1

// frameLength is the length in bytes of the longest frame of an MTU, with two VLAN tags, without FCS.
func frameLength(mtu int) int { return mtu + packet.EthernetLen + packet.MaxTags*packet.VLANTagLen }

// resolveLossless calculates the thresholds of a port's lossless classes. Their frames arrive at its peer.
func (r *portResolver) resolveLossless(ports []Port) {
	s, p := r.s, r.p
	peer := &ports[p.Peer]
	for i := range s.TrafficClasses.Items {
		c := &s.TrafficClasses.Items[i]
		switch {
		case !c.Lossless.V && (c.XOff.given || c.XOn.given):
			at := c.XOff.place
			if !at.given {
				at = c.XOn.place
			}
			r.problem(at, "belongs to a lossless class; set lossless to true, or remove it")
		case !c.Lossless.V:
		case p.Role != dataplane.WAN:
			r.problem(c.Lossless.place, "only a class of a WAN port can be lossless: PFC is sent to the fabric")
		case !c.Priority.given:
			r.problem(c.Lossless.place, "a lossless class needs a priority, 0 to 7: the one that its frames have in the fabric's PFC")
		case peer.FlowControl == nil:
			r.problem(c.Lossless.place, "the peer %s has no flow_control, so no PFC can be sent; add flow_control: {} to it", peer.Name)
		case s.QueueCapacity.valid || !s.QueueCapacity.given:
			peerSection := &r.doc.Ports.Items[p.Peer]
			l := linkOf(r.doc, peerSection, peer.FlowControl.Speed)
			if len(r.doc.DPDK.Workers.Items) > 1 {
				l.Shared = s.Rate.V
			}
			t, ok := r.lossless(c, &l, peerSection.FlowControl.Limit.V)
			peer.FlowControl.Lossless[i] = link.Lossless{On: ok, Priority: uint8(c.Priority.V), Thresholds: t}
		}
	}
}

// lossless calculates the thresholds of one class, and checks that the data that can still arrive above XOff fits the queue.
func (r *portResolver) lossless(c *classSection, l *lossless.Link, limit time.Duration) (none lossless.Thresholds, ok bool) {
	p := r.p
	headroom := l.Headroom()
	p.Frames = max(p.Frames, 2*l.Frames())
	if p.Capacity == 0 || c.XOff.given && !c.XOff.valid || c.XOn.given && !c.XOn.valid {
		return none, false // the mistake is reported
	}
	at, gap := c.XOff.place, uint64(gapFrames*l.Frame)
	xoff := c.XOff.V
	if !c.XOff.given {
		at = c.Lossless.place
		xoff = p.Capacity - min(headroom, p.Capacity)
	}
	if xoff+headroom > p.Capacity || xoff <= gap && !c.XOn.given {
		r.problem(at, "XOff %s and the headroom %s don't fit queue_capacity %s; the headroom is for data that still arrives: %s. Expected a queue_capacity of at least %s, or a shorter cable, reaction or response",
			units.Exact(xoff, units.Sizes), units.Exact(headroom, units.Sizes), units.Exact(p.Capacity, units.Sizes), explainHeadroom(l),
			units.Exact(max(xoff, gap+1)+headroom, units.Sizes))
		return none, false
	}
	xon := xoff - max(xoff/gapShare, gap)
	if c.XOn.given {
		xon = c.XOn.V
	}
	if xon >= xoff {
		r.problem(c.XOn.place, "%s is not below XOff, which is %s; expected less", units.Exact(xon, units.Sizes), units.Exact(xoff, units.Sizes))
		return none, false
	}
	r.warnLossless(c, l, limit, xoff, xon)
	frames := p.Frames - l.Frames()
	return lossless.Thresholds{
		XOff: xoff, XOn: xon, XOffFrames: frames, XOnFrames: frames - max(frames/gapShare, 1),
		Refresh: lossless.PauseTime(lossless.MaxQuanta, l.Speed) / 2, Limit: int64(limit),
	}, true
}

// warnLossless warns of valid thresholds with unexpected effects.
func (r *portResolver) warnLossless(c *classSection, l *lossless.Link, limit time.Duration, xoff, xon uint64) {
	s, p := r.s, r.p
	at := c.Lossless.place
	if xoff <= p.Policy.KMax {
		r.warn(at, "XOff, %s, is not above K_max, %s: the fabric is stopped before its senders are notified; raise queue_capacity",
			units.Exact(xoff, units.Sizes), units.Exact(p.Policy.KMax, units.Sizes))
	}
	const bitsPerByte = 8
	drain := time.Duration(float64(xoff-xon) * bitsPerByte / float64(s.Rate.V) * float64(time.Second))
	if drain >= limit {
		r.warn(at, "the queue takes %s from XOff to XOn at %s, longer than flow_control.xoff_limit of the peer, %s: frames will be lost; raise xoff_limit or xon",
			drain.Round(time.Microsecond), units.Exact(s.Rate.V, units.Rates), limit)
	}
	if half := time.Duration(lossless.PauseTime(lossless.MaxQuanta, l.Speed) / 2); time.Duration(l.Reaction) > half {
		r.warn(at, "a pause lasts %s at %s, and flow_control.reaction of the peer is %s: it may end before it is renewed; expected a reaction of at most %s",
			2*half, units.Exact(l.Speed, units.Rates), time.Duration(l.Reaction), half)
	}
}

// explainHeadroom gives the formula of a headroom.
func explainHeadroom(l *lossless.Link) string {
	return fmt.Sprintf("(2 x %d m x 5 ns + response %s + reaction %s) x %s / 8, 3 frames of %d bytes and a PFC frame",
		l.Cable, time.Duration(l.Response), time.Duration(l.Reaction), units.Exact(l.Speed, units.Rates), l.Frame)
}
