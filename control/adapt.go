package control

import (
	"time"

	"github.com/cnpgate/cnpgate/dataplane"
)

// adapt updates the policy in force with the workers' measurements, and logs the changes.
func (w *watch) adapt(now time.Time) {
	w.g.adapting.Lock()
	w.g.plane.Adapt(now.Sub(w.g.begin).Nanoseconds())
	w.g.adapting.Unlock()
	policy := w.g.plane.Policy()
	if policy == w.policy {
		return
	}
	for i := range policy.Ports {
		w.logPort(w.g.started.Ports[i].Name, &w.policy.Ports[i], &policy.Ports[i])
	}
	w.policy = policy
}

// logPort logs changes of RTT_est, its source, and the thresholds.
func (w *watch) logPort(name string, before, now *dataplane.PortPolicy) {
	if now.RTT == before.RTT && now.RTTSource == before.RTTSource && now.Thresholds == before.Thresholds {
		return
	}
	w.g.options.Log.Info().Str("port", name).Str("rtt_source", now.RTTSource.String()).Int64("rtt_estimate_nanoseconds", now.RTT).
		Uint64("k_min_bytes", now.KMin).Uint64("k_max_bytes", now.KMax).Int("adjusted_percent", now.Percent).Msg("The thresholds of the port have changed.")
}
