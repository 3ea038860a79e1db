package config

import (
	"fmt"
	"math/big"
	"reflect"
	"strconv"
	"time"
)

const maxKMax = 512 << 30 // octets: so that twice of it is still a queue_capacity

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
	bdp := productOf(profile.Alpha.V, s.Rate.V, s.RTT.V)
	if bdp > maxKMax {
		r.problem(s.RTT.place, "K_max would be %s, from %s; expected at most %s: lower rtt, rate or alpha",
			formatUnits(bdp, sizeUnits), r.explain(s, profile), formatUnits(maxKMax, sizeUnits))
		return
	}
	p.KMax = max(profile.KBase.V, bdp)
	p.KMin = p.KMax * uint64(profile.KMinPercent.V) / 100
	p.QueueCapacity = max(2*p.KMax, minCapacity)
	if !s.QueueCapacity.given {
		return
	}
	if p.QueueCapacity = s.QueueCapacity.V; s.QueueCapacity.valid && p.QueueCapacity <= p.KMax {
		from := "k_base"
		if bdp > profile.KBase.V {
			from = r.explain(s, profile)
		}
		r.problem(s.QueueCapacity.place, "%s is not above K_max, which is %s, from %s (%s); expected more, or leave it out for 2 x K_max",
			formatUnits(p.QueueCapacity, sizeUnits), formatUnits(p.KMax, sizeUnits), from, r.source(profile))
	}
}

// productOf is alpha * rate * rtt / 8 in octets, rounded down: the bandwidth-delay product times alpha, which is in millionths. Values
// above 2^63 octets are all the same to the caller.
func productOf(alpha, rate uint64, rtt time.Duration) uint64 {
	v := new(big.Int).SetUint64(alpha)
	v.Mul(v, new(big.Int).SetUint64(rate))
	v.Mul(v, big.NewInt(int64(rtt)))
	v.Div(v, big.NewInt(8*million*int64(time.Second)))
	if !v.IsInt64() {
		return 1 << 63
	}
	return v.Uint64()
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
