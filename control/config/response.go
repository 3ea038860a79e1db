package config

import (
	"cmp"
	"time"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
)

// The actions of a profile, by their number in the schema.
const (
	actionMark = iota
	actionNotify
	actionRateReduce
	actionPause
	actionResume
)

// resolveResponse makes the rest of a queue's response to congestion (draft-tian 5.4, 5.5.1).
func (r *portResolver) resolveResponse(to *dataplane.PortPolicy) {
	profile, n, allowed := r.profile, &r.doc.Notifications, allowedActions(r.profile)
	if to.Depth = profile.Depth; allowed[actionNotify] || allowed[actionRateReduce] || allowed[actionPause] {
		to.Marking, to.Growth = uint32(profile.VECN/100), int64(profile.VGrowth/8000)
	} else {
		to.Depth = false
	}
	to.OnArrival, to.ClearCE, to.Interval, to.ResumePercent = profile.OnArrival, profile.ClearCE, int64(profile.Interval), uint16(profile.Resume)
	to.Marks, to.Resumes = allowed[actionMark], allowed[actionResume]
	to.Ladder = policyTable(profile, uint16(n.LongHaulCNP.ReducePercent), allowed)
	to.Disclose, to.Metric = n.LongHaulCNP.DiscloseMetrics, uint8(n.LongHaulCNP.Metric)
	if a := &profile.Adjust; a.Enabled {
		to.Adjust = congestion.AdjustPolicy{MinPercent: int(a.MinPercent), MaxPercent: int(a.MaxPercent)}
	}
}

// pacings are the paces by the role of its port: a host behind a fabric port is slowed down until its senders' reaction
// arrives (docs/effect.md); a flow that leaves by a WAN port as its sender should be (draft-tian 5.6, DCQCN's first cut), with times in RTT_est.
var pacings = [...]struct {
	floor                    uint64 // thousandths of the host's rate
	keep                     uint64 // percent
	interval, hold, recovery int64  // RTT_est
}{dataplane.Fabric: {floor: 30, keep: 10}, dataplane.WAN: {floor: 1, keep: 50, interval: 1, hold: 2, recovery: 100}}

const (
	thousandths     = 1000
	fabricInterval  = 50 * time.Microsecond
	defaultRecovery = time.Millisecond // of a fabric port, and instead of an RTT_est that isn't known
	maxInterval     = time.Second
	maxRecovery     = 10 * time.Second
)

// resolvePacing makes the settings of pacing: at a fabric port, frames towards hosts behind the port are slowed down after their CNPs; at a WAN
// port, flows of some senders as notifications to these ask. All are nil and 0 without pacing.
func (r *portResolver) resolvePacing() {
	s, p := r.s, r.p
	c := &s.Pacing
	if !c.Enabled {
		return
	}
	r.checkSenders()
	of, hostRate, rtt := pacings[p.Role], cmp.Or(c.HostRate, s.Rate), int64(cmp.Or(s.RTT, defaultRecovery))
	pacing := &congestion.Pacing{
		HostRate: hostRate, Floor: hostRate * of.floor / thousandths, Keep: of.keep,
		Interval: int64(fabricInterval), Hold: min(of.hold*rtt, int64(maxRecovery)), Recovery: int64(defaultRecovery),
	}
	if p.Role == dataplane.WAN {
		pacing.Interval, pacing.Recovery = min(of.interval*rtt, int64(maxInterval)), min(of.recovery*rtt, int64(maxRecovery))
	}
	if r.Given(&c.Recovery) {
		pacing.Recovery = int64(c.Recovery)
	}
	p.Policy.Pacing, p.Paced = pacing, c.Capacity
	r.CheckUnique(&c.Senders, "the prefix %") // not in the schema: senders without pacing are ignored
	p.Policy.Enforce = r.set(c.Senders)
}

// checkSenders checks the senders that a WAN port's pacing is about. Anybody could stop them if notifications from any source counted. The law needs none.
func (r *portResolver) checkSenders() {
	s, law := r.s, r.law
	c := &s.Pacing
	switch {
	case !r.Valid(&s.Role):
	case dataplane.Role(s.Role) == dataplane.Fabric && r.Given(&c.Senders):
		r.Problem(&c.Senders, "%s is a fabric port; expected senders at the WAN port by which their frames leave", s.Name)
	case dataplane.Role(s.Role) == dataplane.WAN && (!r.Given(&c.Senders) || r.Valid(&c.Senders) && len(c.Senders) == 0):
		r.Problem(&c.Enabled, "%s is a WAN port, and paces the flows of the senders that the key senders lists; expected at least one prefix there, "+
			"or pacing at the fabric port that receivers are behind", s.Name)
	case dataplane.Role(s.Role) == dataplane.WAN && !law && !r.Given(&r.doc.Domain) && !(r.doc.Proxy.Enabled != kindOff && len(r.doc.Proxy.Sources) > 0):
		r.Problem(&c.Senders, "nothing says which gateways may slow these senders down; expected a section domain with notification_sources, or "+
			"proxy.sources with proxy.enabled")
	}
}

// allowedActions are the actions that a profile allows: all, unless it names some.
func allowedActions(profile *profileSection) (allowed [actionResume + 1]bool) {
	for a := range allowed {
		allowed[a] = len(profile.Actions) == 0
	}
	for i := range profile.Actions {
		allowed[profile.Actions[i]] = true
	}
	return allowed
}

// rungActions are the actions of a policy table, by their number in the schema.
var rungActions = [...]congestion.Action{congestion.Notify, congestion.RateReduce, congestion.Pause}

// policyTable is the operator's policy table, or the default one.
func policyTable(profile *profileSection, percent uint16, allowed [actionResume + 1]bool) []congestion.Rung {
	if len(profile.Policy) == 0 {
		return ladder(percent, allowed)
	}
	table := make([]congestion.Rung, len(profile.Policy))
	for i := range table {
		item := &profile.Policy[i]
		table[i] = congestion.Rung{Level: uint8(item.Level), Action: rungActions[item.Action], Percent: uint16(item.Percent)}
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
