package config

import (
	"fmt"
	"reflect"
	"strconv"

	"github.com/cnpgate/cnpgate/congestion"
)

const (
	maxCapacity = 4095 << 20 // octets: a flow's share of a queue is counted in 32 bits
	maxKMax     = 4000 << 20 // octets: so that a capacity above it is possible
)

// profileOf finds a port's profile: the one it names, else the one called default, else the defaults of the schema. It gives nil,
// and has reported it, when there is none of that name.
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
func (r *report) resolveQueue(p *Port, s *portSection, profile *profileSection) {
	if profile == nil || !profile.KBase.valid || !profile.Alpha.valid || !profile.KMinPercent.valid || !s.Rate.valid || !s.RTT.valid {
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
	p.KMin, p.KMax = k.KMin, k.KMax
	p.QueueCapacity = min(max(2*p.KMax, minCapacity), maxCapacity)
	if !s.QueueCapacity.given {
		return
	}
	if p.QueueCapacity = s.QueueCapacity.V; s.QueueCapacity.valid && p.QueueCapacity <= p.KMax {
		from := "k_base"
		if p.KMax > profile.KBase.V {
			from = r.explain(s, profile)
		}
		r.problem(s.QueueCapacity.place, "%s is not above K_max, which is %s, from %s (%s); expected more, or leave it out for 2 x K_max",
			formatUnits(p.QueueCapacity, sizeUnits), formatUnits(p.KMax, sizeUnits), from, r.source(profile))
	}
}

// explain tells how the bandwidth-delay product came about.
func (r *report) explain(s *portSection, profile *profileSection) string {
	return fmt.Sprintf("alpha %s x rate %s x rtt %s / 8", formatMillionths(profile.Alpha.V), formatUnits(s.Rate.V, rateUnits), s.RTT.V)
}

// source tells where a profile stands.
func (r *report) source(profile *profileSection) string {
	if !profile.given {
		return "the built-in defaults"
	}
	return profile.path + " at " + r.position(profile.place).String()
}

func formatMillionths(v uint64) string { return strconv.FormatFloat(float64(v)/million, 'f', -1, 64) }
