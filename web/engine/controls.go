package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/cnpgate/cnpgate/internal/yamldoc"
	"github.com/cnpgate/cnpgate/sim/scenario"
)

// Control is a value of the scenario that the page offers to change.
type Control struct {
	Name    string   `json:"name"`
	Label   string   `json:"label"`
	Value   string   `json:"value"` // of the scenario
	Options []string `json:"options"`
}

// knob finds a control in a scenario.
type knob struct {
	name, label string
	options     []string
	value       func(d *document) string                // "": the scenario has no such value
	settings    func(d *document, value string) []entry // that give it another value
}

type entry = scenario.Setting

var knobs = []knob{
	{"rtt", "WAN round trip", []string{"100us", "1ms", "2ms", "5ms", "10ms", "20ms", "40ms", "100ms"}, (*document).rtt, (*document).setRTT},
	{"wan", "WAN rate", []string{"10Gbps", "25Gbps", "50Gbps", "100Gbps", "200Gbps", "400Gbps"}, (*document).wan, (*document).setWAN},
	{"senders", "Senders", []string{"1", "2", "4", "8", "16", "32", "64"}, (*document).senders, (*document).setSenders},
	{"rate", "Rate of a sender", []string{"10Gbps", "25Gbps", "50Gbps", "100Gbps", "200Gbps", "400Gbps"}, (*document).rate, (*document).setRate},
	{"bytes", "Flow size", []string{"1MB", "4MB", "8MB", "25MB", "50MB", "100MB", "200MB", "400MB"}, (*document).bytes, (*document).setBytes},
	{"nic", "NIC", nil, (*document).nic, setting("hosts.nic")},
	{"length", "Longest time", []string{"20ms", "50ms", "100ms", "300ms", "1s", "5s"}, func(d *document) string { return d.at("length") }, setting("length")},
}

// setting makes a control of one key.
func setting(key string) func(*document, string) []entry {
	return func(_ *document, value string) []entry { return []entry{{Key: key, Value: value}} }
}

// Controls lists the controls that a scenario has, with the scenario's own values.
func Controls(text []byte) ([]Control, error) {
	d, err := read(text)
	if err != nil {
		return nil, err
	}
	var all []Control
	for _, k := range knobs {
		value := k.value(d)
		if value == "" {
			continue
		}
		options := k.options
		if k.name == "nic" {
			options = scenario.NICs()
		}
		if !slices.Contains(options, value) {
			options = append([]string{value}, options...)
		}
		all = append(all, Control{k.name, k.label, value, options})
	}
	return all, nil
}

// set translates the controls of a spec into settings of the scenario, after its own settings.
func set(spec *Spec, text []byte) ([]scenario.Setting, error) {
	all := slices.Clone(spec.Settings)
	if len(spec.Controls) == 0 {
		return all, nil
	}
	d, err := read(text)
	if err != nil {
		return nil, err
	}
	names := []string{"seed"}
	for _, k := range knobs {
		names = append(names, k.name)
		value, given := spec.Controls[k.name]
		if !given {
			continue
		}
		if k.value(d) == "" {
			return nil, fmt.Errorf("%s: this scenario has no such control; its YAML can be changed", k.name)
		}
		all = append(all, k.settings(d, value)...)
	}
	for name, value := range spec.Controls {
		if err := yamldoc.CheckWord(name, names); err != nil {
			return nil, fmt.Errorf("control %w", err)
		}
		if name == "seed" {
			all = append(all, scenario.Setting{Key: name, Value: value})
		}
	}
	for _, s := range all {
		if s.Value == "" {
			return nil, fmt.Errorf("%s has no value", s.Key)
		}
	}
	return all, nil
}

// document is a scenario as YAML.
type document struct{ root any }

func read(text []byte) (*document, error) {
	d := &document{}
	if err := yaml.Unmarshal(text, &d.root); err != nil {
		return nil, err
	}
	return d, nil
}

// at is the scalar at a path such as traffic.0.incast.bytes, "" if there is none.
func (d *document) at(path string) string {
	switch v := d.node(path).(type) {
	case nil, map[string]any, []any:
		return ""
	default:
		return fmt.Sprint(v)
	}
}

func (d *document) node(path string) any {
	at := d.root
	for part := range strings.SplitSeq(path, ".") {
		switch v := at.(type) {
		case map[string]any:
			at = v[part]
		case []any:
			n, err := strconv.Atoi(part)
			if err != nil || n >= len(v) {
				return nil
			}
			at = v[n]
		default:
			return nil
		}
	}
	return at
}

