package nictest

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/units"
)

// Report is the result of a test, for programs.
type Report struct {
	NIC     Identity `json:"nic"`
	Sender  string   `json:"sender"`
	Tool    string   `json:"tool"`
	Verdict string   `json:"verdict"`           // obeys CNPs, or ignores CNPs, or unknown
	Stopped string   `json:"stopped,omitempty"` // why the test ended early
	Result
	Forms    []FormResult `json:"forms"`
	Suggest  Suggestion   `json:"suggestion"`
	Counters *Comparison  `json:"counters,omitempty"`
	File     string       `json:"profile_file"` // for hosts.nic of cnpgate sim
}

// FormResult is what a sender did on a form of notification.
type FormResult struct {
	Form    string `json:"form"`
	About   string `json:"about"`
	Verdict string `json:"verdict"`
}

// The verdicts on a form.
const (
	Obeyed  = "obeyed"
	AsCNP   = "as a standard CNP" // reduced, as much as by standard CNPs: what the format asks for besides is ignored
	Ignored = "ignored"
	Harmful = "harmful" // the rate didn't come back
	Untried = "not tried"
)

// The verdicts on a sender.
const (
	ObeysCNPs   = "obeys CNPs"
	IgnoresCNPs = "ignores CNPs"
	Unknown     = "unknown"
)

// Suggestion is a configuration of the gateway for this sender.
type Suggestion struct {
	Formats []string `json:"accepts"`
	Source  string   `json:"source,omitempty"`     // receiver or gateway
	Spacing int64    `json:"spacing_ns,omitempty"` // of CNPs: at shorter distances they reduce the rate little more
	Needs   []string `json:"needs,omitempty"`      // fields of a CNP that the sender insists on
	YAML    string   `json:"yaml"`
}

// NewReport makes the report of a session about a sender; sender is its address.
func NewReport(r *Result, nic Identity, sender, tool string) *Report {
	x := &Report{NIC: nic, Sender: sender, Tool: tool, Result: *r, Verdict: Unknown}
	tried := false
	for i := range r.Trials {
		t := &r.Trials[i]
		tried = tried || t.Form == baseForm && t.Sent > 0
		if t.Group == FormOf || t.Group == Pausing {
			x.Forms = append(x.Forms, FormResult{t.Form, About(t.Form), r.verdict(t)})
		}
	}
	switch {
	case r.Profile.StandardCNP:
		x.Verdict = ObeysCNPs
	case tried && !r.Unsteady:
		x.Verdict = IgnoresCNPs
	}
	x.suggest()
	x.File = r.Profile.file(nic, sender, tool, r.LineRate, x.Suggest.Formats)
	return x
}

// verdict judges a trial of a form.
func (r *Result) verdict(t *TrialResult) string {
	switch v := &t.Response; {
	case t.Skipped != "":
		return Untried
	case !v.Reduced && (r.Unsteady || t.Late > 0):
		return Unknown
	case !r.reacted(t):
		return Ignored
	case v.Recovered < 0:
		return Harmful
	case !slices.Contains(packet.FormatNames, t.Form):
		return Obeyed
	}
	for i := range r.Trials {
		base := &r.Trials[i]
		if base.Form != baseForm || base.Group != FormOf || !base.Response.Reduced {
			continue
		}
		const depths, parts = 0.1, 0.3
		v, w := &t.Response, &base.Response
		if math.Abs(v.Depth-w.Depth) < depths && math.Abs(v.Lost-w.Lost) < parts*w.Lost {
			return AsCNP
		}
	}
	return Obeyed
}

// of is the verdict on a form.
func (x *Report) of(name string) string {
	for _, f := range x.Forms {
		if f.Form == name {
			return f.Verdict
		}
	}
	return Untried
}

