package scenario

import (
	"cmp"
	"slices"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/sim"
)

// varying is a link whose rate changes.
type varying struct {
	link    int
	changes []changeSection
}

// varies notes that a link is that of a span, whose rate may change.
func (s *topology) varies(span *spanSection, link int) {
	for i := range span.Changes {
		if c := &span.Changes[i]; c.Rate > span.Rate {
			s.doc.Problem(&c.Rate, "%d bit/s; expected at most the span's rate, %d", c.Rate, span.Rate)
		}
	}
	if len(span.Changes) > 0 {
		s.varying = append(s.varying, varying{link, span.Changes})
	}
}

// addChanges makes the changes of the links' rates, with the policies that the gateways beside them have after a reload with the new rate.
func (s *Scenario) addChanges(c *sim.Config, r Response) error {
	for _, v := range s.varying {
		for i := range v.changes {
			c.Network.Changes = append(c.Network.Changes, sim.Change{At: int64(v.changes[i].At), Link: v.link, Rate: v.changes[i].Rate})
		}
	}
	slices.SortStableFunc(c.Network.Changes, func(a, b sim.Change) int { return cmp.Compare(a.At, b.At) })
	rates := make([]uint64, len(s.network.Links))
	for i := range rates {
		rates[i] = s.network.Links[i].Rate
	}
	for i := range c.Network.Changes {
		change := &c.Network.Changes[i]
		rates[change.Link] = change.Rate
		change.Policies = map[int]*dataplane.Policy{}
		for _, p := range s.places {
			if p.wan != change.Link && p.fabric != change.Link {
				continue
			}
			p.rate, p.fabricRate = rates[p.wan], rates[p.fabric]
			g, err := s.gateway(&p, r)
			if err != nil {
				return err
			}
			change.Policies[p.node] = g.Dataplane.Policy
		}
	}
	return nil
}