// long is the path of the last long link, with its delay and rate.
func (d *document) long() (path, key string) {
	if spans, ok := d.node("topology.dumbbell.spans").([]any); ok && len(spans) > 0 {
		n := strconv.Itoa(len(spans) - 1)
		return "topology.dumbbell.spans." + n, "topology.dumbbell.spans[" + n + "]"
	}
	if d.node("topology.two_dcs.wan") != nil {
		return "topology.two_dcs.wan", "topology.two_dcs.wan"
	}
	return "", ""
}

func (d *document) rtt() string {
	path, _ := d.long()
	delay, err := yamldoc.ParseDuration(d.at(path + ".delay"))
	if path == "" || err != nil {
		return ""
	}
	return duration(2 * int64(delay))
}

func (d *document) setRTT(value string) []entry {
	_, key := d.long()
	rtt, err := yamldoc.ParseDuration(value)
	if err != nil {
		return []entry{{Key: key + ".delay", Value: value}} // the scenario's reader says what is wrong
	}
	return []entry{{Key: key + ".delay", Value: duration(int64(rtt) / 2)}}
}

// duration writes ns as a scenario does.
func duration(ns int64) string {
	switch {
	case ns%1_000_000 == 0:
		return strconv.FormatInt(ns/1_000_000, 10) + "ms"
	case ns%1000 == 0:
		return strconv.FormatInt(ns/1000, 10) + "us"
	}
	return strconv.FormatInt(ns, 10) + "ns"
}

func (d *document) wan() string {
	path, _ := d.long()
	return d.at(path + ".rate")
}

func (d *document) setWAN(value string) []entry {
	_, key := d.long()
	return []entry{{Key: key + ".rate", Value: value}}
}

// senders is their number, if the traffic is an incast from all of them to the one receiver.
func (d *document) senders() string {
	n := d.at("topology.dumbbell.senders")
	count, err := strconv.Atoi(n)
	if err != nil || d.at("topology.dumbbell.receivers") != "1" || d.node("traffic.1") != nil || d.at("traffic.0.incast.to") != n ||
		d.at("traffic.0.incast.from") != fmt.Sprintf("0-%d", count-1) || d.list("hosts.legacy") || d.list("hosts.unresponsive") {
		return ""
	}
	return n
}

// list reports whether a value names single hosts.
func (d *document) list(path string) bool {
	v := d.at(path)
	return v != "" && v != "all"
}

func (d *document) setSenders(value string) []entry {
	from := "0"
	if n, err := strconv.Atoi(value); err == nil && n > 1 {
		from = fmt.Sprintf("0-%d", n-1)
	}
	return []entry{{Key: "topology.dumbbell.senders", Value: value}, {Key: "traffic[0].incast.from", Value: strconv.Quote(from)}, {Key: "traffic[0].incast.to", Value: value}}
}

func (d *document) rate() string {
	if v := d.at("topology.dumbbell.rate"); v != "" {
		return v
	}
	return d.at("topology.two_dcs.rate")
}

func (d *document) setRate(value string) []entry {
	key := "topology.two_dcs.rate"
	if d.node("topology.dumbbell") != nil {
		key = "topology.dumbbell.rate"
	}
	return []entry{{Key: key, Value: value}}
}

// sizes are the keys of the flows' sizes.
func (d *document) sizes() (keys, values []string) {
	traffic, _ := d.node("traffic").([]any)
	for i := range traffic {
		for _, kind := range []string{"incast", "all_to_all", "ring", "tree"} {
			if v := d.at(fmt.Sprintf("traffic.%d.%s.bytes", i, kind)); v != "" {
				keys, values = append(keys, fmt.Sprintf("traffic[%d].%s.bytes", i, kind)), append(values, v)
			}
		}
	}
	return keys, values
}

// bytes is the size of the flows, if all have the same.
func (d *document) bytes() string {
	_, values := d.sizes()
	if values = slices.Compact(values); len(values) == 1 {
		return values[0]
	}
	return ""
}

func (d *document) setBytes(value string) (all []entry) {
	keys, _ := d.sizes()
	for _, k := range keys {
		all = append(all, entry{Key: k, Value: value})
	}
	return all
}

func (d *document) nic() string {
	if v := d.at("hosts.nic"); v != "" {
		return v
	}
	return "paper"
}
