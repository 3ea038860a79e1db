package control

import (
	"fmt"

	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/dataplane"
)

// account says where every received frame went, and is an error if some went nowhere.
func (g *gateway) account(r *report.Report) error {
	g.logStatus("stopped")
	if n := r.Unaccounted(); n != 0 {
		return fmt.Errorf("%d frames are not accounted for (received less forwarded, dropped, consumed and queued): a bug in cnpgate; please report it", n)
	}
	return nil
}

// logStatus logs each port's counters that are not 0.
func (g *gateway) logStatus(message string) {
	for i := range g.config.Ports {
		s := g.plane.Port(i)
		e := g.options.Log.Info().Str("port", g.config.Ports[i].Name)
		for n, count := range s.Count {
			if count == 0 {
				continue
			}
			info := dataplane.Catalogue[n]
			name := info.Name
			if info.Label != "" {
				name += "{" + info.Value + "}"
			}
			e = e.Uint64(name, count)
		}
		if missed, err := g.devices.Missed(i); err == nil && missed > 0 {
			e = e.Uint64("device_missed_packets_total", missed)
		}
		e.Msg(message)
	}
}
