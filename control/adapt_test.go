package control

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
)

// TestLogPort: the log says once which RTT_est is in force and from where, and nothing where that stays.
func TestLogPort(t *testing.T) {
	before := dataplane.PortPolicy{Percent: 100}
	source, other := before, before
	source.RTT, source.RTTSource, source.Thresholds = 12e6, congestion.RTTSTAMP, congestion.Thresholds{KMin: 75, KMax: 150}
	other.PerFlowIsRTT = true
	for _, c := range []struct {
		now  dataplane.PortPolicy
		want string
	}{
		{source, `"port":"wan0","rtt_source":"stamp","rtt_estimate_nanoseconds":12000000,"k_min_bytes":75,"k_max_bytes":150,"adjusted_percent":100`},
		{other, ""},
	} {
		var log bytes.Buffer
		w := watch{g: &gateway{options: Options{Log: zerolog.New(&log)}}}
		w.logPort("wan0", &before, &c.now)
		if got := log.String(); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("logged %q, expected %q", got, c.want)
		}
	}
}
