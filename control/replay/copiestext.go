package replay

import (
	"cmp"
	"fmt"

	"github.com/cnpgate/cnpgate/health"
)

// report says what was left out.
func (c *copies) report(b *health.Builder, places []string) {
	if c == nil || !c.any {
		return
	}
	for hosts, o := range c.pairs {
		d := &o.decided
		subject := fmt.Sprintf("%v <-> %v", hosts[0].Netip(), hosts[1].Netip())
		lag := (d.lag[0] + d.lag[1]) / 2
		switch {
		case d.count == 0:
		case d.drops != nil:
			text := fmt.Sprintf("%d packets are copies of others (%v); those are judged (%v)", d.count, d.of.name(places), d.kept.name(places))
			name := health.NoteCopies
			if max(d.apart, -d.apart) >= clocksDiffer {
				name = health.NoteClocks
				text += fmt.Sprintf("; the clock where the copies were captured is %v %s", health.Duration(max(d.apart, -d.apart)), map[bool]string{true: "ahead", false: "behind"}[d.apart > 0])
			}
			b.Note(health.Note{Name: name, Subject: subject, Text: text})
		case d.inFile:
			b.Note(health.Note{Name: health.NoteCopies, Subject: subject, Text: fmt.Sprintf("%d frames are in the file twice, at the same times: files that overlap were merged; each counts once", d.count)})
		case lag > clocksDiffer:
			b.Note(health.Note{Name: health.NoteClocks, Subject: subject, Text: fmt.Sprintf("%d packets are copies of others, recorded %v before: captures of two places are merged, whose clocks differ by that; "+
				"the packets that come first are judged", d.count, health.Duration(lag))})
		default:
			if o.requests[1] > o.requests[0] {
				hosts[0], hosts[1] = hosts[1], hosts[0]
			}
			b.Say(health.Verdict{Name: health.Duplication, Subject: fmt.Sprintf("%v -> %v", hosts[0].Netip(), hosts[1].Netip()), Weight: d.count, Connections: 1,
				Evidence: fmt.Sprintf("%d packets (%.3g %%) came twice, %v apart, and were not sent again by the requester", d.count, 100*float64(d.count)/float64(d.all), health.Duration(lag)),
				Advice:   "the capture or mirror has each frame twice (of two hosts, merged, or in and out of a switch): capture at one place only"})
		}
	}
}

// name is such as "eth0" or "eth0, vxlan 7".
func (v view) name(places []string) string {
	network := cmp.Or(health.Network(v.scope), "no tag or tunnel")
	if len(places) == 1 {
		return network
	}
	return places[v.place] + ", " + network
}
