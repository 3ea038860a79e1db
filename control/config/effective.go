package config

import (
	"fmt"
	"reflect"
	"regexp"
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
	for _, f := range fieldsOf(v.Type()) {
		given := v.Field(f.index).Addr().Interface().(interface{ Given() bool }).Given()
		if given || !f.rule.optional && (d.thresholds || !f.rule.thresholds) {
			lines = append(lines, d.entry(f.key, v.Field(f.index))...)
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
	if x, ok := v.Addr().Interface().(reader); ok {
		return x.lines(key, d)
	}
	lines := d.section(v)
	header := dumpLine{text: key + ":"}
	for _, l := range lines {
		header.given = header.given || l.given
	}
	switch {
	case !header.given && v.Addr().Interface().(interface{ Given() bool }).Given():
		header.given, header.text = true, key+": {}"
	case len(lines) == 0:
		return nil
	}
	return append([]dumpLine{header}, deeper(lines)...)
}

func (s *scalar[T, K]) lines(key string, _ *dump) []dumpLine {
	if !s.valid || s.written == "" && !s.given {
		return nil
	}
	return []dumpLine{{text: key + ": " + yamlText(s.written), given: s.given}}
}

func (l *list[T]) lines(key string, d *dump) []dumpLine {
	if len(l.Items) == 0 {
		if !l.given {
			return nil
		}
		return []dumpLine{{text: key + ": []", given: true}}
	}
	var words []string
	lines := []dumpLine{{text: key + ":", given: l.given}}
	for i := range l.Items {
		item := reflect.ValueOf(&l.Items[i]).Elem()
		if x, ok := item.Addr().Interface().(reader); ok {
			for _, line := range x.lines("", d) {
				words = append(words, strings.TrimPrefix(line.text, ": "))
			}
			continue
		}
		lines = append(lines, dashed(deeper(deeper(d.section(item))))...)
	}
	if words != nil {
		lines[0].text += " [" + strings.Join(words, ", ") + "]"
	}
	return lines
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

func (t *table[T]) lines(key string, d *dump) []dumpLine {
	if !t.given {
		return nil
	}
	lines := []dumpLine{{text: key + ":", given: true}}
	for i, name := range t.Names {
		lines = append(lines, deeper(d.entry(yamlText(name), reflect.ValueOf(&t.Entries[i]).Elem()))...)
	}
	if len(t.Names) == 0 {
		lines[0].text += " {}"
	}
	return lines
}

// lines is for the sections of other documents, which are never shown.
func (*Embedded) lines(string, *dump) []dumpLine { return nil }

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
