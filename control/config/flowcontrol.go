package config

import (
	"cmp"
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
	s, of := r.s, &r.s.FlowControl
	var f *link.FlowControl
	if speed := cmp.Or(of.Speed, s.Rate); r.Given(of) && speed > 0 { // else its mistake is reported
		f = &link.FlowControl{Speed: speed, Watchdog: lossless.Watchdog{
			Action: lossless.Action(of.Watchdog.Action), Detection: int64(of.Watchdog.Detection)}}
		for class := range f.Priority {
			f.Priority[class] = -1
		}
		r.p.FlowControl = f
	}
	for i := range s.TrafficClasses {
		switch c := &s.TrafficClasses[i]; {
		case !r.Given(&c.Priority) || !r.Valid(&c.Priority):
		case f != nil:
			f.Priority[i] = int8(c.Priority)
		case !c.Lossless:
			r.Warn(&c.Priority, "has no effect, as the port has no flow_control; add flow_control, or remove the priority")
		}
	}
}

// linkOf is the link of a port with flow control.
func (r *resolver) linkOf(s *portSection, speed uint64) lossless.Link {
	f := &s.FlowControl
	l := lossless.Link{Speed: speed, Cable: f.Cable, Frame: frameLength(int(s.MTU)), Response: lossless.Response(speed), Reaction: int64(cmp.Or(f.Reaction, pollReaction))}
	if r.Given(&f.Response) {
		l.Response = int64(f.Response)
	}
	if r.doc.DPDK.Backoff && f.Reaction == 0 {
		l.Reaction = int64(backoffReaction)
	}
	return l
}

// frameLength is the length in bytes of the longest frame of an MTU, with two VLAN tags, without FCS.
func frameLength(mtu int) int { return mtu + packet.EthernetLen + packet.MaxTags*packet.VLANTagLen }

// resolveLossless calculates the thresholds of a port's lossless classes. Their frames arrive at its peer.
func (r *portResolver) resolveLossless(ports []Port) {
	s, p := r.s, r.p
	peer := &ports[p.Peer]
	for i := range s.TrafficClasses {
		c := &s.TrafficClasses[i]
		switch {
		case !c.Lossless:
		case p.Role != dataplane.WAN:
			r.Problem(&c.Lossless, "only a class of a WAN port can be lossless: PFC is sent to the fabric")
		case !r.Given(&c.Priority):
			r.Problem(&c.Lossless, "a lossless class needs a priority, 0 to 7: the one that its frames have in the fabric's PFC")
		case peer.FlowControl == nil:
			r.Problem(&c.Lossless, "the peer %s has no flow_control, so no PFC can be sent; add flow_control: {} to it", peer.Name)
		case r.Valid(&s.QueueCapacity) || !r.Given(&s.QueueCapacity):
			peerSection := &r.doc.Ports[p.Peer]
			l := r.linkOf(peerSection, peer.FlowControl.Speed)
			if len(r.doc.DPDK.Workers) > 1 {
				l.Shared = s.Rate
			}
			t, ok := r.lossless(c, &l, peerSection.FlowControl.Limit)
			peer.FlowControl.Lossless[i] = link.Lossless{On: ok, Priority: uint8(c.Priority), Thresholds: t}
		}
	}
}

// lossless calculates the thresholds of one class, and checks that the data that can still arrive above XOff fits the queue.
func (r *portResolver) lossless(c *classSection, l *lossless.Link, limit time.Duration) (none lossless.Thresholds, ok bool) {
	p := r.p
	headroom := l.Headroom()
	p.Frames = max(p.Frames, 2*l.Frames())
	if p.Capacity == 0 {
		return none, false // the mistake is reported
	}
	xoff, gap := p.Capacity-min(headroom, p.Capacity), uint64(gapFrames*l.Frame)
	if xoff <= gap {
		r.Problem(&c.Lossless, "XOff %s and the headroom %s don't fit queue_capacity %s; the headroom is for data that still arrives: %s. Expected a queue_capacity of at least %s, or a shorter cable, reaction or response",
			units.Exact(xoff, units.Sizes), units.Exact(headroom, units.Sizes), units.Exact(p.Capacity, units.Sizes), explainHeadroom(l), units.Exact(gap+1+headroom, units.Sizes))
		return none, false
	}
	xon := xoff - max(xoff/gapShare, gap)
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
	at := &c.Lossless
	if xoff <= p.Policy.KMax {
		r.Warn(at, "XOff, %s, is not above K_max, %s: the fabric is stopped before its senders are notified; raise queue_capacity",
			units.Exact(xoff, units.Sizes), units.Exact(p.Policy.KMax, units.Sizes))
	}
	const bitsPerByte = 8
	drain := time.Duration(float64(xoff-xon) * bitsPerByte / float64(s.Rate) * float64(time.Second))
	if drain >= limit {
		r.Warn(at, "the queue takes %s from XOff to XOn at %s, longer than flow_control.xoff_limit of the peer, %s: frames will be lost; raise xoff_limit",
			drain.Round(time.Microsecond), units.Exact(s.Rate, units.Rates), limit)
	}
	if half := time.Duration(lossless.PauseTime(lossless.MaxQuanta, l.Speed) / 2); time.Duration(l.Reaction) > half {
		r.Warn(at, "a pause lasts %s at %s, and flow_control.reaction of the peer is %s: it may end before it is renewed; expected a reaction of at most %s",
			2*half, units.Exact(l.Speed, units.Rates), time.Duration(l.Reaction), half)
	}
}

// explainHeadroom gives the formula of a headroom.
func explainHeadroom(l *lossless.Link) string {
	return fmt.Sprintf("(2 x %d m x 5 ns + response %s + reaction %s) x %s / 8, 3 frames of %d bytes and a PFC frame",
		l.Cable, time.Duration(l.Response), time.Duration(l.Reaction), units.Exact(l.Speed, units.Rates), l.Frame)
}
