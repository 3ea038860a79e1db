package browser

import (
	_ "embed"
	"strings"
)

// Violation is a rule of axe-core that a page breaks.
type Violation struct {
	ID, Help string
	Nodes    []struct{ HTML, FailureSummary string }
}

//go:embed testdata/axe/axe.min.js
var axe string

// Accessible fails the test for each rule of axe-core (WCAG 2.2 A and AA, best practices) that the page breaks as it is now.
func (p *Page) Accessible() {
	p.t.Helper()
	found := Eval[[]Violation](p, "if (!window.axe) {"+axe+"}; axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations.map((v) => ({ID: v.id, Help: v.help,"+
		" Nodes: v.nodes.map((n) => ({HTML: n.html, FailureSummary: n.failureSummary}))})))")
	for _, v := range found {
		var where []string
		for _, n := range v.Nodes {
			where = append(where, n.HTML+": "+n.FailureSummary)
		}
		p.t.Errorf("axe-core: %s: %s:\n%s", v.ID, v.Help, strings.Join(where, "\n"))
	}
}
