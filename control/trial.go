package control

import (
	"errors"
	"fmt"
	"time"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/config"
)

// trial is a reload that goes back unless it is confirmed in time, whether its client still lives or not. A nil trial is none.
type trial struct {
	before *config.Config // to go back to
	until  time.Time
	timer  *time.Timer
}

// refuses is the error of another reload meanwhile.
func (t *trial) refuses() error {
	if t == nil {
		return nil
	}
	return api.Conflict{Err: fmt.Errorf("the last reload waits until %s to be confirmed; keep it with cnpgate reload --confirmed, or go back with cnpgate reload --revert, and reload then",
		t.until.UTC().Format(time.RFC3339))}
}

// tryFor begins a trial. The caller holds reloading.
func (g *gateway) tryFor(d time.Duration, before *config.Config) (until *time.Time) {
	t := &trial{before: before, until: time.Now().Add(d)}
	t.timer = time.AfterFunc(d, func() {
		g.reloading.Lock()
		defer g.reloading.Unlock()
		if g.trial == t {
			_, _ = g.goBack("The reload was not confirmed in time.") // it has logged the error
		}
	})
	g.trial = t
	g.options.Log.Warn().Time("confirm_by", t.until).Msg("The configuration goes back to the one before unless it is confirmed: cnpgate reload --confirmed.")
	return &t.until
}

// endTrial forgets a trial: the configuration in force stays, whichever it is. The caller holds reloading.
func (g *gateway) endTrial() {
	if g.trial != nil {
		g.trial.timer.Stop()
		g.trial = nil
	}
}

var errNoTrial = api.Conflict{Err: errors.New("no reload waits to be confirmed")}

// Confirm keeps the configuration of a trial.
func (g *gateway) Confirm() (*api.Reloaded, error) {
	g.reloading.Lock()
	defer g.reloading.Unlock()
	if g.trial == nil {
		return nil, errNoTrial
	}
	kept := g.reloadedFrom(g.trial.before)
	g.endTrial()
	g.options.Log.Info().Strs("changes", kept.Changes).Msg("The reload was confirmed.")
	return kept, nil
}

// Revert ends a trial before its time.
func (g *gateway) Revert() (*api.Reloaded, error) {
	g.reloading.Lock()
	defer g.reloading.Unlock()
	if g.trial == nil {
		return nil, errNoTrial
	}
	return g.goBack("The reload was reverted.")
}

// goBack applies the configuration before a trial. The file is the operator's, and stays as it is.
func (g *gateway) goBack(why string) (*api.Reloaded, error) {
	before, after := g.trial.before, g.running.Load()
	g.endTrial()
	if err := g.change(before); err != nil {
		g.options.Log.Error().Err(err).Msg(why + " The configuration before can't be applied any more, so the new one stays in force.")
		return nil, err
	}
	back := g.reloadedFrom(after)
	g.identify(g.options.Log.Warn()).Strs("changes", back.Changes).
		Msg(why + " The configuration before it is in force again. The file still has the new one: correct it before the next start.")
	return back, nil
}
