package propose

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cnpgate/cnpgate/internal/netif"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/units"
)

// said are the lines for the operator: what was seen, and why the proposal is as it is.
func (p *Proposal) said() (lines []string) {
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	say("fabric: %s", describe(&p.Fabric))
	say("wan: %s", describe(&p.WAN))
	p.saySides(say)
	p.sayFlows(say)
	p.sayChoices(say)
	for _, f := range []*netif.Facts{&p.Fabric, &p.WAN} {
		p.warnOf(say, f)
	}
	return lines
}

func (p *Proposal) saySides(say printer) {
	say("listened for %v", p.listened.Round(100*time.Millisecond))
	for _, s := range []struct {
		name string
		*side
	}{{"fabric", p.fabric}, {"wan", p.wan}} {
		say("%s: %d frames, %d of RoCEv2 from %d hosts, %d CNPs; DSCPs %s; VLAN priorities %s; VLANs %s", s.name, s.frames, s.rocev2, len(s.hosts), s.cnps,
			orNone(joined(seen(s.dscps[:]))), orNone(joined(seen(s.priorities[:]))), orNone(s.tags()))
		if s.tunneled > 0 {
			say("%s: %d of the RoCEv2 packets are in tunnels; the hosts are those inside", s.name, s.tunneled)
		}
		if s.moreHosts {
			say("warning: %s: there are more than %d hosts; the further ones were not noted", s.name, maxHosts)
		}
		if s.linkControl > 0 {
			say("warning: %s: %d PAUSE or PFC frames were seen; the proposal has no lossless class (docs/configuration.md, flow_control)", s.name, s.linkControl)
		}
	}
	if p.lost > 0 {
		say("warning: %d frames arrived faster than they could be read, and were not seen", p.lost)
	}
}

// tags lists the VLANs of a side.
func (s *side) tags() string {
	var all []string
	for v := range s.vlans {
		switch {
		case v.inner != 0:
			all = append(all, fmt.Sprintf("%d/%d", v.outer.VID(), v.inner.VID()))
		case v.outer != 0:
			all = append(all, fmt.Sprint(v.outer.VID()))
		}
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ", ")
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

func (p *Proposal) sayFlows(say printer) {
	if p.result == nil {
		return
	}
	evidence := map[string]int{}
	confirmed := 0
	for i := range p.result.Flows {
		if f := &p.result.Flows[i]; f.SourceQP != nil && f.DestinationQP != packet.GSIQP {
			confirmed++
			if f.QPEvidence != nil {
				evidence[*f.QPEvidence]++
			}
		}
	}
	say("flows: %d; the source QP of %d is known%s", len(p.result.Flows), confirmed, by(evidence))
	if p.Tap {
		return // mirror ports measure no round-trip time
	}
	if rtt := p.rtt(); rtt > 0 {
		say("round-trip time over the WAN: %v", rtt)
	} else {
		say("round-trip time: not seen, as that takes the ACKs of at least three receivers; the running gateway goes on measuring (rtt_sources)")
	}
}

func by(evidence map[string]int) string {
	var all []string
	for _, e := range slices.Sorted(maps.Keys(evidence)) {
		all = append(all, fmt.Sprintf("%d by %s", evidence[e], e))
	}
	if len(all) == 0 {
		return ""
	}
	return ": " + strings.Join(all, ", ")
}

func (p *Proposal) sayChoices(say printer) {
	say("chosen: observe mode, so that nothing is sent or marked; standard CNPs, as NICs obey them; af_packet, as it needs no driver; core %d", p.Core)
	if !p.Tap {
		say("last resort, if CNPs come too late or senders obey none: marks, then loss; a lossless class stops the fabric by PFC instead (docs/lossless.md), pacing delays senders' frames")
	}
	if len(p.fabric.hosts) == 0 {
		say("warning: no RoCEv2 came from the fabric, so endpoints is empty and nothing is notified: listen again while hosts send, or add their prefixes")
	}
	if p.fabric.data > 0 && p.fabric.notECT*2 > p.fabric.data {
		say("warning: %d of %d data packets from the fabric are not ECN-capable: congestion control (DCQCN) may be off in these hosts, which then ignore CNPs",
			p.fabric.notECT, p.fabric.data)
	}
	both := 0
	for host := range p.fabric.hosts {
		if p.wan.hosts[host] > 0 {
			both++
		}
	}
	if both > 0 {
		say("warning: %d hosts send from both sides: check that --fabric and --wan are not on the same network", both)
	}
	if p.Rate == 0 && p.WAN.Rate == 0 {
		say("warning: interface %s doesn't tell its rate: %s is a guess; give the line's rate with --rate", p.WAN.Name, units.Exact(unknownRate, units.Rates))
	}
}

// warnOf warns of what keeps a gateway from forwarding well by an interface.
func (p *Proposal) warnOf(say printer, f *netif.Facts) {
	for _, text := range f.Concerns(p.Tap) {
		say("warning: %s", text)
	}
	if longest := int(max(p.fabric.longest, p.wan.longest)); longest > f.MTU {
		say("warning: RoCEv2 packets have up to %d bytes, but %s has MTU %d: `ip link set %s mtu %d`", longest, f.Name, f.MTU, f.Name, longest)
	}
	if f.Rate > hugeNeeded {
		say("warning: %s has %s, more than af_packet can forward; the file says how to use its PCI device instead", f.Name, units.Exact(f.Rate, units.Rates))
	}
}
