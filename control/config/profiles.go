package config

import (
	"reflect"
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
		for k := range profile.Policy.Items {
			c.checkLevel(profile.Policy.Items, k)
			c.checkAction(&profile.Policy.Items[k])
		}
	}
}

// checkShared reports settings of thresholds for all profiles: they are needless if every profile has the control law, and without a mode they decide
// on it.
func (r *resolver) checkShared() {
	law, modes := 0, 0
	for i := range r.doc.Profiles.Entries {
		if p := &r.doc.Profiles.Entries[i]; p.Mode.given {
			modes++
			if p.Mode.V == modeLaw {
				law++
			}
		}
	}
	for _, k := range thresholdsKeys(&r.doc.Notifications) {
		switch {
		case modes > 0 && law == len(r.doc.Profiles.Entries):
			r.problem(k, "the control law makes it needless; remove it, or set mode: thresholds in a profile")
		case modes == 0:
			r.warn(k, "with this setting and no mode in a profile, the mode is thresholds; set the mode, or remove it for the control law")
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
	if profile.OnArrival.V && !r.allowed[actionNotify] {
		r.problem(profile.OnArrival.place, "needs the action notify; add it to %s (%s), or remove ce_on_arrival", profile.Actions.path, r.position(profile.Actions.place))
	}
	if profile.ClearCE.V && !profile.OnArrival.V {
		r.problem(profile.ClearCE.place, "the gateway clears CE only in packets that it has answered; set ce_on_arrival to true, or remove clear_ce")
	}
}

// checkMode reports settings of thresholds in a profile with the control law, and of the law in one with thresholds.
func (r *profileChecker) checkMode() {
	p := r.profile
	switch law := usesLaw(p, &r.doc.Notifications); {
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

// checkLevel checks the level of one entry of a policy table.
func (r *profileChecker) checkLevel(table []rungSection, i int) {
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
func (r *profileChecker) checkAction(item *rungSection) {
	if !item.Action.valid {
		return
	}
	action := rungActions[item.Action.V]
	if !r.allowed[actionNotify+item.Action.V] {
		r.problem(item.Action.place, "%s is not in %s (%s); add it there, or remove this entry", action, r.profile.Actions.path, r.position(r.profile.Actions.place))
	}
	switch reduces := action == congestion.RateReduce; {
	case reduces && !item.Percent.given:
		r.problem(item.Action.place, "rate-reduce needs a percentage; add percent, 1 to 100")
	case !reduces && item.Percent.given:
		r.problem(item.Percent.place, "%s has no percentage; remove percent", action)
	}
}

// thresholdsKeys are the given keys of a section, and of those in it, that the control law makes needless.
func thresholdsKeys(section any) []place { return given(reflect.ValueOf(section).Elem()) }

func given(v reflect.Value) (keys []place) {
	for _, p := range partsOf(v) {
		if at := placeOf(p.v); p.rule.thresholds && at.given {
			keys = append(keys, *at)
		} else if !p.rule.thresholds {
			keys = append(keys, given(p.v)...)
		}
	}
	return keys
}

// usesLaw reports whether a profile responds by the control law. It does by default. A profile without a mode keeps its meaning if it, or the
// notifications, have a setting of thresholds.
func usesLaw(p *profileSection, n *notificationsSection) bool {
	if p.Mode.given {
		return p.Mode.V == modeLaw
	}
	return len(thresholdsKeys(p))+len(thresholdsKeys(n)) == 0
}
