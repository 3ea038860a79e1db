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
		if c, err := g.devices.Counters(i); err == nil {
			c.each(func(name string, value uint64) {
				if value > 0 {
					e = e.Uint64(name, value)
				}
			})
		}
		e.Msg(message)
	}
}

// addDeviceCounters puts what the devices counted by themselves into the report: frames that no worker has seen.
func (g *gateway) addDeviceCounters(r *report.Report) {
	for i := range r.Ports {
		if c, err := g.devices.Counters(i); err == nil {
			r.Ports[i].Device = report.Values{}
			c.each(func(name string, value uint64) { r.Ports[i].Device[name] = value })
		}
	}
}
