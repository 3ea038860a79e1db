//go:build secondopinion

package metrics

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"gopkg.in/yaml.v3"

	"github.com/cnpgate/cnpgate/internal/testkit"
)

// promtool runs Prometheus' own checker.
func promtool(t *testing.T, stdin []byte, args ...string) {
	t.Helper()
	c := exec.Command(filepath.Join(testkit.Cache(), "prometheus/usr/bin/promtool"), args...)
	c.Stdin = bytes.NewReader(stdin)
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("promtool %v (scripts/setup --test fetches it): %v\n%s", args, err, out)
	}
}

// TestPromtool: the shipped rules are valid and do what their cases say, the dashboard's expressions are valid, and so is what the gateway gives.
func TestPromtool(t *testing.T) {
	promtool(t, nil, "check", "rules", "--lint-fatal", deployed+"prometheus/records.yaml", deployed+"prometheus/alerts.yaml")
	promtool(t, nil, "test", "rules", deployed+"prometheus/tests.yaml")
	group := ruleGroup{Name: "dashboard"}
	for i, expr := range expressions(t) {
		group.Rules = append(group.Rules, rule{Record: fmt.Sprintf("expression_%d", i), Expr: expr})
	}
	file, err := yaml.Marshal(rules{[]ruleGroup{group}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "dashboard.yaml")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, nil, "check", "rules", path)
	families, err := registry(source(t)).Gather()
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			t.Fatal(err)
		}
	}
	promtool(t, text.Bytes(), "check", "metrics")
}

// expressions are those of the dashboard, with values for its variables.
func expressions(t *testing.T) (all []string) {
	t.Helper()
	d := readDashboard(t)
	values := strings.NewReplacer("$__rate_interval", "1m", "$instance", "g", "$port", "wan")
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			all = append(all, values.Replace(q.Expr))
		}
	}
	for _, a := range d.Annotations.List {
		all = append(all, values.Replace(a.Expr))
	}
	return all
}
