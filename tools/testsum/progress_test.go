package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestProgress: packages of all runs count when they have ended, a line that isn't complete waits for its rest, and the time left follows from
// an earlier run's times and from how much slower this one is.
func TestProgress(t *testing.T) {
	dir := t.TempDir()
	times := filepath.Join(dir, "times")
	write := func(name, text string) {
		t.Helper()
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.WriteString(text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write("plan", "tests m/a\ntests m/b\nrace m/a\nrace m/b\n")
	write("step", "build\n")
	write("times", "[100,200,300,400,500]")
	p := newProgress(dir, times)
	is := func(now float64, want string) {
		t.Helper()
		p.look(now)
		if got := p.state(now); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	is(50, " 50 s  0 of 4 packages done, about 7m30s left; now: build")
	write("tests.json", `{"Action":"start","Package":"m/a"}`+"\n"+`{"Action":"pass","Package":"m/a","Test":"X"}`+"\n"+`{"Action":"start","Pack`)
	is(60, " 60 s  0 of 4 packages done, about 7m20s left; now: m/a")
	write("tests.json", `age":"m/b"}`+"\n"+`{"Action":"pass","Package":"m/a"}`+"\nnot JSON\n")
	write("race.json", `{"Action":"start","Package":"m/a"}`+"\n")
	write("other.json", `{"Action":"pass","Package":"m/a"}`+"\n")                   // no plan has it
	is(200, "200 s  1 of 4 packages done, about 13m20s left; now: m/a (race), m/b") // twice as slow
	write("tests.json", `{"Action":"fail","Package":"m/b"}`+"\n")
	write("race.json", `{"Action":"skip","Package":"m/a"}`+"\n")
	is(300, "300 s  3 of 4 packages done, about 3m20s left; now: build")

	p.leave(times, 310)
	if again := newProgress(dir, times); again.usual[4] != 500 {
		t.Error("a run that was not complete left its times")
	}
	write("race.json", `{"Action":"pass","Package":"m/b"}`+"\n")
	p.look(320)
	p.leave(times, 330)
	if text, err := os.ReadFile(times); err != nil || strings.TrimSpace(string(text)) != "[200,300,300,320,330]" {
		t.Errorf("the run left %s, %v", text, err)
	}
}

// TestProgressOfUnusualTimes: whatever another run has left, the time left is a number that isn't negative.
func TestProgressOfUnusualTimes(t *testing.T) {
	for _, text := range []string{"", "null", "[]", "[5]", "[3,1]", "[-1,2]", "{", "[0,0,0,0,0,0]"} {
		dir := t.TempDir()
		times := filepath.Join(dir, "times")
		if err := os.WriteFile(times, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		p := newProgress(dir, times)
		p.planned = 3
		for done := range 5 {
			if left := p.left(1000); !(left >= 0) {
				t.Errorf("%q, %d packages done: %v seconds left", text, done, left)
			}
			p.ended = append(p.ended, 100)
		}
	}
}
