package config

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/cnpgate/cnpgate/internal/units"
	"github.com/cnpgate/cnpgate/internal/yamldoc"
)

// File is the file of a configuration.
type File struct {
	Name string
	Text []byte
}

// Hash is the SHA-256 of the text, in hexadecimal: two gateways with the same hash use the same file.
func (f *File) Hash() string {
	sum := sha256.Sum256(f.Text)
	return hex.EncodeToString(sum[:])
}

// Changes are the keys whose values differ from those in before, such as ports[0].rate, in the order of the schema. If a list or table has more or
// fewer entries, Changes has its key.
func (c *Config) Changes(before *Config) (keys []string) {
	yamldoc.Compare(c.root, before.root, func(now *yamldoc.Node, _ yamldoc.Needs) { keys = append(keys, now.Path) })
	return keys
}

// CheckReload reports whether a gateway that was started with a configuration can change to this one while it runs. The error is an *Error with each
// key that prevents it.
func (c *Config) CheckReload(started *Config) error {
	r := c.doc.Again()
	yamldoc.Compare(c.root, started.root, func(now *yamldoc.Node, needs yamldoc.Needs) {
		if needs.Reload == yamldoc.Restart {
			r.Problem(now, "%s: %s", needsRestart, needs.Because)
		}
	})
	if err := r.Err(); err != nil {
		return err // with other ports, those below can't be compared
	}
	for i := range c.Ports {
		checkResize(r, &c.file.Ports[i], i, c.Ports, started.Ports)
	}
	return r.Err()
}

const needsRestart = "differs from its value when the gateway was started, and a reload can't change it; restart the gateway, or undo the change"

// checkResize reports what port i needs that was not reserved or calculated at the start.
func checkResize(r *yamldoc.Document, s *portSection, i int, ports, before []Port) {
	now, started := &ports[i], &before[i]
	if now.Frames > started.Frames {
		r.Problem(&s.QueueCapacity, "%s needs memory for %d frames, and it was reserved for %d at the start; expected at most %s, or restart the gateway",
			units.Exact(now.Capacity, units.Sizes), now.Frames, started.Frames, units.Exact(uint64(started.Frames)*frameShare, units.Sizes))
	}
	switch {
	case now.Paced > 0 && started.Paced == 0:
		r.Problem(&s.Pacing.Enabled, "pacing was off at the start, so no memory is reserved for it; restart the gateway to turn it on")
	case now.Paced > started.Paced:
		r.Problem(&s.Pacing.Capacity, "%s is more than the %s for which memory was reserved at the start; expected at most that, or restart the gateway",
			units.Exact(now.Paced, units.Sizes), units.Exact(started.Paced, units.Sizes))
	}
	switch f, of := now.FlowControl, started.FlowControl; {
	case (f == nil) != (of == nil):
		r.Problem(&s.FlowControl, needsRestart)
	case f != nil && f.Speed != of.Speed:
		r.Problem(&s.Rate, "is also the speed of flow_control, which a reload can't change; set flow_control.speed and restart the gateway, or undo the change")
	}
	f, of := ports[now.Peer].FlowControl, before[now.Peer].FlowControl
	for class, name := range now.ClassNames {
		if f != nil && of != nil && f.Lossless[class] != of.Lossless[class] {
			r.Problem(&s.QueueCapacity, "%s would change XOff of the lossless class %s, which a reload can't do; restart the gateway, or undo the change",
				units.Exact(now.Capacity, units.Sizes), name)
		}
	}
}

// Fault is a key whose value can't be used on the present host.
type Fault struct {
	Key string // such as ports[0].device
	Err error
}

// Refused is an *Error with the positions of the faults in the file, nil without faults.
func (c *Config) Refused(faults []Fault) error {
	r := c.doc.Again()
	for _, f := range faults {
		at := c.root.Find(f.Key)
		if at == nil {
			at = &yamldoc.Node{Path: f.Key}
		}
		r.Problem(at, "%s", strings.TrimPrefix(f.Err.Error(), "dpdk: "))
	}
	return r.Err()
}
