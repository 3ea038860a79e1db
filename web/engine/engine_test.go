package engine_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/internal/testkit/effort"
	"github.com/cnpgate/cnpgate/sim/scenario"
	"github.com/cnpgate/cnpgate/sim/scenarios"
	"github.com/cnpgate/cnpgate/web/engine"
)

func always() bool { return true }

func start(t *testing.T, name string, controls map[string]string) (*engine.Engine, *engine.Setup) {
	t.Helper()
	e, err := engine.New(&engine.Spec{Scenario: name, Controls: controls, Responses: [engine.Panes]string{"ecn", "standard-cnp"}})
	if err != nil {
		t.Fatal(err)
	}
	return e, e.Setup()
}

// TestSameResults: in steps of any size, the results are those of a run at once.
func TestSameResults(t *testing.T) {
	controls := map[string]string{"bytes": "2MB", "rtt": "1ms", "seed": "7"}
	e, u := start(t, "incast-10ms", controls)
	for until := int64(1); !e.Ended(); until += until / 3 * 2 {
		until++
		if _, err := e.Advance(until, always); err != nil {
			t.Fatal(err)
		}
		e.Frame(u)
	}
	got, err := e.Results()
	if err != nil {
		t.Fatal(err)
	}
	text, _ := scenarios.Find("incast-10ms")
	var all []*scenario.Outcome
	for _, r := range []scenario.Response{scenario.ECN, scenario.StandardCNP} {
		s, err := scenario.Parse("incast-10ms", text, []scenario.Setting{
			{Key: "traffic[0].incast.bytes", Value: "2MB"}, {Key: "topology.dumbbell.spans[0].delay", Value: "500us"}, {Key: "seed", Value: "7"}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		o, err := s.Run(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	var want bytes.Buffer
	if err := scenario.WriteJSON(&want, all); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("in steps:\n%s\nat once:\n%s", got, want.Bytes())
	}
}

// TestNotices: what the page draws on the left are CNPs of the receiver that cross the WAN, on the right notifications of the gateway that don't; each can be decoded,
// with a source of each field, and the sender that one goes to is explained.
func TestNotices(t *testing.T) {
	e, u := start(t, "incast-1ms", nil)
	gateway := slices.IndexFunc(u.Nodes, func(n engine.Node) bool { return n.Kind == "gateway" })
	seen, crossed := [engine.Panes]int{}, [engine.Panes]map[uint64]bool{{}, {}}
	for until := int64(100_000); until < 4_000_000; until += 100_000 {
		if _, err := e.Advance(until, always); err != nil {
			t.Fatal(err)
		}
		for i, p := range e.Frame(u).Panes {
			for _, n := range p.Notices {
				seen[i]++
				if n.Built != (i == 1 && n.Kind == "standard-cnp" && u.Nodes[n.From].Site == 0 && !crossed[i][n.ID]) {
					t.Fatalf("pane %d: %+v", i, n)
				}
				if u.Nodes[n.From].Site != u.Nodes[n.To].Site {
					crossed[i][n.ID] = true
				}
				if n.From == gateway && u.Nodes[n.To].Kind != "switch" {
					t.Fatalf("pane %d: %+v", i, n)
				}
				if seen[i]%50 == 1 {
					decode(t, e, i, n.Number)
				}
			}
		}
	}
	if seen[0] == 0 || seen[1] == 0 || len(crossed[0]) == 0 {
		t.Errorf("%d and %d notifications on links, %d crossed the WAN", seen[0], seen[1], len(crossed[0]))
	}
	if len(u.Gateways[1]) != 1 || u.Gateways[1][0].Reference == 0 || u.Gateways[0][0].KMin == 0 || u.Sites != 2 || len(u.Senders) != 8 {
		t.Errorf("%+v", u)
	}
	for pane, notified := range []bool{false, true} {
		x, err := e.Explain(pane, 3)
		if err != nil {
			t.Fatal(err)
		}
		if len(x.Flows) != 1 || x.Flows[0].Gateway != "west" || len(x.Flows[0].Gates) < 8 {
			t.Fatalf("%+v", x)
		}
		last := x.Flows[0].Gates[len(x.Flows[0].Gates)-1]
		if strings.Contains(last.Text, "standard-cnp") != notified {
			t.Errorf("pane %d: %+v", pane, last)
		}
	}
	if _, err := e.Explain(1, 8); err == nil {
		t.Error("the receiver is explained as a sender")
	}
	if _, err := e.Decode(1, 1<<40); err == nil {
		t.Error("a notification that never was is decoded")
	}
}

func decode(t *testing.T, e *engine.Engine, pane int, number uint64) {
	t.Helper()
	d, err := e.Decode(pane, number)
	if err != nil {
		t.Fatal(err)
	}
	if d.Kind != "standard-cnp" || d.Refused != "" || len(d.Fields) < 15 {
		t.Errorf("%+v", d)
	}
	for _, f := range d.Fields {
		if f.Source == "" {
			t.Errorf("%s, %s: no source", f.Layer, f.Name)
		}
	}
}

// TestMenu: the menu has each built-in scenario once, and each starts, with its controls as they are.
func TestMenu(t *testing.T) {
	var names []string
	for _, g := range engine.Menu() {
		for _, s := range g.Scenarios {
			names = append(names, s.Name)
			text, ok := scenarios.Find(s.Name)
			if !ok {
				t.Errorf("%s is no scenario", s.Name)
				continue
			}
			controls, err := engine.Controls(text)
			if err != nil {
				t.Fatal(err)
			}
			values := map[string]string{}
			for _, c := range controls {
				values[c.Name] = c.Value
			}
			if len(names)%(6*effort.Short+6*effort.Race+effort.Long) != 0 { // a start takes half a second
				continue
			}
			e, u := start(t, s.Name, values)
			if _, err := e.Advance(10_000, always); err != nil {
				t.Fatal(err)
			}
			plain, _ := start(t, s.Name, nil)
			if _, err := plain.Advance(10_000, always); err != nil {
				t.Fatal(err)
			}
			a, errA := e.Results()
			b, errB := plain.Results()
			if errA != nil || errB != nil || !bytes.Equal(a, b) {
				t.Errorf("%s: its own values as controls change it: %v, %v", s.Name, errA, errB)
			}
			if f, err := json.Marshal(e.Frame(u)); err != nil || len(f) == 0 || len(u.Spans) == 0 || len(values) < 4 {
				t.Errorf("%s: %v, %+v", s.Name, err, u)
			}
			if texts, err := e.Texts(); err != nil || len(texts.Gateways) == 0 || texts.Scenario == "" {
				t.Errorf("%s: %v", s.Name, err)
			}
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, scenarios.Names()) {
		t.Errorf("the menu has %q, built in are %q", names, scenarios.Names())
	}
}

// TestSameTwice: the same response on both sides gives the same.
func TestSameTwice(t *testing.T) {
	e, err := engine.New(&engine.Spec{Scenario: "incast-1ms", Responses: [engine.Panes]string{"ppfc", "ppfc"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Advance(200_000, always); err != nil {
		t.Fatal(err)
	}
	var all []struct{ Response string }
	text, err := e.Results()
	if err != nil || json.Unmarshal(text, &all) != nil || len(all) != 2 || all[0] != all[1] || all[0].Response != "ppfc" {
		t.Errorf("%v: %s", err, text)
	}
}

// TestMistakes: what can't be run says why.
func TestMistakes(t *testing.T) {
	right := [engine.Panes]string{"ecn", "standard-cnp"}
	for _, c := range []struct {
		spec engine.Spec
		says string
	}{
		{engine.Spec{Scenario: "incast", Responses: right}, `"incast" is not known`},
		{engine.Spec{Scenario: "incast-1ms", Responses: [engine.Panes]string{"ecn", "cnp"}}, `"cnp" is not known`},
		{engine.Spec{Scenario: "incast-1ms", Responses: right, Controls: map[string]string{"rtts": "1ms"}}, `"rtts" is not known`},
		{engine.Spec{Scenario: "incast-1ms", Responses: right, Controls: map[string]string{"rtt": "fast"}}, "delay"},
		{engine.Spec{Scenario: "two-dcs", Responses: right, Controls: map[string]string{"senders": "3"}}, "no such control"},
		{engine.Spec{Scenario: "mine", Text: "name: x", Responses: right}, "length"},
		{engine.Spec{Scenario: "mine", Text: "topology: {file: a.txt}\nname: x\nlength: 1ms\ntraffic: [{incast: {}}]", Responses: right}, "reads no files"},
	} {
		if _, err := engine.New(&c.spec); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, expected %s", c.spec, err, c.says)
		}
	}
}