// suggest fills in the suggestion.
func (x *Report) suggest() {
	s := &x.Suggest
	for _, name := range packet.FormatNames {
		if x.of(name) == Obeyed {
			s.Formats = append(s.Formats, name)
		}
	}
	base, gateway := x.Profile.StandardCNP, x.of("source-gateway") == Obeyed
	if base || gateway {
		s.Formats = append(s.Formats, baseForm)
		s.Source = "receiver"
		if !base {
			s.Source = "gateway"
		}
	}
	for _, f := range x.Forms {
		if d := formOf(f.Form); f.Verdict == Ignored && d.needs != "" && base {
			s.Needs = append(s.Needs, d.needs)
		}
	}
	s.Spacing = x.spacing()
	s.YAML = x.yaml()
}

// spacing is the greatest distance of CNPs that cut almost as deep as closer ones; 0 if no trial tells.
func (x *Report) spacing() (most int64) {
	deepest := 0.0
	for i := range x.Trials {
		if t := &x.Trials[i]; t.Group == Spacing {
			deepest = max(deepest, t.Response.Depth)
		}
	}
	for i := range x.Trials {
		const almost = 0.9
		if t := &x.Trials[i]; t.Group == Spacing && t.Response.Reduced && t.Response.Depth >= almost*deepest {
			most = max(most, t.Spacing)
		}
	}
	return most
}

// yaml is the suggested part of the gateway's configuration.
func (x *Report) yaml() string {
	bits := 32
	if strings.Contains(x.Sender, ":") {
		bits = 128
	}
	s := &x.Suggest
	var b strings.Builder
	fmt.Fprintf(&b, "endpoints: [{prefix: \"%s/%d\", accepts: [%s]}]\n", x.Sender, bits, strings.Join(s.Formats, ", "))
	if s.Source != "" {
		fmt.Fprintf(&b, "notifications: {standard_cnp: {enabled: true, source: %s}}\n", s.Source)
	}
	return b.String()
}

// file is a profile as a file for hosts.nic of the simulator. Its values are within the bounds of the keys.
func (p *Profile) file(nic Identity, sender, tool string, line float64, formats []string) string {
	var b strings.Builder
	name := nic.Name
	if name == "" {
		name = "measured"
	}
	fmt.Fprintf(&b, "name: %q\n", name)
	fmt.Fprintf(&b, "source: %q\n", fmt.Sprintf("measured by %s with %s at %s; %s", tool, sender, units.Rate(line), nic.summary()))
	var obeys []string
	if p.StandardCNP {
		obeys = append(obeys, baseForm)
	}
	for _, f := range formats {
		if f = strings.TrimSuffix(f, "-icmpv6"); f != baseForm && !slices.Contains(obeys, f) {
			obeys = append(obeys, f)
		}
	}
	fmt.Fprintf(&b, "obeys: [%s]\n", strings.Join(obeys, ", "))
	if !p.StandardCNP {
		return b.String()
	}
	if p.DelayMax > 0 {
		fmt.Fprintf(&b, "reaction_delay: %dns\nreaction_delay_max: %dns\n", p.Delay, p.DelayMax)
	}
	d := &p.DCQCN
	cut := "at-once"
	if d.AtPeriodEnd {
		cut = "period"
	}
	ns := func(v int64) int64 { return min(max(v, 100), second) }
	rate := func(v int64) int64 { return max(v, 1000) }
	fmt.Fprintf(&b, "dcqcn:\n  cut: %s\n  clamp_target: %t\n", cut, !d.HoldTarget)
	fmt.Fprintf(&b, "  g: %.6f\n  alpha_timer: %dns\n  decrease_interval: %dns\n  rate_timer: %dns\n", max(d.G, 1e-6), ns(d.AlphaTimer), ns(d.DecreaseInterval), ns(d.RateTimer))
	fmt.Fprintf(&b, "  byte_counter: %dB\n  fast_recovery: %d\n", max(0, d.ByteCounter), d.FastRecovery)
	fmt.Fprintf(&b, "  additive_increase: %dbps\n  hyper_increase: %dbps\n  min_rate: %dbps\n", rate(d.AdditiveIncrease), rate(d.HyperIncrease), rate(d.MinRate))
	return b.String()
}
