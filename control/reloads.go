package control

import (
	"slices"
	"sync"
	"time"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/config"
)

const (
	maxReloads     = 64   // that are remembered
	maxReloadError = 4096 // bytes of an error's text
	maxChanges     = 256  // keys of a record
)

// reloads remembers the latest reloads. Any goroutine may use it.
type reloads struct {
	mutex sync.Mutex
	all   []api.ReloadRecord
}

// note records what became of a reload, after which a configuration is in force; err is why it was refused.
func (r *reloads) note(now *config.Config, outcome string, changes []string, err error) {
	one := api.ReloadRecord{Time: time.Now().UTC(), Outcome: outcome, Changes: changes[:min(len(changes), maxChanges)]}
	if now != nil { // else the gateway doesn't run yet
		one.ConfigHash = now.File.Hash()
	}
	if err != nil {
		text := err.Error()
		one.Outcome, one.Error = "refused", text[:min(len(text), maxReloadError)]
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if len(r.all) == maxReloads {
		r.all = slices.Delete(r.all, 0, 1)
	}
	r.all = append(r.all, one)
}

// Reloads are the latest reloads, the oldest first.
func (r *reloads) Reloads() []api.ReloadRecord {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return append([]api.ReloadRecord{}, r.all...)
}
