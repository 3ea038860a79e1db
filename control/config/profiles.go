package config

import (
	"strings"

	"github.com/cnpgate/cnpgate/congestion"
)

// The modes of a profile, by their number in the schema.
const (
	modeLaw = iota
	modeThresholds
)

// checkProfiles checks the rules between the keys of each profile, whether a port uses it or not.
func (r *resolver) checkProfiles() {
	r.checkShared()
	for i := range r.doc.Profiles.Entries {
		profile := &r.doc.Profiles.Entries[i]
		c := &profileChecker{r, profile, allowedActions(profile)}
		c.checkArrival()
		c.checkMode()
		for k := range profile.Policy {
			c.checkLevel(profile.Policy, k)
			c.checkAction(&profile.Policy[k])
		}
	}
}

// checkShared reports settings of thresholds for all profiles: they are needless if every profile has the control law, and without a mode they decide
// on it.
func (r *resolver) checkShared() {
	law, modes := 0, 0
	for i := range r.doc.Profiles.Entries {
		if p := &r.doc.Profiles.Entries[i]; r.Given(&p.Mode) {
			modes++
			if p.Mode == modeLaw {
				law++
			}
		}
	}
	for _, k := range r.At(&r.doc.Notifications).GivenIn(thresholds) {
		switch {
		case modes > 0 && law == len(r.doc.Profiles.Entries):
			r.Problem(k, "the control law makes it needless; remove it, or set mode: thresholds in a profile")
		case modes == 0:
			r.Warn(k, "with this setting and no mode in a profile, the mode is thresholds; set the mode, or remove it for the control law")
		}
	}
}

// profileChecker checks one profile.
type profileChecker struct {
	*resolver
	profile *profileSection
	allowed [actionResume + 1]bool // the actions
}

// checkArrival checks that the settings for packets that arrive with CE are possible.
func (r *profileChecker) checkArrival() {
	profile := r.profile
	if profile.OnArrival && !r.allowed[actionNotify] {
		r.Problem(&profile.OnArrival, "needs the action notify; add it to %s (%s), or remove ce_on_arrival", r.At(&profile.Actions).Path, r.Position(&profile.Actions))
	}
	if profile.ClearCE && !profile.OnArrival {
		r.Problem(&profile.ClearCE, "the gateway clears CE only in packets that it has answered; set ce_on_arrival to true, or remove clear_ce")
	}
}

// checkMode reports settings of thresholds in a profile with the control law, and of the law in one with thresholds.
func (r *profileChecker) checkMode() {
	p := r.profile
	switch law := r.usesLaw(p); {
	case r.Given(&p.Mode) && law:
		for _, k := range r.At(p).GivenIn(thresholds) {
			r.Problem(k, "the control law makes it needless; remove it, or set mode: thresholds in %s", r.At(p).Path)
		}
	case !law && len(r.At(p).GivenIn("law")) > 0:
		for _, k := range r.At(p).GivenIn("law") {
			r.Problem(k, "the control law uses it; expected it only with mode: law, without the settings of mode: thresholds")
		}
	case !law && !r.Given(&p.Mode) && len(r.At(p).GivenIn(thresholds)) > 0:
		var names []string
		for _, k := range r.At(p).GivenIn(thresholds) {
			names = append(names, k.Key())
		}
		r.Warn(p, "%s: with these settings and no mode, the mode is thresholds; set the mode, or remove them for the control law", strings.Join(names, ", "))
	}
}

// checkLevel checks the level of one entry of a policy table.
func (r *profileChecker) checkLevel(table []rungSection, i int) {
	level := &table[i].Level
	switch {
	case !r.Valid(level):
	case i == 0 && *level != 0:
		r.Problem(level, "the first entry begins at level %d; expected 0, so that every level has an action", *level)
	case i > 0 && r.Valid(&table[i-1].Level) && *level <= table[i-1].Level:
		r.Problem(level, "%d is not above %d, the level of the entry before; expected rising levels", *level, table[i-1].Level)
	}
}

// checkAction checks the action of one entry of a policy table, and its percentage.
func (r *profileChecker) checkAction(item *rungSection) {
	if !r.Valid(&item.Action) {
		return
	}
	action := rungActions[item.Action]
	if !r.allowed[actionNotify+item.Action] {
		r.Problem(&item.Action, "%s is not in %s (%s); add it there, or remove this entry", action, r.At(&r.profile.Actions).Path, r.Position(&r.profile.Actions))
	}
	switch reduces := action == congestion.RateReduce; {
	case reduces && !r.Given(&item.Percent):
		r.Problem(&item.Action, "rate-reduce needs a percentage; add percent, 1 to 100")
	case !reduces && r.Given(&item.Percent):
		r.Problem(&item.Percent, "%s has no percentage; remove percent", action)
	}
}

// thresholds is the mode of the keys that the control law makes needless.
const thresholds = "thresholds"

// usesLaw reports whether a profile responds by the control law. It does by default. A profile without a mode keeps its meaning if it, or the
// notifications, have a setting of thresholds.
func (r *resolver) usesLaw(p *profileSection) bool {
	if r.Given(&p.Mode) {
		return p.Mode == modeLaw
	}
	return len(r.At(p).GivenIn(thresholds))+len(r.At(&r.doc.Notifications).GivenIn(thresholds)) == 0
}
