package config

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnpgate/cnpgate/internal/units"
)

// Effective is the configuration as YAML with the keys that the file has, and, as comments, the defaults of the others and what is calculated for each port. Parse
// reads it to the same configuration.
func (c *Config) Effective() string {
	d := &dump{cfg: c}
	var b strings.Builder
	for _, l := range d.section(reflect.ValueOf(c.document).Elem()) {
		if !l.given {
			b.WriteString("# ")
		}
		b.WriteString(strings.Repeat("  ", l.depth) + l.text + "\n")
	}
	return b.String()
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
	v := lookUp(reflect.ValueOf(c.document).Elem(), key)
	if !v.IsValid() {
		return "none"
	}
	lines := (&dump{cfg: c, thresholds: true}).entry("", v)
	switch {
	case len(lines) == 0:
		return "none"
	case len(lines) > 1:
		given := 0
		for _, l := range lines[1:] {
			if l.given {
				given++
			}
		}
		return fmt.Sprintf("%d lines", given)
	}
	text := strings.TrimPrefix(lines[0].text, ": ")
	if !lines[0].given {
		text += " (default)"
	}
	return text
}

// dump writes a configuration.
type dump struct {
	cfg        *Config
	thresholds bool // whether the defaults of the keys of the mode thresholds apply
}

// dumpLine is a line of YAML, or a comment if it isn't given in the file.
type dumpLine struct {
	depth int
	text  string
	given bool
}

func deeper(lines []dumpLine) []dumpLine {
	for i := range lines {
		lines[i].depth++
	}
	return lines
}

// section is a section's keys.
func (d *dump) section(v reflect.Value) (lines []dumpLine) {
	if profile, ok := v.Addr().Interface().(*profileSection); ok {
		d = &dump{d.cfg, !usesLaw(profile, &d.cfg.document.Notifications)}
	}
	for _, p := range partsOf(v) {
		if placeOf(p.v).given || !p.rule.optional && (d.thresholds || !p.rule.thresholds) {
			lines = append(lines, d.entry(p.key, p.v)...)
		}
	}
	if port, ok := v.Addr().Interface().(*portSection); ok {
		for i := range d.cfg.Ports {
			if p := &d.cfg.Ports[i]; p.Name == port.Name.V {
				lines = append(lines, dumpLine{text: "calculated: " + p.calculated()})
			}
		}
	}
	return lines
}

// entry is a key with its value.
func (d *dump) entry(key string, v reflect.Value) []dumpLine {
	at := placeOf(v)
	header := dumpLine{text: key + ":", given: at.given}
	var below []dumpLine
	var words []string
	switch x := v.Addr().Interface().(type) {
	case scalarValue:
		if !at.valid || x.asWritten() == "" && !at.given {
			return nil
		}
		header.text += " " + yamlText(x.asWritten())
		return []dumpLine{header}
	case reader: // a list or a table
		for _, p := range partsOf(v) {
			if item, ok := p.v.Addr().Interface().(scalarValue); ok {
				words = append(words, yamlText(item.asWritten()))
			} else if p.key == "" {
				below = append(below, dashed(deeper(deeper(d.section(p.v))))...)
			} else {
				below = append(below, deeper(d.entry(yamlText(p.key), p.v))...)
			}
		}
	default:
		below = deeper(d.section(v))
		header.given = slices.ContainsFunc(below, func(l dumpLine) bool { return l.given })
	}
	switch empty := len(below) == 0; {
	case words != nil:
		header.text += " [" + strings.Join(words, ", ") + "]"
	case empty && !at.given:
		return nil
	case empty && v.FieldByName("Items").IsValid():
		header.text += " []"
	case empty || !header.given && at.given:
		header.given, header.text = true, header.text+" {}"
	}
	return append([]dumpLine{header}, below...)
}

// dashed makes a section's keys an entry of a list.
func dashed(lines []dumpLine) []dumpLine {
	for i := range lines {
		if l := &lines[i]; l.given {
			l.depth, l.text = l.depth-1, "- "+l.text
			return lines
		}
	}
	return append([]dumpLine{{depth: 1, text: "- {}", given: true}}, lines...)
}

var plainYAML = regexp.MustCompile(`^[A-Za-z0-9._/][A-Za-z0-9._/=-]*(:[A-Za-z0-9._/=-]+)*$`)

// yamlText is a text as a scalar of YAML. Whether it has quotes makes no difference.
func yamlText(text string) string {
	if plainYAML.MatchString(text) {
		return text
	}
	return strconv.Quote(text)
}

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
