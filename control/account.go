package control

import "github.com/cnpgate/cnpgate/control/report"

// account logs where the received frames went, and returns an error if some are unaccounted for.
func (g *gateway) account(r *report.Report) error {
	g.logStatus("The gateway has stopped. These are the port's counters.")
	return r.Counters.Check()
}

// logStatus logs the counters of each port and its device, with the names and in the form of the report, without zeros.
func (g *gateway) logStatus(message string) {
	for i := range g.started.Ports {
		s := g.plane.Port(i)
		e := g.options.Log.Info().Str("port", g.started.Ports[i].Name).Any("counters", s.Values().NonZero())
		if device, err := g.devices.Counters(i); err == nil {
			e = e.Any("device", device.NonZero())
		}
		e.Msg(message)
	}
}

// addDeviceCounters adds the devices' own counters to the ports' part of a report. They count frames that no worker has seen.
func (g *gateway) addDeviceCounters(ports []report.Port) {
	for i := range ports {
		if c, err := g.devices.Counters(i); err == nil {
			ports[i].Device = c
		}
	}
}

// Counters are for the API.
func (g *gateway) Counters() *report.Counters {
	c := report.MakeCounters(g.running.Load(), g.plane)
	c.Identity = g.Identity()
	g.addDeviceCounters(c.Ports)
	g.heart.addTo(c.Counters)
	c.Histograms = report.MakeHistograms(g.started, g.plane)
	return c
}
