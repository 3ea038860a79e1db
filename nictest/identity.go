package nictest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Identity is what is known of the NIC under test. Nothing of it is measured.
type Identity struct {
	Name  string            `json:"name"`
	Facts map[string]string `json:"facts,omitempty"` // as tools print them
}

// Bounds of pasted output.
const (
	maxPasted = 64 << 10 // bytes
	maxFacts  = 64
)

// Paste adds what tools have printed about the NIC: lines of "key: value", as by ethtool -i and mlxfwmanager, and mlxfwmanager's line of the firmware.
func (d *Identity) Paste(text string) error {
	if len(text) > maxPasted {
		return fmt.Errorf("%d bytes about the NIC; expected at most %d, as ethtool -i or mlxfwmanager prints", len(text), maxPasted)
	}
	if d.Facts == nil {
		d.Facts = map[string]string{}
	}
	before := len(d.Facts)
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(line, ":")
		if f := strings.Fields(line); !ok && len(f) > 1 && f[0] == "FW" {
			key, value, ok = "firmware", f[1], true
		}
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if ok && key != "" && value != "" && len(d.Facts) < maxFacts {
			d.Facts[key] = value
		}
	}
	if len(d.Facts) == before {
		return fmt.Errorf("no line of the text about the NIC has the form \"key: value\"; expected what ethtool -i or mlxfwmanager prints")
	}
	if d.Name == "" {
		d.Name = d.first("Description", "Device Type", "driver")
	}
	return nil
}

func (d *Identity) first(keys ...string) string {
	for _, k := range keys {
		if v := d.Facts[k]; v != "" {
			return v
		}
	}
	return ""
}

// summary names the NIC in a line.
func (d *Identity) summary() string {
	if d.Name == "" && len(d.Facts) == 0 {
		return "NIC not named"
	}
	s := d.Name
	if f := d.first("firmware-version", "firmware"); f != "" {
		s += ", firmware " + f
	}
	if v := d.Facts["driver"]; v != "" {
		s += ", driver " + v + " " + d.Facts["version"]
	}
	return strings.TrimSpace(s)
}

// Counts are a NIC's counters by name.
type Counts map[string]uint64

// counterNames are the counters of mlx5 that tell of CNPs.
var counterNames = []string{"rp_cnp_handled", "rp_cnp_ignored", "np_cnp_sent", "np_ecn_marked_roce_packets"}

// ParseCounts reads counters that are pasted as "name value", "name: value" or "path/name:value", a line each.
func ParseCounts(text string) (Counts, error) {
	if len(text) > maxPasted {
		return nil, fmt.Errorf("%d bytes of counters; expected at most %d", len(text), maxPasted)
	}
	c := Counts{}
	words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n:=,/", r) })
	for i := 0; i+1 < len(words); i++ {
		if v, err := strconv.ParseUint(words[i+1], 10, 64); err == nil && slices.Contains(counterNames, words[i]) {
			c[words[i]] = v
		}
	}
	if len(c) == 0 {
		return nil, fmt.Errorf("none of the counters %s is in the text; expected lines such as \"rp_cnp_handled 17\"", strings.Join(counterNames, ", "))
	}
	return c, nil
}

// Comparison is what the sender's NIC has counted during the test, beside what it was sent.
type Comparison struct {
	Sent      uint64           `json:"cnps_sent"` // of all forms of a CNP
	Increased map[string]int64 `json:"increase"`
	Says      []string         `json:"says"`
}

// Compare compares the counters before and after with what the report's trials sent.
func (x *Report) Compare(before, after Counts) {
	c := &Comparison{Increased: map[string]int64{}}
	for i := range x.Trials {
		if t := &x.Trials[i]; t.Group != Pausing {
			c.Sent += uint64(t.Sent)
		}
	}
	for name, v := range after {
		c.Increased[name] = int64(v - before[name])
	}
	handled, known := c.Increased["rp_cnp_handled"]
	ignored := c.Increased["rp_cnp_ignored"]
	switch {
	case !known:
	case handled == 0 && x.Verdict == ObeysCNPs:
		c.Says = append(c.Says, "the rate fell, but the NIC has counted no CNP: the counters may be of another port")
	case handled == 0:
		c.Says = append(c.Says, "the NIC has handled no CNP: its reaction point may be switched off (roce_rp)")
	case x.Verdict == IgnoresCNPs:
		c.Says = append(c.Says, "the NIC has handled CNPs, but the rate did not fall: another limit may be lower")
	}
	if known {
		c.Says = append(c.Says, fmt.Sprintf("%d CNPs sent, %d handled, %d ignored, %d not counted", c.Sent, handled, ignored, int64(c.Sent)-handled-ignored))
	}
	x.Counters = c
}
