package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/telemetry"
)

// metricsPage is what a page's tables of metrics and of reasons hold against the catalogue.
type metricsPage struct {
	names    map[string]bool // documented: name, name{label} or name{value of the label}
	alike    map[string]bool // "name: what mlx5, SONiC or OpenConfig calls it"
	reasons  []string
	mistakes []string
}

func (p *metricsPage) complain(format string, args ...any) {
	p.mistakes = append(p.mistakes, fmt.Sprintf(format, args...))
}

// TestMetrics: metrics.md documents each metric of the catalogue and each reason, and none that doesn't exist.
func TestMetrics(t *testing.T) {
	for _, m := range checkMetrics(readPage(t, "metrics.md")) {
		t.Error("metrics.md: " + m)
	}
}

// TestMetricsMistakes: what is missing, misspelt or made up is noticed.
func TestMetricsMistakes(t *testing.T) {
	page := readPage(t, "metrics.md")
	for _, c := range []struct{ old, new, want string }{
		{"| `queued_packets` |", "| `queue_packets` |", "queue_packets"},
		{"`{border-out}`", "`{border-up}`", "border-up"},
		{"`{border-out}`", "", "dropped_packets_total{border-out} is in no row"},
		{"| `notifications_sent_total{kind}`", "| `notifications_sent_total{reason}`", "notifications_sent_total{reason}"},
		{"| `flows` |", "| flows |", "flows is in no row"},
		{"| `RX_ERR`, `in-errors` |", "| `RX_DRP`, `in-errors` |", "RX_DRP"},
		{", `max-queue-len` |", " |", "max-queue-len"},
		{"| `np_cnp_sent` |", "| |", "notifications_sent_total does not say"},
		{"| `not-enabled` |", "| `not-enabled`, `not-liked` |", "not-liked"},
		{"| `not-enabled` |", "| |", "not-enabled"},
	} {
		if !strings.Contains(page, c.old) {
			t.Errorf("the page has no %s", c.old)
		}
		got := strings.Join(checkMetrics(strings.Replace(page, c.old, c.new, 1)), "\n")
		if !strings.Contains(got, c.want) {
			t.Errorf("%q in place of %q: the mistakes are %q, expected one about %s", c.new, c.old, got, c.want)
		}
	}
}

// TestNamedCounters: a counter that any page names exists.
func TestNamedCounters(t *testing.T) {
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	counter, n := regexp.MustCompile("`([a-z0-9_]+_total)[`{]"), 0
	for _, page := range append(pages, "../README.md") {
		for _, m := range counter.FindAllStringSubmatch(readPage(t, page), -1) {
			if n++; metric(m[1]) == nil && !strings.HasPrefix(m[1], "cnpgate_fleet_") { // those are control/metrics' own
				t.Errorf("%s: telemetry.All has no %s", page, m[1])
			}
		}
	}
	if n < 40 {
		t.Errorf("%d counters found on the pages, expected more", n)
	}
}

// TestNamedTests: each test that a page names exists, and each row of the tables of faults in operations.md names one.
func TestNamedTests(t *testing.T) {
	tests, function := map[string]bool{}, regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_test.go") {
			for _, m := range function.FindAllStringSubmatch(readPage(t, path), -1) {
				tests[m[1]] = true
			}
		}
		return err
	})
	pages, failed := filepath.Glob("*.md")
	if err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	named, n := regexp.MustCompile(`\bTest[A-Z]\w+`), 0
	for _, page := range append(pages, "../README.md", "../CONTRIBUTING.md") {
		for _, name := range named.FindAllString(readPage(t, page), -1) {
			if n++; !tests[name] {
				t.Errorf("%s names %s, and there is no such test", page, name)
			}
		}
	}
	for _, heading := range []string{"| What fails |", "| Table, or fault |"} {
		_, table, _ := strings.Cut(readPage(t, "operations.md"), "\n"+heading)
		table, _, _ = strings.Cut(table, "\n\n")
		rows := strings.Split(table, "\n")[2:]
		for _, row := range rows {
			if !named.MatchString(row) {
				t.Errorf("operations.md: no test is named in %s", row)
			}
		}
		if len(rows) < 8 {
			t.Errorf("operations.md: the table %s has %d rows, expected at least 8", heading, len(rows))
		}
	}
	if n < 20 {
		t.Errorf("%d tests found on the pages, expected more", n)
	}
}

