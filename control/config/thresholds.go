package config

import (
	"fmt"
	"reflect"
	"strconv"

	"github.com/cnpgate/cnpgate/congestion"
)

const (
	maxCapacity = 4095 << 20 // bytes: a flow's share of a queue is counted in 32 bits
	maxKMax     = 4000 << 20 // bytes: so that a capacity above it is possible
)

// profileOf finds a port's profile: the one it names, else the one called default, else the defaults of the schema. If the named one
// doesn't exist, it reports that and returns nil.
func (r *report) profileOf(doc *document, s *portSection) *profileSection {
	wanted := "default"
	if s.Profile.given {
		if !s.Profile.valid {
			return nil
		}
		wanted = s.Profile.V
	}
	for i, name := range doc.Profiles.Names {
		if name == wanted {
			return &doc.Profiles.Entries[i]
		}
	}
	if doc.Profiles.given && !doc.Profiles.valid {
		return nil
	}
	if wanted != "default" {
		r.unknownName(s.Profile.place, wanted, "profile", doc.Profiles.Names)
		return nil
	}
	builtin := &profileSection{}
	r.section(reflect.ValueOf(builtin).Elem(), nil, doc.child("profiles").child(wanted))
	return builtin
}

// resolveQueue calculates a port's thresholds (draft-tian 5.3.2) and the capacity of its queues.
func (r *report) resolveQueue(p *Port, s *portSection, profile *profileSection, n *notificationsSection) {
	if usesLaw(profile, n) {
		r.resolveLaw(p, s, profile)
		return
	}
	if !profile.KBase.valid || !profile.Alpha.valid || !profile.KMinPercent.valid || !s.Rate.valid || !s.RTT.valid {
		return
	}
	if profile.KBase.V < uint64(s.MTU.V) && s.MTU.valid {
		r.warn(profile.KBase.place, "%s is less than one frame of port %s, whose mtu is %d (draft-tian 5.3.2: K_base should hold one)",
			formatUnits(profile.KBase.V, sizeUnits), s.Name.V, s.MTU.V)
	}
	k := congestion.Adaptive(profile.KBase.V, float64(profile.Alpha.V)/million, s.Rate.V, int64(s.RTT.V), int(profile.KMinPercent.V))
	if k.KMax > maxKMax {
		r.problem(s.RTT.place, "K_max would be %s, from %s; expected at most %s: lower rtt, rate or alpha",
			formatUnits(k.KMax, sizeUnits), r.explain(s, profile), formatUnits(maxKMax, sizeUnits))
		return
	}
	p.Policy.Thresholds = k
	p.Capacity = r.resolveCapacity(p, s, profile)
	p.Policy.Sizing.Alpha, p.Policy.Sizing.Capacity = float64(profile.Alpha.V)/million, p.Capacity
}

// resolveCapacity is the capacity of a port's queues: the given one, which must be above K_max, or twice K_max. If RTT_est is measured and
// its bound is given, that K_max is the one at the bound.
func (r *report) resolveCapacity(p *Port, s *portSection, profile *profileSection) uint64 {
	largest := p.Policy.KMax
	if p.measuresRTT() && s.RTTBounds.Max.given && s.RTTBounds.Max.valid {
		longest := max(int64(s.RTTBounds.Max.V), int64(s.RTT.V))
		largest = congestion.Adaptive(profile.KBase.V, float64(profile.Alpha.V)/million, s.Rate.V, longest, int(profile.KMinPercent.V)).KMax
	}
	if !s.QueueCapacity.given {
		return min(max(2*min(largest, maxCapacity), minCapacity), maxCapacity)
	}
	capacity := s.QueueCapacity.V
	switch {
	case !s.QueueCapacity.valid:
	case capacity <= p.Policy.KMax:
		from := "k_base"
		if p.Policy.KMax > profile.KBase.V {
			from = r.explain(s, profile)
		}
		r.problem(s.QueueCapacity.place, "%s is not above K_max, which is %s, from %s (%s); expected more, or leave it out for 2 x K_max",
			formatUnits(capacity, sizeUnits), formatUnits(p.Policy.KMax, sizeUnits), from, r.source(profile))
	case capacity <= largest:
		r.warn(s.QueueCapacity.place, "%s is not above the K_max of an RTT_est of %s, which is %s; K_max is limited to less than the capacity",
			formatUnits(capacity, sizeUnits), s.RTTBounds.Max.V, formatUnits(largest, sizeUnits))
	}
	return capacity
}

// explain gives the formula of the bandwidth-delay product.
func (r *report) explain(s *portSection, profile *profileSection) string {
	return fmt.Sprintf("alpha %s x rate %s x rtt %s / 8", formatMillionths(profile.Alpha.V), formatUnits(s.Rate.V, rateUnits), s.RTT.V)
}

// source describes where a profile is defined.
func (r *report) source(profile *profileSection) string {
	if !profile.given {
		return "the built-in defaults"
	}
	return profile.path + " at " + r.position(profile.place).String()
}

func formatMillionths(v uint64) string { return strconv.FormatFloat(float64(v)/million, 'f', -1, 64) }
