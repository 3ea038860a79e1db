package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"
)

// stuckWriter accepts nothing until the test releases it.
type stuckWriter struct {
	mutex sync.Mutex
	goOn  chan struct{}
	text  bytes.Buffer
}

func (w *stuckWriter) Write(b []byte) (int, error) {
	<-w.goOn
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.text.Write(b)
}

func (w *stuckWriter) String() string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.text.String()
}

// TestLogNobodyReads: who logs doesn't wait for the reader, who gets the first lines in order and the number of the others.
func TestLogNobodyReads(t *testing.T) {
	to := &stuckWriter{goOn: make(chan struct{})}
	p := newPatientLog(to)
	const all = 5 * waitingLines
	for i := range all {
		if n, err := fmt.Fprintf(p, "line %d\n", i); n == 0 || err != nil {
			t.Fatal(n, err)
		}
	}
	close(to.goOn)
	p.flush()
	lines := strings.Split(strings.TrimSpace(to.String()), "\n")
	kept, lost, latest := 0, 0, -1
	for _, l := range lines {
		if strings.HasPrefix(l, "{") {
			var n int
			if _, err := fmt.Sscanf(l, `{"level":"warn","lines":%d,`, &n); err != nil {
				t.Errorf("%s: %v", l, err)
			}
			lost += n
			continue
		}
		var n int // when the first line is taken out isn't known: one more may fit after some were lost
		if _, err := fmt.Sscanf(l, "line %d", &n); err != nil || n <= latest {
			t.Fatalf("%q behind line %d: %v", l, latest, err)
		}
		kept, latest = kept+1, n
	}
	if kept < waitingLines || kept+lost != all {
		t.Errorf("%d lines were written and %d lost, of %d", kept, lost, all)
	}
}

// TestGroupOf: the IDs of groups by their file.
func TestGroupOf(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "group", []byte("root:x:0:\n# a comment\ncnpgate2:x:7:\ncnpgate:x:none:\ncnpgate:x:990:alice,bob\n"))
	for name, want := range map[string]int{"root": 0, operators: 990, "none": -1, "": -1} {
		if got := groupOf(filepath.Join(dir, "group"), name); got != want {
			t.Errorf("%q: %d, want %d", name, got, want)
		}
	}
	if got := groupOf(filepath.Join(dir, "none"), operators); got != -1 {
		t.Errorf("without the file: %d", got)
	}
}

// TestGivesGroup: a directory with the setgid bit gives its group, no other does.
func TestGivesGroup(t *testing.T) {
	dir := t.TempDir()
	own := os.Getegid()
	for _, c := range []struct {
		mode  os.FileMode
		group int
		want  bool
	}{{0o755, own, false}, {0o755 | os.ModeSetgid, own, true}, {0o755 | os.ModeSetgid, own + 1, false}} {
		if err := os.Chmod(dir, c.mode); err != nil {
			t.Fatal(err)
		}
		if got := givesGroup(dir, c.group); got != c.want {
			t.Errorf("%v, group %d: %v", c.mode, c.group-own, got)
		}
	}
	if givesGroup(filepath.Join(dir, "none"), own) {
		t.Error("a directory that doesn't exist gives a group")
	}
}

// TestFatalLine: it is written when the call returns, after those before it.
func TestFatalLine(t *testing.T) {
	var to bytes.Buffer
	p := newPatientLog(&to)
	log := zerolog.New(io.Writer(p))
	log.Info().Msg("first")
	log.WithLevel(zerolog.FatalLevel).Msg("last")
	if got := to.String(); got != `{"level":"info","message":"first"}`+"\n"+`{"level":"fatal","message":"last"}`+"\n" {
		t.Errorf("%q", got)
	}
}
