package main

import (
	"bufio"
	"encoding/json"
	"io"
	"sort"
	"strings"
)

// event is one line of 'go test -json' (go doc test2json).
type event struct {
	Action, Package, ImportPath, Test, Output string
}

// run is the result of one stream of events.
type run struct {
	name            string
	passed          int
	failed, skipped []result
}

// result is a test that didn't pass, and its output.
type result struct{ name, output string }

// key names a test, or with an empty test a package or the build of one.
type key struct{ pkg, test string }

// tally collects a stream: the last result of each test and package, and its output.
type tally struct {
	end    map[key]string // pass, fail, skip, or empty while the test runs
	output map[key]*strings.Builder
}

// read adds up one stream. A test with subtests isn't counted itself, unless it failed outside them.
func read(name string, in io.Reader) run {
	t := tally{end: map[key]string{}, output: map[key]*strings.Builder{}}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line = strings.TrimSpace(line); line != "" {
			t.line(line)
		}
		if err != nil {
			break
		}
	}
	return t.sum(name)
}

func (t *tally) line(line string) {
	var e event
	if json.Unmarshal([]byte(line), &e) != nil {
		t.note(key{}, line+"\n") // not an event: output of the go command itself
		return
	}
	k := key{e.Package, e.Test}
	switch e.Action {
	case "start", "run":
		t.end[k] = ""
	case "pass", "fail", "skip":
		t.end[k] = e.Action
	case "output":
		t.note(k, e.Output)
	case "build-output":
		// A build is named by import path. For a test binary, it includes the package in brackets: "p [p.test]".
		pkg, _, _ := strings.Cut(e.ImportPath, " ")
		t.note(key{pkg: pkg}, e.Output)
	}
}

func (t *tally) note(k key, s string) {
	b := t.output[k]
	if b == nil {
		b = &strings.Builder{}
		t.output[k] = b
	}
	b.WriteString(s)
}

func (t *tally) sum(name string) run {
	r := run{name: name}
	keys := make([]key, 0, len(t.end))
	parents := map[key]bool{}
	troubled := map[key]bool{} // tests and packages with a failure already counted below them
	for k := range t.end {
		keys = append(keys, k)
		for i := range len(k.test) {
			if k.test[i] == '/' {
				parents[key{k.pkg, k.test[:i]}] = true
			}
		}
	}
	// Deepest first, a package last, so that a failure is counted where it happened.
	sort.Slice(keys, func(i, j int) bool {
		a, b := keys[i], keys[j]
		if da, db := depth(a), depth(b); da != db {
			return da > db
		}
		return a.pkg < b.pkg || a.pkg == b.pkg && a.test < b.test
	})
	for _, k := range keys {
		switch end := t.end[k]; {
		case end == "fail" || end == "":
			if !troubled[k] {
				r.failed = append(r.failed, result{t.title(k, end), t.text(k)})
			}
			t.trouble(troubled, k)
		case k.test == "" || parents[k]:
		case end == "pass":
			r.passed++
		default:
			r.skipped = append(r.skipped, result{t.title(k, end), t.text(k)})
		}
	}
	if r.passed+len(r.skipped) == 0 && len(r.failed) == 0 {
		r.failed = append(r.failed, result{"no test ran", t.text(key{})})
	}
	return r
}

// depth is 0 for a package, 1 for a test, 2 for its subtest, and so on.
func depth(k key) int {
	if k.test == "" {
		return 0
	}
	return 1 + strings.Count(k.test, "/")
}

func (t *tally) trouble(troubled map[key]bool, k key) {
	for i := range len(k.test) {
		if k.test[i] == '/' {
			troubled[key{k.pkg, k.test[:i]}] = true
		}
	}
	troubled[key{pkg: k.pkg}] = true
}

func (t *tally) title(k key, end string) string {
	s := strings.TrimSpace(k.pkg + " " + k.test)
	if end == "" {
		s += " (did not finish)"
	}
	return s
}

func (t *tally) text(k key) string {
	if b := t.output[k]; b != nil {
		return b.String()
	}
	return ""
}
