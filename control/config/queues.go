package config

import (
	"fmt"
	"strconv"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/units"
)

const (
	million     = 1_000_000
	maxCapacity = 4095 << 20 // bytes: a flow's share of a queue is counted in 32 bits
	maxKMax     = 4000 << 20 // bytes: so that a capacity above it is possible
)

// profileOf finds a port's profile: the one it names, else the one called default, else the defaults of the schema. If the named one
// doesn't exist, it reports that and returns nil.
func (r *portResolver) profileOf() *profileSection {
	s := r.s
	wanted := "default"
	if r.Given(&s.Profile) {
		if !r.Valid(&s.Profile) {
			return nil
		}
		wanted = s.Profile
	}
	for i, name := range r.doc.Profiles.Names {
		if name == wanted {
			return &r.doc.Profiles.Entries[i]
		}
	}
	if r.Given(&r.doc.Profiles) && !r.Valid(&r.doc.Profiles) {
		return nil
	}
	if wanted != "default" {
		r.UnknownName(&s.Profile, wanted, "profile", r.doc.Profiles.Names)
		return nil
	}
	builtin := &profileSection{}
	r.DecodeNode(builtin, nil, r.At(&r.doc.Profiles).Path+"."+wanted)
	return builtin
}

// resolveQueue calculates a port's thresholds (draft-tian 5.3.2) and the capacity of its queues.
func (r *portResolver) resolveQueue() {
	p, s, profile := r.p, r.s, r.profile
	if r.law {
		r.resolveLaw()
		return
	}
	if !r.Valid(&profile.KBase) || !r.Valid(&profile.Alpha) || !r.Valid(&profile.KMinPercent) || !r.Valid(&s.Rate) || !r.Valid(&s.RTT) {
		return
	}
	if profile.KBase < uint64(s.MTU) && r.Valid(&s.MTU) {
		r.Warn(&profile.KBase, "%s is less than one frame of port %s, whose mtu is %d (draft-tian 5.3.2: K_base should hold one)",
			units.Exact(profile.KBase, units.Sizes), s.Name, s.MTU)
	}
	k := congestion.Adaptive(profile.KBase, float64(profile.Alpha)/million, s.Rate, int64(s.RTT), int(profile.KMinPercent))
	if k.KMax > maxKMax {
		r.Problem(&s.RTT, "K_max would be %s, from %s; expected at most %s: lower rtt, rate or alpha",
			units.Exact(k.KMax, units.Sizes), r.explain(), units.Exact(maxKMax, units.Sizes))
		return
	}
	p.Policy.Thresholds = k
	p.Capacity = r.resolveCapacity()
	p.Policy.Sizing = congestion.Sizing{KBase: profile.KBase, Alpha: float64(profile.Alpha) / million, KMinPercent: int(profile.KMinPercent), Capacity: p.Capacity}
}

// resolveCapacity is the capacity of a port's queues: the given one, which must be above K_max, or twice K_max. If RTT_est is measured and
// its bound is given, that K_max is the one at the bound.
func (r *portResolver) resolveCapacity() uint64 {
	p, s, profile := r.p, r.s, r.profile
	largest := p.Policy.KMax
	if p.measuresRTT() && r.Given(&s.RTTBounds.Max) && r.Valid(&s.RTTBounds.Max) {
		longest := max(int64(s.RTTBounds.Max), int64(s.RTT))
		largest = congestion.Adaptive(profile.KBase, float64(profile.Alpha)/million, s.Rate, longest, int(profile.KMinPercent)).KMax
	}
	if !r.Given(&s.QueueCapacity) {
		return min(max(2*min(largest, maxCapacity), minCapacity), maxCapacity)
	}
	capacity := s.QueueCapacity
	switch {
	case !r.Valid(&s.QueueCapacity):
	case capacity <= p.Policy.KMax:
		from := "k_base"
		if p.Policy.KMax > profile.KBase {
			from = r.explain()
		}
		r.Problem(&s.QueueCapacity, "%s is not above K_max, which is %s, from %s (%s); expected more, or leave it out for 2 x K_max",
			units.Exact(capacity, units.Sizes), units.Exact(p.Policy.KMax, units.Sizes), from, r.source())
	case capacity <= largest:
		r.Warn(&s.QueueCapacity, "%s is not above the K_max of an RTT_est of %s, which is %s; K_max is limited to less than the capacity",
			units.Exact(capacity, units.Sizes), s.RTTBounds.Max, units.Exact(largest, units.Sizes))
	}
	return capacity
}

// explain gives the formula of the bandwidth-delay product.
func (r *portResolver) explain() string {
	s, profile := r.s, r.profile
	return fmt.Sprintf("alpha %s x rate %s x rtt %s / 8", formatMillionths(profile.Alpha), units.Exact(s.Rate, units.Rates), s.RTT)
}

// source describes where a profile is defined.
func (r *portResolver) source() string {
	profile := r.profile
	if !r.Given(profile) {
		return "the built-in defaults"
	}
	return r.At(profile).Path + " at " + r.Position(profile).String()
}

func formatMillionths(v uint64) string { return strconv.FormatFloat(float64(v)/million, 'f', -1, 64) }

// Defaults of a queue under the control law.
const (
	lawReserve   = 8      // times the depth of a full queue: a WAN port's capacity, so that what arrives before senders slow down isn't lost
	reserveFrame = 4096   // bytes of the frames that fill it: those of large messages
	lawMostParts = 10     // of a second, of the rate: the capacity, at most
	fabricLeast  = 64_000 // bytes
	fabricParts  = 25_000 // of a second: a fabric port marks from 40 us of its rate
)

// resolveLaw sets a port's queue and response for the control law.
func (r *portResolver) resolveLaw() {
	p, s, profile := r.p, r.s, r.profile
	p.Policy.Sizing = congestion.Sizing{}
	if !r.Valid(&s.Rate) {
		return
	}
	full := congestion.FullQueue(s.Rate)
	p.Capacity, p.Frames = full, int(full/frameShare)
	if p.Role == dataplane.WAN {
		p.Capacity = max(full, min(lawReserve*full, s.Rate/8/lawMostParts))
		p.Frames = max(p.Frames, int(p.Capacity/reserveFrame))
	}
	if r.Given(&s.QueueCapacity) && r.Valid(&s.QueueCapacity) {
		p.Capacity, p.Frames = s.QueueCapacity, 0
	}
	law := congestion.NewLaw(s.Rate, p.Capacity, int64(profile.TargetDelay))
	law.ByFlow = profile.Between == 1
	p.Policy.KMin, p.Policy.KMax = uint64(law.Reference), 2*uint64(law.Reference)
	if p.Role == dataplane.Fabric {
		p.Policy.KMin = max(min(max(s.Rate/8/fabricParts, fabricLeast), p.Capacity/4), 1)
		p.Policy.KMax = 2 * p.Policy.KMin
	} else {
		p.Policy.Law = law
	}
	// The least time between two notifications that a proxy passes on about a flow. The node that asks for them spaces them by its own queue.
	p.Policy.PerFlow, p.Policy.PerFlowIsRTT = congestion.LawSpacingLeast, false
	if p.Policy.Pacing != nil && p.Role == dataplane.WAN {
		p.Policy.Pacing.Interval = congestion.LawSpacing // what the law asks for is about the flow as it will be after what it has asked before
	}
}
