package metrics

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"testing"
)

// dashboard is what Grafana reads, as far as the tests look at it.
type dashboard struct {
	Title, UID    string
	SchemaVersion int
	Panels        []panel
	Templating    struct {
		List []struct{ Name, Type, Definition string }
	}
	Annotations struct{ List []struct{ Name, Expr string } }
}

type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ H, W, X, Y int }
	FieldConfig              struct{ Defaults struct{ Unit string } }
	Targets                  []struct {
		RefID, Expr, LegendFormat string
		Datasource                struct{ Type, UID string }
	}
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile(deployed + "grafana/cnpgate.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestDashboard: panels lie beside one another within Grafana's 24 columns, ask the data source that the user chooses, and name only metrics and
// variables that exist.
func TestDashboard(t *testing.T) {
	d, names, n := readDashboard(t), exposed(t), 0
	if d.Title == "" || d.UID == "" || d.SchemaVersion < 36 {
		t.Errorf("title %q, uid %q, schemaVersion %d", d.Title, d.UID, d.SchemaVersion)
	}
	variables := []string{"__rate_interval"}
	for _, v := range d.Templating.List {
		variables = append(variables, v.Name)
		if wrong, _ := checkExpression(v.Definition, names); len(wrong) > 0 {
			t.Errorf("the variable %s: there is no %q", v.Name, wrong)
		}
	}
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.ID == 0 || p.Title == "" {
			t.Errorf("panel %q has the ID %d", p.Title, p.ID)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Errorf("%s lies over %q or outside, at %d, %d", p.Title, other, x, y)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Description == "" || p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0 {
			t.Errorf("%s lacks a description, a unit or a query", p.Title)
		}
		refs := map[string]bool{}
		for _, q := range p.Targets {
			wrong, found := checkExpression(q.Expr, names)
			for _, v := range regexp.MustCompile(`\$(\w+)`).FindAllStringSubmatch(q.Expr, -1) {
				if !slices.Contains(variables, v[1]) {
					wrong = append(wrong, "the variable "+v[1])
				}
			}
			if n += found; len(wrong) > 0 || found == 0 {
				t.Errorf("%s: %s: there is no %q", p.Title, q.Expr, wrong)
			}
			if refs[q.RefID] || q.RefID == "" || q.LegendFormat == "" || q.Datasource.UID != "${datasource}" {
				t.Errorf("%s: the query %+v", p.Title, q)
			}
			refs[q.RefID] = true
		}
	}
	if n < 20 {
		t.Errorf("%d metrics found in the dashboard", n)
	}
}
