package config

import (
	"cmp"
	"reflect"
	"time"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/units"
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
func resolveResponse(to *congestion.Response, profile *profileSection, n *notificationsSection) {
	allowed := allowedActions(profile)
	to.Marking, to.Growth = uint32(profile.VECN.V/100), int64(profile.VGrowth.V/8000)
	if !allowed[actionNotify] && !allowed[actionRateReduce] && !allowed[actionPause] {
		to.Depth, to.Marking, to.Growth = false, 0, 0
	}
	to.Marks, to.Resumes = allowed[actionMark], allowed[actionResume]
	to.Ladder = policyTable(profile, uint16(n.LongHaulCNP.ReducePercent.V), allowed)
	to.Disclose, to.Metric = n.LongHaulCNP.DiscloseMetrics.V, uint8(n.LongHaulCNP.Metric.V)
}

// pacingDefaults are the defaults of pacing by the role of its port: a host behind a fabric port is slowed down until its senders' reaction
// arrives (docs/effect.md); a flow that leaves by a WAN port as its sender should be (draft-tian 5.6, DCQCN's first cut), with times in RTT_est.
var pacingDefaults = [...]struct {
	floor                    uint64 // thousandths of the host's rate
	keep                     uint64 // percent
	interval, hold, recovery int64  // RTT_est
}{dataplane.Fabric: {floor: 30, keep: 10}, dataplane.WAN: {floor: 1, keep: 50, interval: 1, hold: 2, recovery: 100}}

const (
	thousandths     = 1000
	defaultInterval = 50 * time.Microsecond // of a fabric port
	defaultRecovery = time.Millisecond      // the same, and instead of an RTT_est that isn't known
	maxInterval     = time.Second
	maxRecovery     = 10 * time.Second
)

// resolvePacing makes the settings of pacing: at a fabric port, frames towards hosts behind the port are slowed down after their CNPs; at a WAN
// port, flows of some senders as notifications to these ask. All are nil and 0 without pacing.
func (r *portResolver) resolvePacing() {
	s, p := r.s, r.p
	c := &s.Pacing
	if !c.Enabled.V {
		return
	}
	r.checkSenders()
	defaults, hostRate, rtt := pacingDefaults[p.Role], s.Rate.V, int64(cmp.Or(s.RTT.V, defaultRecovery))
	if c.HostRate.given {
		hostRate = c.HostRate.V
	}
	pacing := &congestion.Pacing{
		HostRate: hostRate, Floor: hostRate * defaults.floor / thousandths, Keep: defaults.keep,
		Interval: int64(defaultInterval), Hold: min(defaults.hold*rtt, int64(maxRecovery)), Recovery: int64(defaultRecovery),
	}
	if p.Role == dataplane.WAN {
		pacing.Interval, pacing.Recovery = min(defaults.interval*rtt, int64(maxInterval)), min(defaults.recovery*rtt, int64(maxRecovery))
	}
	fill(pacing, c)
	if s.Rate.valid && (c.HostRate.valid || !c.HostRate.given) && pacing.Floor > hostRate {
		r.problem(c.Floor.place, "%s is above the host's rate, %s; expected at most that", units.Exact(c.Floor.V, units.Rates), units.Exact(hostRate, units.Rates))
	}
	p.Policy.Pacing, p.Paced = pacing, c.Capacity.V
	(&decoder{r.report}).checkUnique(reflect.ValueOf(c.Senders.Items), rule{unique: "the prefix %"}) // not in the schema: senders without pacing are ignored
	c.Senders.fill(reflect.ValueOf(&p.Policy.Enforce).Elem(), rule{})
}

// checkSenders checks the senders that a WAN port's pacing is about. Anybody could stop them if notifications from any source counted. The law needs none.
func (r *portResolver) checkSenders() {
	s, law := r.s, r.law
	c := &s.Pacing
	switch {
	case !s.Role.valid:
	case dataplane.Role(s.Role.V) == dataplane.Fabric && c.Senders.given:
		r.problem(c.Senders.place, "%s is a fabric port; expected senders at the WAN port by which their frames leave", s.Name.V)
	case dataplane.Role(s.Role.V) == dataplane.WAN && (!c.Senders.given || c.Senders.valid && len(c.Senders.Items) == 0):
		r.problem(c.Enabled.place, "%s is a WAN port, and paces the flows of the senders that the key senders lists; expected at least one prefix there, "+
			"or pacing at the fabric port that receivers are behind", s.Name.V)
	case dataplane.Role(s.Role.V) == dataplane.WAN && !law && !r.doc.Domain.given && !(r.doc.Proxy.Enabled.V && len(r.doc.Proxy.Sources.Items) > 0):
		r.problem(c.Senders.place, "nothing says which gateways may slow these senders down; expected a section domain with notification_sources, or "+
			"proxy.sources with proxy.enabled")
	}
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
