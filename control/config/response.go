package config

import (
	"github.com/cnpgate/cnpgate/congestion"
)

// The actions of a profile, by their number in the schema.
const (
	actionMark = iota
	actionNotify
	actionRateReduce
	actionPause
	actionResume
)

// resolveResponse makes the settings of a queue's response to congestion (draft-tian 5.4, 5.5.1).
func resolveResponse(p *Port, s *portSection, profile *profileSection, n *notificationsSection) congestion.Response {
	allowed := allowedActions(profile)
	triggers := congestion.Triggers{Thresholds: congestion.Thresholds{KMin: p.KMin, KMax: p.KMax}}
	if allowed[actionNotify] || allowed[actionRateReduce] || allowed[actionPause] {
		triggers.Depth, triggers.Marking, triggers.Growth = profile.Depth.V, uint32(profile.VECN.V/100), int64(profile.VGrowth.V/8000)
	}
	return congestion.Response{
		Triggers: triggers, OnArrival: profile.OnArrival.V, ClearCE: profile.ClearCE.V,
		Ladder: policyTable(profile, uint16(n.LongHaulCNP.ReducePercent.V), allowed), Marks: allowed[actionMark],
		Resumes: allowed[actionResume], ResumePercent: uint16(profile.Resume.V),
		Disclose: n.LongHaulCNP.DiscloseMetrics.V, Metric: uint8(n.LongHaulCNP.Metric.V),
		Rate: s.Rate.V, RTT: int64(s.RTT.V), Interval: int64(profile.Interval.V), FlowsPerRound: int(profile.Flows.V),
	}
}

// floorPercent is the default lowest pace in percent of the host's rate (docs/effect.md).
const floorPercent = 3

// resolvePacing makes the settings of pacing: frames towards hosts behind the port are slowed down after their CNPs. nil and 0 without pacing.
func (r *report) resolvePacing(s *portSection) (*congestion.Pacing, uint64) {
	p := &s.Pacing
	if !p.Enabled.V {
		return nil, 0
	}
	if s.Role.valid && Role(s.Role.V) != Fabric {
		r.problem(p.Enabled.place, "%s is a WAN port; expected pacing at the fabric port that the hosts are behind", s.Name.V)
	}
	hostRate := s.Rate.V
	if p.HostRate.given {
		hostRate = p.HostRate.V
	}
	floor := hostRate * floorPercent / 100
	if p.Floor.given {
		floor = p.Floor.V
	}
	if s.Rate.valid && (p.HostRate.valid || !p.HostRate.given) && floor > hostRate {
		r.problem(p.Floor.place, "%s is above the host's rate, %s; expected at most that", formatUnits(floor, rateUnits), formatUnits(hostRate, rateUnits))
	}
	return &congestion.Pacing{
		HostRate: hostRate, Floor: floor, Keep: uint64(p.Keep.V), Interval: int64(p.Interval.V), Recovery: int64(p.Recovery.V),
	}, p.Capacity.V
}

// allowedActions are the actions that a profile allows: all, unless it names some.
func allowedActions(profile *profileSection) (allowed [actionResume + 1]bool) {
	for a := range allowed {
		allowed[a] = !profile.Actions.given
	}
	for i := range profile.Actions.Items {
		allowed[profile.Actions.Items[i].V] = true
	}
	return allowed
}

// rungActions are the actions of a policy table, by their number in the schema.
var rungActions = [...]congestion.Action{congestion.Notify, congestion.RateReduce, congestion.Pause}

// policyTable is the operator's policy table, or the default one.
func policyTable(profile *profileSection, percent uint16, allowed [actionResume + 1]bool) []congestion.Rung {
	if !profile.Policy.given {
		return ladder(percent, allowed)
	}
	table := make([]congestion.Rung, len(profile.Policy.Items))
	for i := range table {
		item := &profile.Policy.Items[i]
		table[i] = congestion.Rung{Level: uint8(item.Level.V), Action: rungActions[item.Action.V], Percent: uint16(item.Percent.V)}
	}
	return table
}

// ladder is the default policy table with the operator's percentage at K_max, and without the actions that are not allowed. The mildest
// remaining action is also used below its level.
func ladder(percent uint16, allowed [actionResume + 1]bool) []congestion.Rung {
	var l []congestion.Rung
	for _, rung := range congestion.DefaultLadder {
		switch {
		case rung.Action == congestion.RateReduce && !allowed[actionRateReduce], rung.Action == congestion.Pause && !allowed[actionPause]:
			continue
		case rung.Action == congestion.RateReduce:
			rung.Percent = min(max(rung.Percent*percent/congestion.DefaultPercent, 1), 100)
		case rung.Action == congestion.Notify && !allowed[actionNotify]:
			continue
		}
		l = append(l, rung)
	}
	if len(l) == 0 {
		return []congestion.Rung{{Action: congestion.Notify}}
	}
	l[0].Level = 0
	return l
}
