package config

import (
	"fmt"
	"time"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/lossless"
)

const (
	pollReaction    = 100 * time.Microsecond
	backoffReaction = time.Millisecond // a worker that sleeps may sleep that long
	gapShare        = 8                // XOn is an eighth of XOff below it
	gapFrames       = 2                // and at least two frames of greatest length
)

// resolveFlowControl makes the settings of a port's flow control; nil if the section isn't given.
func resolveFlowControl(doc *document, s *portSection) *FlowControl {
	f := &s.FlowControl
	if !f.given {
		return nil
	}
	speed := s.Rate.V
	if f.Speed.given {
		speed = f.Speed.V
	}
	if speed == 0 {
		return nil // its mistake is reported
	}
	reaction, response := pollReaction, time.Duration(lossless.Response(speed))
	if Idle(doc.DPDK.Idle.V) == Backoff {
		reaction = backoffReaction
	}
	if f.Reaction.given {
		reaction = f.Reaction.V
	}
	if f.Response.given {
		response = f.Response.V
	}
	w := &f.Watchdog
	return &FlowControl{
		Link: lossless.Link{
			Speed: speed, Cable: int64(f.Cable.V), Frame: frameLength(int(s.MTU.V)), Response: int64(response), Reaction: int64(reaction),
		},
		Limit:    f.Limit.V,
		Watchdog: lossless.Watchdog{Action: lossless.Action(w.Action.V), Detection: int64(w.Detection.V), Restoration: int64(w.Restoration.V)},
	}
}

// frameLength is the length in bytes of the longest frame of an MTU, with two VLAN tags, without FCS.
func frameLength(mtu int) int { return mtu + packet.EthernetLen + packet.MaxTags*packet.VLANTagLen }

// resolvePriorities checks that no two classes of a port have one priority.
func (r *report) resolvePriorities(s *portSection, p *Port) {
	priorities := map[int64]place{}
	for i := range s.TrafficClasses.Items {
		c := &s.TrafficClasses.Items[i]
		p.Classes[i].Priority = -1
		if !c.Priority.given || !c.Priority.valid {
			continue
		}
		p.Classes[i].Priority = int(c.Priority.V)
		unique(r, priorities, c.Priority.V, c.Priority.place, "this priority")
		if !s.FlowControl.given && !c.Lossless.V {
			r.warn(c.Priority.place, "has no effect, as the port has no flow_control; add flow_control, or remove the priority")
		}
	}
}

// resolveLossless calculates the thresholds of a port's lossless classes. peer is the port at which their frames arrive.
func (r *report) resolveLossless(doc *document, s *portSection, p, peer *Port) {
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
		case p.Role != WAN:
			r.problem(c.Lossless.place, "only a class of a WAN port can be lossless: PFC is sent to the fabric")
		case !c.Priority.given:
			r.problem(c.Lossless.place, "a lossless class needs a priority, 0 to 7: the one that its frames have in the fabric's PFC")
		case peer.FlowControl == nil:
			r.problem(c.Lossless.place, "the peer %s has no flow_control, so no PFC can be sent; add flow_control: {} to it", peer.Name)
		case s.QueueCapacity.valid || !s.QueueCapacity.given:
			p.Classes[i].Lossless = r.lossless(doc, s, c, p, peer.FlowControl)
		}
	}
}

// lossless calculates the thresholds of one class, and checks that the data that can still arrive above XOff fits the queue.
func (r *report) lossless(doc *document, s *portSection, c *classSection, p *Port, f *FlowControl) *lossless.Thresholds {
	link := f.Link
	if len(doc.DPDK.Workers.Items) > 1 {
		link.Shared = s.Rate.V
	}
	headroom := link.Headroom()
	p.QueueFrames = max(p.QueueFrames, 2*link.Frames())
	if p.QueueCapacity == 0 || c.XOff.given && !c.XOff.valid || c.XOn.given && !c.XOn.valid {
		return nil // the mistake is reported
	}
	at, gap := c.XOff.place, uint64(gapFrames*link.Frame)
	xoff := c.XOff.V
	if !c.XOff.given {
		at = c.Lossless.place
		xoff = p.QueueCapacity - min(headroom, p.QueueCapacity)
	}
	if xoff+headroom > p.QueueCapacity || xoff <= gap && !c.XOn.given {
		r.problem(at, "XOff %s and the headroom %s don't fit queue_capacity %s; the headroom is for data that still arrives: %s. Expected a queue_capacity of at least %s, or a shorter cable, reaction or response",
			formatUnits(xoff, sizeUnits), formatUnits(headroom, sizeUnits), formatUnits(p.QueueCapacity, sizeUnits), explainHeadroom(&link),
			formatUnits(max(xoff, gap+1)+headroom, sizeUnits))
		return nil
	}
	xon := xoff - max(xoff/gapShare, gap)
	if c.XOn.given {
		xon = c.XOn.V
	}
	if xon >= xoff {
		r.problem(c.XOn.place, "%s is not below XOff, which is %s; expected less", formatUnits(xon, sizeUnits), formatUnits(xoff, sizeUnits))
		return nil
	}
	r.warnLossless(c, s, p, f, xoff, xon)
	frames := p.QueueFrames - link.Frames()
	return &lossless.Thresholds{
		XOff: xoff, XOn: xon, XOffFrames: frames, XOnFrames: frames - max(frames/gapShare, 1),
		Refresh: lossless.PauseTime(lossless.MaxQuanta, link.Speed) / 2, Limit: int64(f.Limit),
	}
}

// warnLossless warns of valid thresholds with unexpected effects.
func (r *report) warnLossless(c *classSection, s *portSection, p *Port, f *FlowControl, xoff, xon uint64) {
	at := c.Lossless.place
	if xoff <= p.KMax {
		r.warn(at, "XOff, %s, is not above K_max, %s: the fabric is stopped before its senders are notified; raise queue_capacity",
			formatUnits(xoff, sizeUnits), formatUnits(p.KMax, sizeUnits))
	}
	const bitsPerByte = 8
	drain := time.Duration(float64(xoff-xon) * bitsPerByte / float64(s.Rate.V) * float64(time.Second))
	if drain >= f.Limit {
		r.warn(at, "the queue takes %s from XOff to XOn at %s, longer than flow_control.xoff_limit of the peer, %s: frames will be lost; raise xoff_limit or xon",
			drain.Round(time.Microsecond), formatUnits(s.Rate.V, rateUnits), f.Limit)
	}
	if half := time.Duration(lossless.PauseTime(lossless.MaxQuanta, f.Link.Speed) / 2); time.Duration(f.Link.Reaction) > half {
		r.warn(at, "a pause lasts %s at %s, and flow_control.reaction of the peer is %s: it may end before it is renewed; expected a reaction of at most %s",
			2*half, formatUnits(f.Link.Speed, rateUnits), time.Duration(f.Link.Reaction), half)
	}
}

// explainHeadroom gives the formula of a headroom.
func explainHeadroom(l *lossless.Link) string {
	return fmt.Sprintf("(2 x %d m x 5 ns + response %s + reaction %s) x %s / 8, 3 frames of %d bytes and a PFC frame",
		l.Cable, time.Duration(l.Response), time.Duration(l.Reaction), formatUnits(l.Speed, rateUnits), l.Frame)
}
