package config

import "github.com/cnpgate/cnpgate/congestion"

// checkProfiles checks the rules between the keys of each profile, whether a port uses it or not.
func (r *report) checkProfiles(doc *document) {
	r.checkShared(doc)
	for i := range doc.Profiles.Entries {
		profile := &doc.Profiles.Entries[i]
		allowed := allowedActions(profile)
		r.checkArrival(profile, allowed)
		r.checkMode(profile, &doc.Notifications)
		for k := range profile.Policy.Items {
			r.checkLevel(profile.Policy.Items, k)
			r.checkAction(profile, &profile.Policy.Items[k], allowed)
		}
	}
}

// checkArrival checks that the settings for packets that arrive with CE are possible.
func (r *report) checkArrival(profile *profileSection, allowed [actionResume + 1]bool) {
	if profile.OnArrival.V && !allowed[actionNotify] {
		r.problem(profile.OnArrival.place, "needs the action notify; add it to %s (%s), or remove ce_on_arrival", profile.Actions.path, r.position(profile.Actions.place))
	}
	if profile.ClearCE.V && !profile.OnArrival.V {
		r.problem(profile.ClearCE.place, "the gateway clears CE only in packets that it has answered; set ce_on_arrival to true, or remove clear_ce")
	}
}

// checkLevel checks the level of one entry of a policy table.
func (r *report) checkLevel(table []rungSection, i int) {
	level := &table[i].Level
	switch {
	case !level.valid:
	case i == 0 && level.V != 0:
		r.problem(level.place, "the first entry begins at level %d; expected 0, so that every level has an action", level.V)
	case i > 0 && table[i-1].Level.valid && level.V <= table[i-1].Level.V:
		r.problem(level.place, "%d is not above %d, the level of the entry before; expected rising levels", level.V, table[i-1].Level.V)
	}
}

// checkAction checks the action of one entry of a policy table, and its percentage.
func (r *report) checkAction(profile *profileSection, item *rungSection, allowed [actionResume + 1]bool) {
	if !item.Action.valid {
		return
	}
	action := rungActions[item.Action.V]
	if !allowed[actionNotify+item.Action.V] {
		r.problem(item.Action.place, "%s is not in %s (%s); add it there, or remove this entry", action, profile.Actions.path, r.position(profile.Actions.place))
	}
	switch reduces := action == congestion.RateReduce; {
	case reduces && !item.Percent.given:
		r.problem(item.Action.place, "rate-reduce needs a percentage; add percent, 1 to 100")
	case !reduces && item.Percent.given:
		r.problem(item.Percent.place, "%s has no percentage; remove percent", action)
	}
}
