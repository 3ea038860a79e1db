package config

import (
	"fmt"
	"time"

	"github.com/cnpgate/cnpgate/internal/units"
	"github.com/cnpgate/cnpgate/internal/yamldoc"
)

// Effective is the configuration as YAML with the keys that the file has, and, as comments, the defaults of the others and what is calculated for each port. Parse
// reads it to the same configuration.
func (c *Config) Effective() string {
	return yamldoc.Dump{
		In: func(section any) string {
			profile, ok := section.(*profileSection)
			switch {
			case !ok:
				return ""
			case c.usesLaw(profile):
				return "law"
			}
			return thresholds
		},
		Note: func(section any) (notes []string) {
			if port, ok := section.(*portSection); ok {
				for i := range c.Ports {
					if p := &c.Ports[i]; p.Name == port.Name {
						notes = append(notes, "calculated: "+p.calculated())
					}
				}
			}
			return notes
		},
	}.Text(c.root)
}

// Change is a key whose value differs between two configurations.
type Change struct {
	Key    string `json:"key" doc:"Such as ports[0].rate."`
	Before string `json:"before" doc:"The value before, or the default; none without both."`
	After  string `json:"after" doc:"The value after."`
}

// ChangedValues are Changes with the values.
func (c *Config) ChangedValues(before *Config) (all []Change) {
	for _, key := range c.Changes(before) {
		all = append(all, Change{key, before.value(key), c.value(key)})
	}
	return all
}

// value is the value of a key in one line.
func (c *Config) value(key string) string {
	if n := c.root.Find(key); n != nil {
		return yamldoc.Dump{Mode: thresholds}.Line(n)
	}
	return "none"
}

// usesLaw reports whether a profile responds by the control law.
func (c *Config) usesLaw(p *profileSection) bool { return (&resolver{c.doc, c.file}).usesLaw(p) }

// calculated is what the file doesn't say of a port's queues.
func (p *Port) calculated() string {
	drain := time.Duration(float64(p.Capacity) * 8e9 / float64(p.Rate)).Round(time.Microsecond)
	text := fmt.Sprintf("each queue holds %s in %d frames, %v at the rate; ", units.Size(p.Capacity), p.Frames, drain)
	if law := &p.Policy.Law; law.On() {
		return text + fmt.Sprintf("q_ref is %s, senders are notified above %s", units.Size(law.Reference), units.Size(law.NotifiesAbove()))
	}
	return text + fmt.Sprintf("packets are marked above K_min, %s, senders notified above K_max, %s, each flow's once in %v", units.Size(p.Policy.KMin), units.Size(p.Policy.KMax),
		time.Duration(p.Policy.PerFlow))
}
