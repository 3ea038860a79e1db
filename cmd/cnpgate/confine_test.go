//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestParsersAreConfined: a command that parses a file of unknown origin is confined, in every thread, before it opens the file, and the commands that need
// a network aren't.
func TestParsersAreConfined(t *testing.T) {
	dir := t.TempDir()
	fifo, list := filepath.Join(dir, "in"), filepath.Join(dir, "out.json")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := filepath.Abs("../../control/config/testdata/good/minimal.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args     string
		confined bool
	}{
		{"decode " + fifo, true},
		{"replay --health " + fifo, true},
		{"replay --config " + config + " --fabric 10.0.0.0/8 --report " + list + " " + fifo, true},
		{"sim " + fifo, true},
		{"web --listen 127.0.0.1:0 " + fifo, true},
		{"check " + fifo, false},
	} {
		p := command(dir, strings.Fields(c.args)...)
		var stderr strings.Builder
		p.Stderr = &stderr
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		in, err := os.OpenFile(fifo, os.O_WRONLY, 0) // waits until the command opens its end
		if err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", p.Process.Pid))
		if err != nil || len(files) < 2 {
			t.Fatalf("%s: %d threads, %v", c.args, len(files), err)
		}
		for _, file := range files {
			status, err := os.ReadFile(file)
			if os.IsNotExist(err) {
				continue
			}
			if confined := strings.Contains(string(status), "Seccomp:\t2") && strings.Contains(string(status), "NoNewPrivs:\t1"); confined != c.confined {
				t.Errorf("%s: confined %v, want %v: %s", c.args, confined, c.confined, status)
			}
		}
		_, _ = in.WriteString("this is neither a capture nor YAML: [")
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		if err := p.Wait(); err == nil || strings.Contains(stderr.String(), "permitted") || strings.Contains(stderr.String(), "permission") {
			t.Errorf("%s: %v: %s", c.args, err, stderr.String())
		}
	}
}

// TestScenarioElsewhere: a scenario that names a file of a third folder is refused, and the error says which folders there are.
func TestScenarioElsewhere(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	put(t, other, "topology.txt", []byte("3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n"))
	put(t, dir, "s.yaml", fmt.Appendf(nil, "name: x\nlength: 1ms\ntopology: {file: %s/topology.txt}\ntraffic: [{incast: {from: 0-0, to: 1, bytes: 1KB}}]\n", other))
	for _, c := range []struct {
		in, expected string
	}{
		{t.TempDir(), "permission denied; a scenario may read files of its own folder and of the current one"},
		{other, ""},
	} {
		text, err := command(c.in, "sim", filepath.Join(dir, "s.yaml"), "--response", "ecn").CombinedOutput()
		if (err == nil) != (c.expected == "") || !strings.Contains(string(text), c.expected) {
			t.Errorf("in %s: %v: %s; expected %q", c.in, err, text, c.expected)
		}
	}
}
