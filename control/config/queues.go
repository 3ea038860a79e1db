package config

import (
	"fmt"
	"reflect"
	"strconv"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/units"
)

const (
	maxCapacity = 4095 << 20 // bytes: a flow's share of a queue is counted in 32 bits
	maxKMax     = 4000 << 20 // bytes: so that a capacity above it is possible
)

// profileOf finds a port's profile: the one it names, else the one called default, else the defaults of the schema. If the named one
// doesn't exist, it reports that and returns nil.
func (r *portResolver) profileOf() *profileSection {
	s := r.s
	wanted := "default"
	if s.Profile.given {
		if !s.Profile.valid {
			return nil
		}
		wanted = s.Profile.V
	}
	for i, name := range r.doc.Profiles.Names {
		if name == wanted {
			return &r.doc.Profiles.Entries[i]
		}
	}
	if r.doc.Profiles.given && !r.doc.Profiles.valid {
		return nil
	}
	if wanted != "default" {
		r.unknownName(s.Profile.place, wanted, "profile", r.doc.Profiles.Names)
		return nil
	}
	builtin := &profileSection{}
	(&decoder{r.report}).section(reflect.ValueOf(builtin).Elem(), nil, r.doc.child("profiles").child(wanted))
	return builtin
}

// resolveQueue calculates a port's thresholds (draft-tian 5.3.2) and the capacity of its queues.
func (r *portResolver) resolveQueue() {
	p, s, profile := r.p, r.s, r.profile
	if r.law {
		r.resolveLaw()
		return
	}
	if !profile.KBase.valid || !profile.Alpha.valid || !profile.KMinPercent.valid || !s.Rate.valid || !s.RTT.valid {
		return
	}
	if profile.KBase.V < uint64(s.MTU.V) && s.MTU.valid {
		r.warn(profile.KBase.place, "%s is less than one frame of port %s, whose mtu is %d (draft-tian 5.3.2: K_base should hold one)",
			units.Exact(profile.KBase.V, units.Sizes), s.Name.V, s.MTU.V)
	}
	k := congestion.Adaptive(profile.KBase.V, float64(profile.Alpha.V)/million, s.Rate.V, int64(s.RTT.V), int(profile.KMinPercent.V))
	if k.KMax > maxKMax {
		r.problem(s.RTT.place, "K_max would be %s, from %s; expected at most %s: lower rtt, rate or alpha",
			units.Exact(k.KMax, units.Sizes), r.explain(), units.Exact(maxKMax, units.Sizes))
		return
	}
	p.Policy.Thresholds = k
	p.Capacity = r.resolveCapacity()
	p.Policy.Sizing.Alpha, p.Policy.Sizing.Capacity = float64(profile.Alpha.V)/million, p.Capacity
}

// resolveCapacity is the capacity of a port's queues: the given one, which must be above K_max, or twice K_max. If RTT_est is measured and
// its bound is given, that K_max is the one at the bound.
func (r *portResolver) resolveCapacity() uint64 {
	p, s, profile := r.p, r.s, r.profile
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
			from = r.explain()
		}
		r.problem(s.QueueCapacity.place, "%s is not above K_max, which is %s, from %s (%s); expected more, or leave it out for 2 x K_max",
			units.Exact(capacity, units.Sizes), units.Exact(p.Policy.KMax, units.Sizes), from, r.source())
	case capacity <= largest:
		r.warn(s.QueueCapacity.place, "%s is not above the K_max of an RTT_est of %s, which is %s; K_max is limited to less than the capacity",
			units.Exact(capacity, units.Sizes), s.RTTBounds.Max.V, units.Exact(largest, units.Sizes))
	}
	return capacity
}

// explain gives the formula of the bandwidth-delay product.
func (r *portResolver) explain() string {
	s, profile := r.s, r.profile
	return fmt.Sprintf("alpha %s x rate %s x rtt %s / 8", formatMillionths(profile.Alpha.V), units.Exact(s.Rate.V, units.Rates), s.RTT.V)
}

// source describes where a profile is defined.
func (r *portResolver) source() string {
	profile := r.profile
	if !profile.given {
		return "the built-in defaults"
	}
	return profile.path + " at " + r.position(profile.place).String()
}

func formatMillionths(v uint64) string { return strconv.FormatFloat(float64(v)/million, 'f', -1, 64) }

// Defaults of a queue under the control law.
const (
	lawQueueParts  = 200         // of a second: 5 ms of the line rate
	lawMinCapacity = 32_000_000  // bytes
	lawMaxCapacity = 256_000_000 // bytes
	fabricLeast    = 64_000      // bytes
	fabricParts    = 25_000      // of a second: a fabric port marks from 40 us of its rate
)

// resolveLaw sets a port's queue and response for the control law.
func (r *portResolver) resolveLaw() {
	p, s, profile := r.p, r.s, r.profile
	p.Policy.Sizing = congestion.Sizing{}
	if !s.Rate.valid {
		return
	}
	p.Capacity = min(max(s.Rate.V/8/lawQueueParts, lawMinCapacity), lawMaxCapacity)
	if s.QueueCapacity.given && s.QueueCapacity.valid {
		p.Capacity = s.QueueCapacity.V
	}
	law := congestion.NewLaw(s.Rate.V, p.Capacity, int64(profile.TargetDelay.V))
	p.Policy.KMin, p.Policy.KMax = uint64(law.Reference), 2*uint64(law.Reference)
	if p.Role == dataplane.Fabric {
		p.Policy.KMin = max(min(max(s.Rate.V/8/fabricParts, fabricLeast), p.Capacity/4), 1)
		p.Policy.KMax = 2 * p.Policy.KMin
	} else {
		p.Policy.Law = law
	}
	// The least time between two notifications that a proxy passes on about a flow. The node that asks for them spaces them by its own queue.
	p.Policy.PerFlow, p.Policy.PerFlowIsRTT = congestion.LawSpacingLeast, false
	if p.Policy.Pacing != nil && p.Role == dataplane.WAN && !s.Pacing.Interval.given {
		p.Policy.Pacing.Interval = congestion.LawSpacing // what the law asks for is about the flow as it will be after what it has asked before
	}
}
