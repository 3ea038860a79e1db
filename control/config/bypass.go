package config

import (
	"path/filepath"
	"time"
)

// Bypass is the heartbeat to a device that connects the two sides past the gateway once the heartbeat stops.
type Bypass struct {
	File     string        // "": Command
	Values   []string      // written to File in turn
	Command  []string      // run at each beat
	Interval time.Duration // between two beats
	Ports    bool          // no heartbeat while a port doesn't forward
}

type bypassSection struct {
	place
	File     text       `key:"file"`
	Values   list[text] `key:"values" default:"['1', '0']" items:"1" most:"2"`
	Command  list[text] `key:"command" items:"1" most:"16"`
	Interval duration   `key:"interval" default:"100ms" min:"10ms" max:"10s"`
	Requires choice     `key:"requires" default:"ports" one:"ports|workers"`
}

// resolveBypass returns nil, no heartbeat, if the file has no bypass.
func (r *report) resolveBypass(s *bypassSection) *Bypass {
	if !s.given {
		return nil
	}
	switch {
	case s.valid && !s.File.given && !s.Command.given:
		r.problem(s.place, "neither file nor command is given; expected one of them, or no bypass section for no heartbeat")
	case s.File.valid && s.File.given && !filepath.IsAbs(s.File.V):
		r.problem(s.File.place, "%s is not an absolute path; expected one such as /sys/class/gpio/gpio17/value or /dev/watchdog1", quote(s.File.V))
	case s.File.given && s.Command.given:
		r.problem(s.Command.place, "file is given too (%s); expected one of them", r.position(s.File.place))
	case s.Values.given && s.Command.given:
		r.problem(s.Values.place, "values are written to a file, and command is given; remove values, or give file in place of command")
	}
	b := &Bypass{File: s.File.V, Interval: s.Interval.V, Ports: s.Requires.V == 0}
	for i := range s.Values.Items {
		b.Values = append(b.Values, s.Values.Items[i].V)
	}
	for i := range s.Command.Items {
		b.Command = append(b.Command, s.Command.Items[i].V)
	}
	return b
}
