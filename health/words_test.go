package health

import (
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
