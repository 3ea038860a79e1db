package health

import (
	"fmt"
	"slices"
	"strings"
)

// Paused is what one priority was paused for; priority 8 is a PAUSE of all.
type Paused struct {
	Priority int
	Frames   uint64 // that pause
	Time     int64  // ns
	Longest  int64  // ns without a break
	Unused   bool   // no RDMA packet has this priority: all have a VLAN tag with another one
}

func (p *Paused) String() string {
	if p.Priority > 7 {
		return "all priorities"
	}
	if p.Unused {
		return fmt.Sprintf("priority %d, which no RDMA packet here has,", p.Priority)
	}
	return fmt.Sprintf("priority %d", p.Priority)
}

const (
	storm       = 10 * ms // a pause of this length: senders give up, and what holds it spreads through the network
	manyPauses  = ms      // paused for less in all is no fault
	shareOfTime = 100     // or for less than one part in so many
)

// judge is the verdict about pauses in a time, ns, or a note if they are too short to matter.
func (p *Pauses) judge(duration int64) (Verdict, Note) {
	v := Verdict{
		Name: PFCPauses, Subject: p.From, Weight: p.Frames,
		Evidence: fmt.Sprintf("%d frames that pause (PFC or PAUSE) came from %s, in %s", p.Frames, p.From, Duration(max(p.Last-p.First, 0))),
		Advice: fmt.Sprintf("what is behind %s can't receive as fast as it is sent to: a slow host (PCIe, memory, receive buffers) or an incast; slow the senders down earlier (ECN, CNPs), "+
			"and look for the port from which the pauses spread", p.From),
	}
	if len(p.Priorities) == 0 {
		return v, Note{}
	}
	duration = max(duration, p.Last-p.First)
	var parts []string
	matters := false
	for i := range p.Priorities {
		o := &p.Priorities[i]
		parts = append(parts, fmt.Sprintf("%v for %v of %v (%s), at most %v without a break", o, Duration(o.Time), Duration(duration),
			percent(uint64(min(o.Time, duration)), uint64(duration)), Duration(o.Longest)))
		if o.Longest >= storm {
			v.Name = PFCStorm
			v.Advice = fmt.Sprintf("%s holds its link: find and reset it, or let the switch's PFC watchdog drop its queue; check its driver, PCIe and receive buffers", p.From)
		}
		matters = matters || o.Time >= manyPauses && o.Time*shareOfTime >= duration
	}
	v.Evidence = fmt.Sprintf("it paused %s, with %d frames (times as at 100Gbps)", strings.Join(parts, "; "), p.Frames)
	if v.Name == PFCStorm || matters {
		return v, Note{}
	}
	return Verdict{}, Note{NotePauses, p.From, v.Evidence + ": too short to matter"}
}

// Say adds a verdict that doesn't follow from the connections.
func (b *Builder) Say(v Verdict) { b.verdicts = append(b.verdicts, v) }

// Note adds a note that doesn't follow from the connections.
func (b *Builder) Note(n Note) { b.notes = append(b.notes, n) }

// withoutExplained leaves out losses that are packets with a wrong ICRC: those were not lost, but dropped by their receiver or left out here; and those of which
// ICMP says who discarded them, and why.
func (b *Builder) withoutExplained() []Verdict {
	corrupted, discarded := map[string]uint64{}, map[string]uint64{}
	for _, v := range b.verdicts {
		switch v.Name {
		case WrongICRC:
			corrupted[v.Subject] = v.Weight
		case Unreachable:
			discarded[v.Subject] += v.Weight
		}
	}
	return slices.DeleteFunc(b.verdicts, func(v Verdict) bool {
		subject, _, _ := strings.Cut(v.Subject, ", ")
		switch v.Name {
		case LossDownstream, Unexplained:
			return max(corrupted[subject], discarded[subject]) >= v.Weight
		case LossUpstream, NoAnswer:
			return corrupted[subject] >= v.Weight
		}
		return false
	})
}
