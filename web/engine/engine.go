// Package engine runs a scenario for the playground: with two responses at once, up to the virtual time that the page asks for. It describes the networks and
// what happens in them, decodes notifications, and explains why senders are notified. The page calls it as WebAssembly; it is pure apart from nothing.
package engine

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/cnpgate/cnpgate/internal/yamldoc"
	"github.com/cnpgate/cnpgate/sim"
	"github.com/cnpgate/cnpgate/sim/scenario"
	"github.com/cnpgate/cnpgate/sim/scenarios"
)

// Panes is the number of responses that are shown side by side.
const Panes = 2

// Spec says what to run.
type Spec struct {
	Scenario  string             `json:"scenario"`  // a built-in one, or the name of Text
	Text      string             `json:"text"`      // YAML; "": that of the built-in scenario
	Settings  []scenario.Setting `json:"settings"`  // beyond the controls
	Controls  map[string]string  `json:"controls"`  // values of controls that differ from the scenario's
	Responses [Panes]string      `json:"responses"` // left and right
}

// Engine runs a scenario with two responses.
type Engine struct {
	scenario *scenario.Scenario
	panes    [Panes]*pane
	now      int64
	slice    int64 // the next one
}

// New begins a run.
func New(spec *Spec) (*Engine, error) {
	text := []byte(spec.Text)
	if spec.Text == "" {
		found, ok := scenarios.Find(spec.Scenario)
		if !ok {
			return nil, fmt.Errorf("scenario: %w", yamldoc.CheckWord(spec.Scenario, scenarios.Names()))
		}
		text = found
	}
	settings, err := set(spec, text)
	if err != nil {
		return nil, err
	}
	settings = append(settings, scenario.Setting{Key: "responses", Value: "[" + strings.Join(slices.Compact(slices.Clone(spec.Responses[:])), ", ") + "]"}) // others needn't be prepared
	s, err := scenario.Parse(spec.Scenario, text, settings, noFiles)
	if err != nil {
		return nil, err
	}
	e := &Engine{scenario: s}
	for i, name := range spec.Responses {
		r, err := response(name)
		if err != nil {
			return nil, err
		}
		if e.panes[i], err = newPane(s, r); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// noFiles refuses what a browser can't read.
func noFiles(path string) ([]byte, error) {
	return nil, fmt.Errorf("the playground reads no files, so %s isn't there; cnpgate sim runs such a scenario", path)
}

// response finds a response by its name. A scenario can be run with any, whether it lists it or not.
func response(name string) (scenario.Response, error) {
	var names []string
	for r := scenario.ECN; r <= scenario.Proxy; r++ {
		if r.String() == name {
			return r, nil
		}
		names = append(names, r.String())
	}
	return 0, fmt.Errorf("response: %w", yamldoc.CheckWord(name, names))
}

// slice is how much virtual time a pane may be ahead of the other one while both advance, ns: the least, where much happens, and the most, so that a quiet day
// doesn't take a look at the clock for each 100 microseconds of it.
const (
	leastSlice = 100_000
	mostSlice  = 100_000_000
)

// Advance runs both simulations up to a time, ns since they began, while there is time for it. It reports how far both are.
func (e *Engine) Advance(until int64, more func() bool) (int64, error) {
	until = min(until, e.scenario.Length())
	for e.now < until {
		next := min(e.now+max(e.slice, leastSlice), until)
		e.slice = min(2*max(e.slice, leastSlice), mostSlice)
		for _, p := range e.panes {
			quiet, err := p.advance(next, more)
			if err != nil {
				return e.now, err
			}
			if !quiet {
				e.slice = leastSlice
			}
		}
		if !more() && slices.ContainsFunc(e.panes[:], func(p *pane) bool { return p.now < next }) {
			return min(e.panes[0].now, e.panes[1].now), nil
		}
		e.now = next
		if !more() {
			break
		}
	}
	return e.now, nil
}

// Ended reports whether both simulations have ended.
func (e *Engine) Ended() bool { return e.panes[0].ended && e.panes[1].ended }

// Results are the results up to now, as cnpgate sim -o json prints them.
func (e *Engine) Results() ([]byte, error) {
	var all []*scenario.Outcome
	for _, p := range e.panes {
		o, err := p.run.Outcome()
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	var b bytes.Buffer
	err := scenario.WriteJSON(&b, all)
	return b.Bytes(), err
}

// Texts are the YAML of the scenario, and of each gateway as it is configured for the response on the right.
type Texts struct {
	Scenario string        `json:"scenario"`
	Gateways []GatewayText `json:"gateways"`
}

// GatewayText is a gateway's configuration.
type GatewayText struct {
	Name string `json:"name"`
	YAML string `json:"yaml"`
}

// Texts returns the YAML to copy.
func (e *Engine) Texts() (Texts, error) {
	t := Texts{Scenario: string(e.scenario.Text)}
	gateways, err := e.scenario.Gateways(e.panes[Panes-1].run.Response)
	for _, g := range gateways {
		t.Gateways = append(t.Gateways, GatewayText{g.Name, string(g.YAML)})
	}
	return t, err
}

// pane is one of the simulations.
type pane struct {
	run      *scenario.Running
	gateways []scenario.Gateway
	now      int64
	ended    bool
	notices  notices
	lines    []sim.Line
	sampled  int // samples that the page has
}

func newPane(s *scenario.Scenario, r scenario.Response) (*pane, error) {
	p := &pane{}
	var err error
	if p.gateways, err = s.Gateways(r); err != nil {
		return nil, err
	}
	p.notices.receiver(r)
	p.run, err = s.Start(r, p.notices.passed)
	return p, err
}

// advance runs the simulation up to a time, while there is time for it. It reports whether few events happen until then.
func (p *pane) advance(until int64, more func() bool) (quiet bool, err error) {
	const events = 1 << 10 // between two looks at the clock
	for quiet = true; p.now < until; quiet = false {
		if p.ended {
			p.now = until
			return true, nil
		}
		goesOn, reached, err := p.run.RunUntil(until, events)
		if err != nil {
			return false, err
		}
		p.ended, p.now = !goesOn, p.run.Progress().Now
		if reached {
			p.now = until
			return quiet, nil
		}
		if !more() {
			return false, nil
		}
	}
	return quiet, nil
}