func readPage(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// metric is the one of the catalogue with a name, nil if there is none.
func metric(name string) *telemetry.Metric {
	all := telemetry.All()
	if i := slices.IndexFunc(all, func(m *telemetry.Metric) bool { return m.Name == name }); i >= 0 {
		return all[i]
	}
	return nil
}

// values are those that workers count under a metric's label.
func values(m *telemetry.Metric) (all []string) {
	for _, c := range counters.Catalogue {
		if c.Metric == m {
			all = append(all, c.Value)
		}
	}
	return all
}

func checkMetrics(text string) []string {
	p := &metricsPage{names: map[string]bool{}, alike: map[string]bool{}}
	table := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case !strings.HasPrefix(line, "|"):
			table = ""
		case table == "":
			table = line
		case table == "| Metric | Rises when, or is | Do | mlx5, SONiC, OpenConfig |":
			p.readMetrics(cells(line))
		case table == "| Reason | Why | Do |":
			p.reasons = append(p.reasons, quoted(cells(line)[0])...)
		}
	}
	for _, m := range telemetry.All() {
		p.checkDocumented(m)
	}
	want := values(telemetry.NotificationsSuppressed)
	slices.Sort(want)
	if slices.Sort(p.reasons); !slices.Equal(p.reasons, want) {
		p.complain("the reasons why a sender was not notified are\n%q, expected\n%q", p.reasons, want)
	}
	return p.mistakes
}

var backticks = regexp.MustCompile("`([^`]*)`")

// quoted are the parts of a cell between backticks.
func quoted(cell string) (all []string) {
	for _, m := range backticks.FindAllStringSubmatch(cell, -1) {
		all = append(all, m[1])
	}
	return all
}

// readMetrics notes what a row documents. A {value} without a name belongs to the name before.
func (p *metricsPage) readMetrics(row []string) {
	if strings.HasPrefix(row[0], "---") {
		return
	}
	if len(row) != 4 {
		p.complain("%q has %d cells, expected 4", row, len(row))
		return
	}
	var all []*telemetry.Metric
	name := ""
	for _, text := range quoted(row[0]) {
		before, label, _ := strings.Cut(strings.TrimSuffix(text, "}"), "{")
		if before != "" {
			name = before
		}
		m := metric(name)
		if m == nil {
			p.complain("telemetry.All has no %s, which the table names", name)
			continue
		}
		all = append(all, m)
		if label == "" {
			p.names[name] = true
			continue
		}
		if p.names[name+"{"+label+"}"] = true; label != m.Label && !slices.Contains(values(m), label) {
			p.complain("%s{%s}: expected the label %q, or one of its values %q", name, label, m.Label, values(m))
		}
	}
	for _, other := range quoted(row[3]) {
		i := slices.IndexFunc(all, func(m *telemetry.Metric) bool { return other == m.MLX5 || other == m.SONiC || other == m.OpenConfig })
		if i < 0 {
			p.complain("%s: telemetry.All does not say that mlx5, SONiC or OpenConfig calls it %s", row[0], other)
			continue
		}
		p.alike[all[i].Name+": "+other] = true
	}
}

// checkDocumented: a metric is in the table, with its label or each value of it, and with what others call it.
func (p *metricsPage) checkDocumented(m *telemetry.Metric) {
	want := []string{m.Name}
	if m.Label != "" {
		if want[0] += "{" + m.Label + "}"; !p.names[want[0]] && len(values(m)) > 0 {
			want = nil
			for _, value := range values(m) {
				want = append(want, m.Name+"{"+value+"}")
			}
		}
	}
	for _, name := range want {
		if !p.names[name] {
			p.complain("%s is in no row of the table of metrics", name)
		}
	}
	for _, other := range []string{m.MLX5, m.SONiC, m.OpenConfig} {
		if other != "" && !p.alike[m.Name+": "+other] {
			p.complain("the row of %s does not say that others call it %s", m.Name, other)
		}
	}
}
