package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/cnpgate/cnpgate/cnpdec"
	"github.com/cnpgate/cnpgate/control/decode"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/units"
	"github.com/cnpgate/cnpgate/telemetry"
)

// verdict is one check's outcome.
type verdict struct {
	ok        bool
	what, got string
}

// check is a check to be made on each of several runs.
type check struct {
	what string
	ask  func(r *run) (ok bool, got string)
}

// judge compares the captures with the gateway's reports, and with what the demo is to prove.
func judge(runs []*run, l load) (v []verdict) {
	without, with := runs[:1], runs[1:]
	for _, group := range []struct {
		runs   []*run
		checks []check
	}{{runs, forwarding()}, {without, congested(l)}, {with, notified()}, {with, helped(without[0], l)}} {
		for _, c := range group.checks {
			v = append(v, c.of(group.runs))
		}
	}
	return v
}

// of makes the check on each run. All must pass.
func (c check) of(runs []*run) verdict {
	v, all := verdict{ok: true, what: c.what}, make([]string, len(runs))
	for i, r := range runs {
		ok, got := c.ask(r)
		v.ok = v.ok && ok
		all[i] = got
	}
	v.got = strings.Join(all, "; ")
	return v
}

// forwarding checks that the gateway forwards like a wire, except for its queue.
func forwarding() []check {
	return []check{
		{"every frame sent was received", func(r *run) (bool, string) {
			sent, received := len(r.data.frames)+len(r.answers.frames), int(r.gateway.Counters.Sum(telemetry.ReceivedPackets))
			return received == sent, fmt.Sprintf("%d of %d", received, sent)
		}},
		{"received = forwarded + dropped + consumed + still queued", func(r *run) (bool, string) {
			sum := r.gateway.Counters.Sum
			return r.gateway.Counters.Unaccounted() == 0, fmt.Sprintf("%d = %d + %d + %d + %d", sum(telemetry.ReceivedPackets),
				sum(telemetry.ForwardedPackets), sum(telemetry.DroppedPackets), sum(telemetry.ConsumedPackets), sum(telemetry.QueuedPackets))
		}},
		{"every frame the gateway reports as forwarded arrived", func(r *run) (bool, string) {
			arrived, forwarded := r.data.arrived+r.answers.arrived, int(r.gateway.Counters.Sum(telemetry.ForwardedPackets))
			return arrived == forwarded, fmt.Sprintf("%d of %d", arrived, forwarded)
		}},
		{"forwarded as sent, in order, but for CE; every ICRC right", func(r *run) (bool, string) {
			differ, wrong := r.data.strangers+r.answers.strangers, r.data.wrongICRC+r.answers.wrongICRC
			return differ+wrong == 0, fmt.Sprintf("%d differ, %d wrong", differ, wrong)
		}},
		{"CE on ECN-capable packets only, as many as the gateway reports", func(r *run) (bool, string) {
			marked, reported := r.data.ceMarked+r.answers.ceMarked, int(r.gateway.Counters.Sum(telemetry.ECNMarkedPackets))
			return marked == reported && marked > 0 && r.data.ceOnNotECT+r.answers.ceOnNotECT == 0, fmt.Sprintf("%d of %d", marked, reported)
		}},
	}
}

// congested checks that the queue overflows in the run without notifications, and that the port keeps its rate.
func congested(l load) []check {
	const tolerance = 1 // percent
	_, end := l.overload()
	return []check{
		{"without notifications the queue fills up, never beyond its capacity, and frames are lost", func(r *run) (bool, string) {
			full := r.wan.WatermarkBytes > capacity*9/10 && r.wan.WatermarkBytes <= capacity
			return full && r.dropped() > 0, fmt.Sprintf("peak %s of %s, %d lost", kilo(r.wan.WatermarkBytes), kilo(uint64(capacity)), r.dropped())
		}},
		{fmt.Sprintf("the WAN port then keeps to its rate within %d%%", tolerance), func(r *run) (bool, string) {
			const percent = 100
			rate := r.data.usualRate(l.settled(), end)
			return math.Abs(rate/wanRate-1)*percent <= tolerance, fmt.Sprintf("%s of %s", units.Rate(rate), units.Rate(float64(wanRate)))
		}},
	}
}

