package config

import (
	"reflect"
	"strings"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
)

// The modes of a profile, by their number in the schema.
const (
	modeLaw = iota
	modeThresholds
)

// Defaults of a queue under the control law.
const (
	lawQueueParts  = 200         // of a second: 5 ms of the line rate
	lawMinCapacity = 32_000_000  // bytes
	lawMaxCapacity = 256_000_000 // bytes
	fabricLeast    = 64_000      // bytes
	fabricParts    = 25_000      // of a second: a fabric port marks from 40 us of its rate
)

// thresholdsKeys are the given keys of a section, and of those in it, that the control law makes needless.
func thresholdsKeys(section any) (given []place) {
	v := reflect.ValueOf(section).Elem()
	for _, f := range fieldsOf(v.Type()) {
		x := v.Field(f.index).Addr().Interface()
		_, isValue := x.(reader)
		switch at := x.(interface{ At() Section }).At(); {
		case f.rule.thresholds && at.given:
			given = append(given, at)
		case !isValue:
			given = append(given, thresholdsKeys(x)...)
		}
	}
	return given
}

// usesLaw reports whether a profile responds by the control law. It does by default. A profile without a mode keeps its meaning if it, or the
// notifications, have a setting of thresholds.
func usesLaw(p *profileSection, n *notificationsSection) bool {
	if p.Mode.given {
		return p.Mode.V == modeLaw
	}
	return len(thresholdsKeys(p))+len(thresholdsKeys(n)) == 0
}

// checkMode reports settings of thresholds in a profile with the control law, and of the law in one with thresholds.
func (r *report) checkMode(p *profileSection, n *notificationsSection) {
	switch law := usesLaw(p, n); {
	case p.Mode.given && law:
		for _, k := range thresholdsKeys(p) {
			r.problem(k, "the control law makes it needless; remove it, or set mode: thresholds in %s", p.path)
		}
	case !law && p.TargetDelay.given:
		r.problem(p.TargetDelay.place, "the control law uses it; expected it only with mode: law, without the settings of mode: thresholds")
	case !law && !p.Mode.given && len(thresholdsKeys(p)) > 0:
		var names []string
		for _, k := range thresholdsKeys(p) {
			names = append(names, k.path[strings.LastIndexByte(k.path, '.')+1:])
		}
		r.warn(p.place, "%s: with these settings and no mode, the mode is thresholds; set the mode, or remove them for the control law", strings.Join(names, ", "))
	}
}

// checkShared reports settings of thresholds for all profiles: they are needless if every profile has the control law, and without a mode they decide
// on it.
func (r *report) checkShared(doc *document) {
	law, modes := 0, 0
	for i := range doc.Profiles.Entries {
		if p := &doc.Profiles.Entries[i]; p.Mode.given {
			modes++
			if p.Mode.V == modeLaw {
				law++
			}
		}
	}
	for _, k := range thresholdsKeys(&doc.Notifications) {
		switch {
		case modes > 0 && law == len(doc.Profiles.Entries):
			r.problem(k, "the control law makes it needless; remove it, or set mode: thresholds in a profile")
		case modes == 0:
			r.warn(k, "with this setting and no mode in a profile, the mode is thresholds; set the mode, or remove it for the control law")
		}
	}
}

// resolveLaw sets a port's queue and response for the control law.
func (r *report) resolveLaw(p *Port, s *portSection, profile *profileSection) {
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
