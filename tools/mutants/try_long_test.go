//go:build long

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestTry: a mutant is found by the nearest package's test, and not by one that fails without it, too.
func TestTry(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"go.mod":               "module example.org/m\n",
		"base/base.go":         "package base\n\nfunc Sum(a, b int) int { return a + b }\n\nfunc Unused(a, b int) int { return a * b }\n",
		"above/above.go":       "package above\n\nimport (\n\t\"example.org/m/base\"\n\t\"example.org/m/near\"\n)\n\nvar Sum = base.Sum(near.Sum, 1)\n",
		"above/above_test.go":  "package above\n\nimport \"testing\"\n\nfunc TestAbove(t *testing.T) {\n\tif Sum != 4 {\n\t\tt.Fail()\n\t}\n}\n",
		"near/near.go":         "package near\n\nimport \"example.org/m/base\"\n\nvar Sum = base.Sum(1, 2)\n",
		"near/near_test.go":    "package near\n\nimport \"testing\"\n\nfunc TestNear(t *testing.T) {\n\tif Sum != 3 {\n\t\tt.Fail()\n\t}\n}\n",
		"broken/broken.go":     "package broken\n\nfunc Sum(a, b int) int { return a + b }\n",
		"broken/sum_test.go":   "package broken\n\nimport \"testing\"\n\nfunc TestBroken(t *testing.T) { t.Fail() }\n",
		"broken/above/uses.go": "package above\n\nimport _ \"example.org/m/broken\"\n",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	packages, err := readPackages()
	if got := fmt.Sprint(packages["base"]); err != nil || got != "[near above]" {
		t.Fatalf("packages that import base: %s, %v", got, err)
	}
	for _, c := range []struct {
		line, result, by, err string
	}{
		{"base/base.go\tSum\t0\ta + b\ta - b\t", "found", "near TestNear", ""},
		{"base/base.go\tSum\t0\ta + b\ta - b\tabove TestAbove", "found", "above TestAbove", ""},
		{"base/base.go\tUnused\t0\ta * b\ta / b\tnear TestNear", "NOT FOUND", "", ""},
		{"base/base.go\tSum\t0\ta + b\ta +- b +\t", "doesn't compile", "", ""},
		{"base/base.go\tSum\t1\ta + b\ta - b\t", "gone", "", ""},
		{"broken/broken.go\tSum\t0\ta + b\ta - b\t", "found", "broken TestBroken", "TestBroken of broken also fails without a mutant; expected tests that pass, as after scripts/build"},
	} {
		m, err := parseMutant(c.line)
		if err != nil {
			t.Fatal(err)
		}
		result, by, err := packages.try(t.Context(), m)
		says := ""
		if err != nil {
			says = err.Error()
		}
		if string(result) != c.result || by != c.by || says != c.err {
			t.Errorf("%q: %s by %q, %v; want %+v", c.line, result, by, err, c)
		}
	}
}