// notified checks the notifications.
func notified() []check {
	return []check{
		{"notifications arrived at the sender, as many as the gateway reports", func(r *run) (bool, string) {
			reported := int(r.fabric.Counters[telemetry.NotificationsSent.Name].By[r.name])
			return len(r.notifications) == reported && reported > 0, fmt.Sprintf("%d of %d", len(r.notifications), reported)
		}},
		{"each has a right ICRC and fields, and names a QP that the sender owns; none went to anyone else", func(r *run) (bool, string) {
			refused, astray := 0, r.leaked
			for i := range r.notifications {
				switch n := &r.notifications[i]; {
				case n.reason != cnpdec.Accepted || n.said.Kind.String() != r.name:
					refused++
				case !n.addressed():
					astray++
				}
			}
			return refused+astray == 0, fmt.Sprintf("%d refused, %d astray", refused, astray)
		}},
		{"the sender obeys every one", func(r *run) (bool, string) {
			obeyed, refused := total(r.endpoint.Notifications.Accepted), total(r.endpoint.Notifications.Refused)
			why := ""
			for _, reason := range slices.Sorted(maps.Keys(r.endpoint.Notifications.Refused)) {
				why += " " + reason
			}
			return int(obeyed) == len(r.notifications) && refused == 0, fmt.Sprintf("%d obeyed, %d refused%s", obeyed, refused, why)
		}},
	}
}

// helped compares the runs with notifications to the run without.
func helped(without *run, l load) []check {
	const least, shorter, part, percent = 10, 5, 0.9, 100
	begin, end := l.overload()
	settled := l.settled()
	_, before := without.data.portRate(settled, end)
	return []check{
		{fmt.Sprintf("helped: at most a tenth of the %d frames is lost", without.dropped()), func(r *run) (bool, string) {
			return r.dropped()*least <= without.dropped(), fmt.Sprint(r.dropped())
		}},
		{fmt.Sprintf("helped: none is lost once the sender has slowed down, %d ms after the overload began", (settled - begin).Milliseconds()),
			func(r *run) (bool, string) {
				n := r.data.lost(settled, math.MaxInt64)
				return n == 0, fmt.Sprint(n)
			}},
		{fmt.Sprintf("helped: the peak of the queue is at most a fifth of %s", kilo(without.wan.WatermarkBytes)), func(r *run) (bool, string) {
			return r.wan.WatermarkBytes*shorter <= without.wan.WatermarkBytes, kilo(r.wan.WatermarkBytes)
		}},
		{fmt.Sprintf("helped: the goodput while more is offered is at least %g%% of the WAN port's rate, in place of %s", part*percent, units.Rate(before)),
			func(r *run) (bool, string) {
				_, goodput := r.data.portRate(settled, end)
				return goodput >= part*wanRate, units.Rate(goodput)
			}},
	}
}

func total(counts map[string]uint64) (sum uint64) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

func kilo(bytes uint64) string { return fmt.Sprintf("%d KB", bytes/1000) }

// notification is one frame that the gateway sent to the sender's side.
type notification struct {
	captured
	parsed packet.Parsed
	said   cnpdec.Notification
	reason cnpdec.Reason // Accepted, or why the sender refuses it
}

// readNotification decodes a frame as the sender does: the sender trusts the gateway, and knows its own QPs and their peers.
func readNotification(f captured) notification {
	owns := func(qp, first uint32) bool { return qp-first < qps }
	r := &cnpdec.Receiver{
		Code: packet.DefaultCodePoints, Extension: packet.LongHaulCNP,
		Trusted:   func(_ packet.Notification, src packet.Addr) bool { return src == gateway6 },
		KnownQP:   func(qp uint32) bool { return owns(qp, senderFirstQP) },
		KnownFlow: func(dst packet.Addr, qp uint32) bool { return dst == receiver && owns(qp, receiverFirstQP) },
	}
	n := notification{captured: f, parsed: f.parse()}
	n.reason = r.Decode(n.data, &n.parsed, &n.said)
	return n
}

// addressed reports whether the notification is for the sender.
func (n *notification) addressed() bool {
	return n.parsed.Dst == sender && [6]byte(n.data) == senderMAC
}

// showNotifications prints the number of notifications in each run, and the first one decoded.
func showNotifications(w io.Writer, runs []*run) {
	code := packet.DefaultCodePoints
	for _, r := range runs {
		fmt.Fprintf(w, "  %s: %d", r.name, len(r.notifications))
		if len(r.notifications) == 0 {
			fmt.Fprintln(w)
			continue
		}
		n := &r.notifications[0]
		fmt.Fprintf(w, ". The first, %.1f ms after the sender's first frame:\n", float64(n.at-r.start)*1e-6)
		if n.reason != cnpdec.Accepted {
			fmt.Fprintf(w, "    refused: %s\n", n.reason.Explain())
			continue
		}
		decode.WriteText(w, decode.Describe(n.data, &n.parsed, &n.said, &code))
	}
}
