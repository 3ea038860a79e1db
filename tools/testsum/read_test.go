package main

import (
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	cases := []struct {
		name    string
		in      string
		passed  int
		skipped int
		failed  []string
	}{
		{"leaves count, parents don't", `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"A"}
{"Action":"run","Package":"p","Test":"A/x"}
{"Action":"pass","Package":"p","Test":"A/x"}
{"Action":"pass","Package":"p","Test":"A"}
{"Action":"run","Package":"p","Test":"B"}
{"Action":"skip","Package":"p","Test":"B"}
{"Action":"pass","Package":"p"}`, 1, 1, nil},
		{"a failure counts once", `{"Action":"run","Package":"p","Test":"A"}
{"Action":"run","Package":"p","Test":"A/x"}
{"Action":"fail","Package":"p","Test":"A/x"}
{"Action":"fail","Package":"p","Test":"A"}
{"Action":"fail","Package":"p"}`, 0, 0, []string{"p A/x"}},
		{"a parent that fails by itself", `{"Action":"run","Package":"p","Test":"A"}
{"Action":"pass","Package":"p","Test":"A/x"}
{"Action":"fail","Package":"p","Test":"A"}
{"Action":"fail","Package":"p"}`, 1, 0, []string{"p A"}},
		{"a build that fails", `{"ImportPath":"p [p.test]","Action":"build-output","Output":"undefined: x"}
{"ImportPath":"p [p.test]","Action":"build-fail"}
{"Action":"start","Package":"p"}
{"Action":"fail","Package":"p","FailedBuild":"p [p.test]"}`, 0, 0, []string{"p"}},
		{"a run cut short", `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"A"}
{"Action":"pass","Package":"p","Test":"A"}
{"Action":"run","Package":"p","Test":"B"}`, 1, 0, []string{"p B (did not finish)"}},
		{"a package cut short after its tests", `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"A"}
{"Action":"pass","Package":"p","Test":"A"}`, 1, 0, []string{"p (did not finish)"}},
		{"nothing at all", "", 0, 0, []string{"no test ran"}},
		{"not JSON", "go: updates to go.mod needed\n", 0, 0, []string{"no test ran"}},
		{"packages without tests", `{"Action":"start","Package":"p"}
{"Action":"skip","Package":"p"}`, 0, 0, []string{"no test ran"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := read("r", strings.NewReader(c.in))
			if r.passed != c.passed || len(r.skipped) != c.skipped {
				t.Errorf("%d passed, %d skipped; want %d, %d", r.passed, len(r.skipped), c.passed, c.skipped)
			}
			var names []string
			for _, f := range r.failed {
				names = append(names, f.name)
			}
			if strings.Join(names, "; ") != strings.Join(c.failed, "; ") {
				t.Errorf("failed %q, want %q", names, c.failed)
			}
		})
	}
}

func TestReadKeepsWhatAFailureSaid(t *testing.T) {
	build := read("r", strings.NewReader(`{"ImportPath":"p [p.test]","Action":"build-output","Output":"undefined: x"}
{"Action":"fail","Package":"p"}`))
	test := read("r", strings.NewReader(`{"Action":"output","Package":"p","Test":"A","Output":"got 1, want 2"}
{"Action":"fail","Package":"p","Test":"A"}`))
	other := read("r", strings.NewReader("go: no such tool\n"))
	for want, r := range map[string]run{"undefined: x": build, "got 1, want 2": test, "go: no such tool\n": other} {
		if len(r.failed) != 1 || r.failed[0].output != want {
			t.Errorf("%+v, want one failure that says %q", r, want)
		}
	}
}

func TestReport(t *testing.T) {
	cases := []struct {
		runs []run
		last string
		ok   bool
	}{
		{[]run{{name: "a", passed: 3}, {name: "b", passed: 4}}, "7 passed, 0 failed", true},
		{[]run{{name: "a", passed: 3, skipped: make([]result, 2)}}, "3 passed, 0 failed, 2 skipped", true},
		{[]run{{name: "a", passed: 3}, {name: "b", failed: []result{{"p A", "why\n"}}}}, "3 passed, 1 failed", false},
		{[]run{{name: "a", skipped: make([]result, 1)}}, "0 passed, 0 failed, 1 skipped", false},
		{nil, "0 passed, 0 failed", false},
	}
	for _, c := range cases {
		var b strings.Builder
		ok := report(&b, c.runs)
		lines := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
		if got := lines[len(lines)-1]; got != c.last || ok != c.ok {
			t.Errorf("closing line %q, ok %t; want %q, %t", got, ok, c.last, c.ok)
		}
	}
}
