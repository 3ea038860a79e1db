package sim

import (
	"fmt"
	"slices"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/virtual"
)

// Change gives a link another rate from a time on, as when a member of a LAG fails or returns.
type Change struct {
	At   int64 // ns since the simulation began; not before that of the change before it
	Link int
	Rate uint64 // bit/s; at most that with which the link begins
	// Policies are what gateways have from then on, as after a reload, by node. Their map of QP pairs stays.
	Policies map[int]*dataplane.Policy
}

func (n *Network) validateChanges() error {
	for i, c := range n.Changes {
		switch {
		case c.Link < 0 || c.Link >= len(n.Links):
			return fmt.Errorf("change %d is of link %d, expected one of the %d links", i, c.Link, len(n.Links))
		case c.Rate < minRate || c.Rate > n.Links[c.Link].Rate:
			return fmt.Errorf("change %d gives link %d %d bit/s, expected %d to %d", i, c.Link, c.Rate, minRate, n.Links[c.Link].Rate)
		case c.At < 1 || i > 0 && c.At < n.Changes[i-1].At:
			return fmt.Errorf("change %d is at %d ns, expected at least 1, and not before the one before it", i, c.At)
		}
	}
	return nil
}

// scheduleChange schedules the next change.
func (s *Sim) scheduleChange() {
	at := virtual.Never
	if s.changed < len(s.network.Changes) {
		at = epoch + s.network.Changes[s.changed].At
	}
	s.agenda.Set(s.changer(), at)
}

// change makes the next change.
func (s *Sim) change() error {
	c := &s.network.Changes[s.changed]
	s.changed++
	s.scheduleChange()
	for _, n := range []int{2 * c.Link, 2*c.Link + 1} { // the ports at its ends
		p := &s.ports[n]
		p.rate, p.perByte = c.Rate, nsPerByte(c.Rate)
	}
	for _, g := range s.gateways {
		next := c.Policies[g.node]
		if next == nil {
			continue
		}
		p := *next
		p.QPMap = g.plane.Policy().QPMap
		if err := g.plane.SetPolicy(&p); err != nil {
			return fmt.Errorf("gateway %s: %w", s.name(g.node), err)
		}
	}
	return nil
}

// lasts is how long a port is busy from a time on with what takes it `work` at its first rate; all in ns.
func (n *Network) lasts(port int, from, work float64) float64 {
	if !slices.ContainsFunc(n.Changes, func(c Change) bool { return c.Link == port/2 }) {
		return work
	}
	at, speed := from, 1.0
	for _, c := range n.Changes {
		if c.Link != port/2 {
			continue
		}
		if then := float64(c.At); then > at {
			if done := (then - at) * speed; done < work {
				at, work = then, work-done
			} else {
				break
			}
		}
		speed = float64(c.Rate) / float64(n.Links[c.Link].Rate)
	}
	return at - from + work/speed
}
