package metrics

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/cnpgate/cnpgate/dataplane/counters"
)

const deployed = "../../deploy/"

// rules are what a file of rules for Prometheus has, as far as the tests read it.
type rules struct {
	Groups []ruleGroup
}

type ruleGroup struct {
	Name  string
	Rules []rule
}

type rule struct {
	Alert  string `yaml:",omitempty"`
	Record string `yaml:",omitempty"`
	Expr   string
}

func readRules(t *testing.T, path string) (all rules) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// exposed are the names of the gateway's time series, and those that the shipped rules record.
func exposed(t *testing.T) []string {
	t.Helper()
	families, err := registry(source(t)).Gather()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range families {
		if name := f.GetName(); strings.HasPrefix(name, prefix) {
			names = append(names, name, name+"_bucket", name+"_sum", name+"_count")
		}
	}
	for i := range catalogue { // also what has no value in this gateway
		names = append(names, regexp.MustCompile(`fqName: "([^"]+)"`).FindStringSubmatch(catalogue[i].desc.String())[1])
	}
	for _, g := range readRules(t, deployed+"prometheus/records.yaml").Groups {
		for _, r := range g.Rules {
			names = append(names, r.Record)
		}
	}
	return names
}

// checkExpression says what an expression names that doesn't exist, and how many metrics it names.
func checkExpression(expr string, names []string) (wrong []string, n int) {
	for _, name := range regexp.MustCompile(`\bcnpgate[_:][\w:]+`).FindAllString(expr, -1) {
		if n++; !slices.Contains(names, name) {
			wrong = append(wrong, name)
		}
	}
	for _, m := range regexp.MustCompile(`reason=~?"([^"]+)"`).FindAllStringSubmatch(expr, -1) {
		for reason := range strings.SplitSeq(m[1], "|") {
			if !anyReason(reason) {
				wrong = append(wrong, "the reason "+reason)
			}
		}
	}
	return wrong, n
}

// TestRules: the metrics and the reasons that the shipped rules name exist.
func TestRules(t *testing.T) {
	names, n := exposed(t), 0
	for _, file := range []string{"records.yaml", "alerts.yaml"} {
		for _, g := range readRules(t, deployed+"prometheus/"+file).Groups {
			for _, r := range g.Rules {
				wrong, found := checkExpression(r.Expr, names)
				if n += found; len(wrong) > 0 {
					t.Errorf("%s: %s%s: there is no %q", file, r.Alert, r.Record, wrong)
				}
			}
		}
	}
	if n < 20 {
		t.Errorf("%d metrics found in the rules", n)
	}
}

// TestEveryAlertHasACase: each alert fires in a case of tests.yaml.
func TestEveryAlertHasACase(t *testing.T) {
	text, err := os.ReadFile(deployed + "prometheus/tests.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range readRules(t, deployed+"prometheus/alerts.yaml").Groups {
		for _, r := range g.Rules {
			if !strings.Contains(string(text), r.Alert) {
				t.Errorf("no case has %s", r.Alert)
			}
		}
	}
}

// TestPage: metrics.md names every metric of the endpoint that isn't in the catalogue, and none that doesn't exist.
func TestPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	names := exposed(t)
	named := regexp.MustCompile(`\bcnpgate_[a-z_]+`).FindAllString(string(text), -1)
	for _, name := range named {
		if !slices.Contains(names, name) && name != prefix {
			t.Errorf("the page names %s, which doesn't exist", name)
		}
	}
	for _, want := range []string{"cnpgate_build_info", "cnpgate_port_healthy"} {
		if !slices.Contains(named, want) || !slices.Contains(names, want) {
			t.Errorf("the page or the endpoint lacks %s", want)
		}
	}
	families, err := registry(source(t)).Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		ours := slices.ContainsFunc(catalogue, func(m metric) bool { return strings.Contains(m.desc.String(), `fqName: "`+f.GetName()+`"`) })
		if strings.HasPrefix(f.GetName(), prefix) && !ours && !slices.Contains(named, f.GetName()) {
			t.Errorf("the page lacks %s", f.GetName())
		}
	}
}

// TestMistakenExpressions: what doesn't exist is found.
func TestMistakenExpressions(t *testing.T) {
	names := exposed(t)
	for _, c := range []struct {
		expr string
		want []string
	}{
		{`rate(cnpgate_received_packets_total[5m])`, nil},
		{`rate(cnpgate_loop_gap_seconds_bucket[5m])`, nil},
		{`cnpgate:queue_fill:ratio > 1`, nil},
		{`cnpgate_received_packet_total`, []string{"cnpgate_received_packet_total"}},
		{`cnpgate:queue_fill`, []string{"cnpgate:queue_fill"}},
		{`cnpgate_dropped_packets_total{reason=~"shutdown|wind"}`, []string{"the reason wind"}},
	} {
		if got, _ := checkExpression(c.expr, names); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.expr, got, c.want)
		}
	}
}

// anyReason reports whether some counter has a label that the pattern fits.
func anyReason(pattern string) bool {
	for _, c := range counters.Catalogue {
		if fits, _ := regexp.MatchString("^(?:"+pattern+")$", c.Value); fits {
			return true
		}
	}
	return false
}
