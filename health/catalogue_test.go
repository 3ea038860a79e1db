package health

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestWords: each verdict of a report has a title and a meaning of its own, and a comment says where to type its commands, or what to fill in.
func TestWords(t *testing.T) {
	titles := map[string]string{}
	for _, name := range Names {
		v := grouped([]Verdict{{Name: name, Subject: "10.1.0.1 -> 10.9.0.9"}}, false)[0]
		if v.Title == "" || strings.HasSuffix(v.Title, ".") || !strings.HasSuffix(v.Meaning, ".") {
			t.Errorf("%s: the title is %q, the meaning %q", name, v.Title, v.Meaning)
		}
		if other := titles[v.Title]; other != "" {
			t.Errorf("%s and %s have one title", name, other)
		}
		titles[v.Title] = name
		for _, c := range v.Commands {
			if _, comment, _ := strings.Cut(c, "# "); comment == "" {
				t.Errorf("%s: %q has no comment", name, c)
			}
		}
		for _, p := range placeholders {
			if text := strings.Join(v.Commands, "\n"); strings.Contains(text, p.name) != strings.Contains(text, p.name+" is "+p.what) {
				t.Errorf("%s: what %s is isn't said, or is without need:\n%s", name, p.name, text)
			}
		}
	}
}

// TestPages: docs/health.md has each verdict, and docs/whats-wrong.md calls what it explains as the reports do.
func TestPages(t *testing.T) {
	read := func(name string) string {
		page, err := os.ReadFile("../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(page)
	}
	_, table, _ := strings.Cut(read("health.md"), "\n| Verdict | Evidence |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, name := range Names {
		if !strings.Contains(table, "`"+name+"`") {
			t.Errorf("docs/health.md has no row for %s", name)
		}
	}
	_, plot, _ := strings.Cut(read("whats-wrong.md"), "\n### Healthy\n")
	said := regexp.MustCompile(`(?m)^(?:### |\| )(\w.*?)(?: \|.*)?$`).FindAllStringSubmatch(plot, -1)
	for _, m := range said {
		if m[1] != "It says" && !slices.ContainsFunc(Names, func(name string) bool { return strings.HasPrefix(kinds[name].title, m[1]) }) {
			t.Errorf("docs/whats-wrong.md explains %q, which no report says", m[1])
		}
	}
	if len(said) < 10 {
		t.Errorf("docs/whats-wrong.md explains %d answers, want 10 or more", len(said))
	}
}
