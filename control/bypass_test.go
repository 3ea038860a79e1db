package control

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/config"
)

// TestLife: a worker is silent once it has not stepped for stallAfter, whenever it is looked at, and not any more when it steps again.
func TestLife(t *testing.T) {
	var l life
	begin := time.Unix(1000, 0)
	for _, c := range []struct {
		at    time.Duration
		steps []uint64
		want  int
	}{
		{0, []uint64{5, 5}, -1}, {49 * time.Millisecond, []uint64{5, 9}, -1}, {50 * time.Millisecond, []uint64{5, 9}, 0}, {60 * time.Millisecond, []uint64{6, 9}, -1},
		{99 * time.Millisecond, []uint64{7, 9}, 1}, {time.Hour, []uint64{8, 10}, -1}, {2 * time.Hour, []uint64{8, 10}, 1},
	} {
		if got := l.silent(begin.Add(c.at), c.steps); got != c.want {
			t.Errorf("at %v: worker %d is silent, want %d", c.at, got, c.want)
		}
	}
}

// TestBeat: the values in turn into a file, also into one without an offset; a command that runs, fails or hangs.
func TestBeat(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "value")
	if err := os.WriteFile(file, []byte("?"), 0o600); err != nil {
		t.Fatal(err)
	}
	configured := func(b *config.Bypass) *pulse {
		t.Helper()
		b.Interval = time.Millisecond
		p, err := openPulse(b)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.close)
		return p
	}
	p := configured(&config.Bypass{File: file, Values: []string{"1", "0"}})
	for _, want := range []string{"1\n", "0\n", "1\n"} {
		if err := p.beat(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(file); string(got) != want {
			t.Errorf("the file has %q, want %q", got, want)
		}
	}
	if err := configured(&config.Bypass{File: "/dev/null", Values: []string{"1"}}).beat(t.Context()); err != nil {
		t.Error(err)
	}
	if err := configured(&config.Bypass{File: "/dev/full", Values: []string{"1"}}).beat(t.Context()); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("a file that can't be written: %v", err)
	}
	for command, want := range map[string]string{"echo x >" + file + "2": "", "echo out of order; exit 3": "exit status 3: out of order", "sleep 60": "did not end within 1s"} {
		err := configured(&config.Bypass{Command: []string{"/bin/sh", "-c", "exec " + command}}).beat(t.Context())
		if strings.Contains(command, ";") {
			err = configured(&config.Bypass{Command: []string{"/bin/sh", "-c", command}}).beat(t.Context())
		}
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", command, err, want)
		}
	}
}

// TestHeartbeat: it goes while the gateway forwards, follows a reload, and ends with the forwarding; of a place that can't be used, health says so.
func TestHeartbeat(t *testing.T) {
	goroutines := runtime.NumGoroutine()
	c, b := newBench(t, []int{0}, "backoff", "1Gbps", 0)
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	for _, name := range []string{first, second} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	socket := filepath.Join(dir, "gw.sock")
	text := string(c.File.Text) + "management: {listen: \"unix:" + socket + "\"}\nbypass: {interval: 10ms, file: " + first + "}\n"
	c, err := config.Parse("gw.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	file, log := &operator{}, &shared{}
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() {
		_, err := Run(ctx, c, b, Options{Log: zerolog.New(log), Load: file.load})
		over <- err
	}()
	log.await(t, `"message":"The gateway is forwarding."`)
	log.await(t, `"message":"The API listens at a Unix socket."`)
	beats := func(name string) {
		t.Helper()
		seen := map[string]bool{}
		for deadline := time.Now().Add(time.Minute); !seen["0\n"] || !seen["1\n"]; runtime.Gosched() {
			if text, err := os.ReadFile(name); err == nil {
				seen[string(text)] = true
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s has had %v", name, seen)
			}
		}
	}
	beats(first)
	client := api.NewClient(socket)
	for now, want := range map[string]string{"file: " + filepath.Join(dir, "none"): "no such file", "command: [/bin/none]": "a program that this user may run"} {
		file.write(strings.Replace(text, "file: "+first, now, 1))
		if r, err := client.Reload(t.Context(), api.ReloadRequest{}); err != nil || !strings.Contains(r.Services["bypass"], want) {
			t.Errorf("%s: %+v, %v", now, r, err)
		}
	}
	file.write(strings.Replace(text, first, second, 1))
	if _, err := client.Reload(t.Context(), api.ReloadRequest{}); err != nil {
		t.Fatal(err)
	}
	beats(second)
	file.write(strings.Replace(text, first, "/dev/full", 1))
	if _, err := client.Reload(t.Context(), api.ReloadRequest{}); err != nil {
		t.Fatal(err)
	}
	const stopped = "the heartbeat has stopped, so the bypass becomes active: write /dev/full: no space left on device"
	log.await(t, stopped)
	if h, err := api.Get[api.Health](t.Context(), client, api.HealthPath); err != nil || h.Services["bypass"] != stopped {
		t.Errorf("%+v, %v", h, err)
	}
	file.write(strings.Replace(text, first, second, 1))
	if _, err := client.Reload(t.Context(), api.ReloadRequest{}); err != nil {
		t.Fatal(err)
	}
	beats(second)
	if h, err := api.Get[api.Health](t.Context(), client, api.HealthPath); err != nil || len(h.Services) != 0 {
		t.Errorf("%+v, %v", h, err)
	}
	stop()
	if err := <-over; err != nil {
		t.Error(err)
	}
	b.done(t, goroutines)
}
