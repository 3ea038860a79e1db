package config

import (
	"crypto/sha256"
	"encoding/hex"
	"reflect"
	"strings"

	"github.com/cnpgate/cnpgate/internal/units"
)

// Reload is what a change of a key needs while the gateway runs.
type Reload uint8

const (
	_       Reload = iota
	Live           // a reload changes it
	Resize         // a reload changes it, up to what memory was reserved for at the start
	Restart        // only a restart changes it
)

// reloadNames are the words of the tag "reload", and of docs/configuration.md.
var reloadNames = []string{"", "live", "resize", "restart"}

func (r Reload) String() string { return reloadNames[r] }

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
func (c *Config) Changes(before *Config) []string {
	var keys []string
	for _, d := range c.differences(before) {
		keys = append(keys, d.path)
	}
	return keys
}

// CheckReload reports whether a gateway that was started with a configuration can change to this one while it runs. The error is an *Error with each
// key that prevents it.
func (c *Config) CheckReload(started *Config) error {
	r := &report{file: c.File.Name}
	for _, d := range c.differences(started) {
		if d.needs.reload == Restart {
			r.problem(d.place, "%s: %s", needsRestart, d.needs.because)
		}
	}
	if err := r.err(); err != nil {
		return err // with other ports, those below can't be compared
	}
	for i := range c.Ports {
		checkResize(r, &c.document.Ports.Items[i], i, c.Ports, started.Ports)
	}
	return r.err()
}

const needsRestart = "differs from its value when the gateway was started, and a reload can't change it; restart the gateway, or undo the change"

// checkResize reports what port i needs that was not reserved or calculated at the start.
func checkResize(r *report, s *portSection, i int, ports, before []Port) {
	now, started := &ports[i], &before[i]
	if now.Frames > started.Frames {
		r.problem(s.QueueCapacity.place, "%s is more than the %s for which memory was reserved at the start; expected at most that, or restart the gateway",
			units.Exact(now.Capacity, units.Sizes), units.Exact(started.Capacity, units.Sizes))
	}
	switch {
	case now.Paced > 0 && started.Paced == 0:
		r.problem(s.Pacing.Enabled.place, "pacing was off at the start, so no memory is reserved for it; restart the gateway to turn it on")
	case now.Paced > started.Paced:
		r.problem(s.Pacing.Capacity.place, "%s is more than the %s for which memory was reserved at the start; expected at most that, or restart the gateway",
			units.Exact(now.Paced, units.Sizes), units.Exact(started.Paced, units.Sizes))
	}
	switch f, of := now.FlowControl, started.FlowControl; {
	case (f == nil) != (of == nil):
		r.problem(s.FlowControl.place, needsRestart)
	case f != nil && f.Speed != of.Speed:
		r.problem(s.Rate.place, "is also the speed of flow_control, which a reload can't change; set flow_control.speed and restart the gateway, or undo the change")
	}
	f, of := ports[now.Peer].FlowControl, before[now.Peer].FlowControl
	for class, name := range now.ClassNames {
		if f != nil && of != nil && f.Lossless[class] != of.Lossless[class] {
			r.problem(s.QueueCapacity.place, "%s would change XOff of the lossless class %s, which a reload can't do; restart the gateway, or undo the change",
				units.Exact(now.Capacity, units.Sizes), name)
		}
	}
}

// difference is a key with two values.
type difference struct {
	place
	needs needs
}

// needs is what a change of a key needs, and for a restart why.
type needs struct {
	reload  Reload
	because string
}

// differences are the keys whose values differ from those in before.
func (c *Config) differences(before *Config) (all []difference) {
	compare(reflect.ValueOf(c.document).Elem(), reflect.ValueOf(before.document).Elem(), needs{Live, ""}, func(at place, n needs) { all = append(all, difference{at, n}) })
	return all
}

// compare finds the differences of two values of one type. A key without a reload tag is treated like its section.
func compare(now, before reflect.Value, n needs, differs func(at place, n needs)) {
	a, b := partsOf(now), partsOf(before)
	same := len(a) == len(b) && placeOf(now).valid == placeOf(before).valid
	for i := 0; same && i < len(a); i++ {
		same = a[i].key == b[i].key
	}
	if x, ok := now.Addr().Interface().(scalarValue); ok {
		same = same && x.value() == before.Addr().Interface().(scalarValue).value()
	}
	if !same {
		differs(*placeOf(now), n)
		return
	}
	for i := range a {
		compare(a[i].v, b[i].v, a[i].rule.needsIn(n), differs)
	}
}

// needsIn is what a change of a key in a section needs.
func (rl *rule) needsIn(section needs) needs {
	if rl.reload != 0 {
		section.reload = rl.reload
	}
	if rl.because != "" {
		section.because = rl.because
	}
	return section
}

// Fault is a key whose value can't be used on the present host.
type Fault struct {
	Key string // such as ports[0].device
	Err error
}

// Refused is an *Error with the positions of the faults in the file, nil without faults.
func (c *Config) Refused(faults []Fault) error {
	r := &report{file: c.File.Name}
	for _, f := range faults {
		at := place{path: f.Key}
		if v := lookUp(reflect.ValueOf(c.document).Elem(), f.Key); v.IsValid() {
			at = *placeOf(v)
		}
		r.problem(at, "%s", strings.TrimPrefix(f.Err.Error(), "dpdk: "))
	}
	return r.err()
}

// lookUp returns the value of a key within a part of a document, the zero Value if it isn't there.
func lookUp(v reflect.Value, key string) reflect.Value {
	if placeOf(v).path == key {
		return v
	}
	for _, p := range partsOf(v) {
		if found := lookUp(p.v, key); found.IsValid() {
			return found
		}
	}
	return reflect.Value{}
}
