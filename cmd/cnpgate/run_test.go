package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/report"
)

// TestReportBeforeDevices: the report is whole, under its name, before the devices are closed, and also when they can't be; what failed is said.
func TestReportBeforeDevices(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.json")
	out := outputs{{flag: "--report", path: path}}
	if err := out.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	closed := false
	err := finish(&report.Report{Identity: report.Identity{Gateway: "gw"}}, out, func() error {
		text, err := os.ReadFile(path)
		closed = err == nil && strings.HasSuffix(string(text), "}\n") && strings.Contains(string(text), `"gateway": "gw"`)
		return errors.New("the device hangs")
	})
	if !closed || err == nil || !strings.Contains(err.Error(), "the device hangs") {
		t.Errorf("the report was there: %v; error %v", closed, err)
	}
}

// TestNoReport: without one, what was begun is removed.
func TestNoReport(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.json")
	out := outputs{{flag: "--report", path: path}}
	if err := out.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := finish(nil, out, func() error { return nil }); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(path + "*"); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// TestRunLogsWarnings: a warning about the configuration is a line of the log, as all that run has to say while it runs.
func TestRunLogsWarnings(t *testing.T) {
	dir := workspace(t)
	put(t, dir, "warns.yaml", []byte(strings.Replace(goodConfig, "accepts: [fast-cnp]", "accepts: [ppfc]", 1)))
	got := cnpgate(t, dir, "run", "--config", "warns.yaml")
	lines := strings.Split(got.stderr, "\n")
	want := []struct{ at, message string }{
		{"warns.yaml:6:48", "Warning about the configuration: endpoints[0].accepts[0]: ppfc has no effect, "},
		{"warns.yaml:7:37", "Warning about the configuration: notifications.fast_cnp.enabled: has no effect, as no endpoint accepts fast-cnp; "},
	}
	if got.stdout != "" || len(lines) <= len(want) || !strings.Contains(lines[len(want)], "built without DPDK") {
		t.Fatalf("stdout %q, stderr:\n%s\nwant %d lines of the log, and then why it ends", got.stdout, got.stderr, len(want))
	}
	for i, w := range want {
		var line struct{ Level, At, Message string }
		if err := json.Unmarshal([]byte(lines[i]), &line); err != nil || line.Level != "warn" || line.At != w.at || !strings.HasPrefix(line.Message, w.message) {
			t.Errorf("line %d is %q (%v), want a warning at %s, %q", i+1, lines[i], err, w.at, w.message)
		}
	}
}

// TestStandbyFollowsFile: a standby reads its file whenever that has changed, also by a rename that keeps the time, and logs its warnings. A file with a
// mistake, or none, changes nothing.
func TestStandbyFollowsFile(t *testing.T) {
	dir := t.TempDir()
	path, warns := filepath.Join(dir, "gw.yaml"), strings.Replace(goodConfig, "accepts: [fast-cnp]", "accepts: [ppfc]", 1)
	put(t, dir, "gw.yaml", []byte(goodConfig))
	first, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	reads := 0
	f := &followed{cfg: first, log: zerolog.New(&log), load: func() (*config.Config, error) {
		reads++
		return config.Load(path)
	}}
	for _, c := range []struct {
		what, text    string
		reads, logged int
		warning       string
		taken         bool
	}{
		{what: "the same", text: goodConfig, reads: 1},
		{what: "nothing new"},
		{what: "warns", text: warns, reads: 1, logged: 2, warning: "Warning about the configuration", taken: true},
		{what: "a mistake", text: "ports: []", reads: 1, logged: 1, warning: "can't be used"},
		{what: "no file", text: "-"},
	} {
		log.Reset()
		reads = 0
		switch c.text {
		case "":
		case "-":
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		default:
			put(t, dir, "new.yaml", []byte(c.text))
			if err := errors.Join(os.Chtimes(filepath.Join(dir, "new.yaml"), time.Unix(1, 0), time.Unix(1, 0)), os.Rename(filepath.Join(dir, "new.yaml"), path)); err != nil {
				t.Fatal(err)
			}
		}
		got := f.changed()
		if reads != c.reads || (got != nil) != c.taken || c.warning != "" && strings.Count(log.String(), c.warning) != c.logged || c.warning == "" && log.Len() > 0 {
			t.Errorf("%s: read %d times, taken %v, log %s", c.what, reads, got != nil, log.String())
		}
	}
}

// TestReportOfAnother: a run that can't have the devices leaves the report of the gateway that has them alone.
func TestReportOfAnother(t *testing.T) {
	dir := workspace(t)
	put(t, dir, "run.json.partial", []byte("begun"))
	if got := cnpgate(t, dir, "run", "--config", "gw.yaml", "--report", "run.json"); got.status != 1 || !strings.Contains(got.stderr, "built without DPDK") {
		t.Errorf("exit status %d, stderr %q", got.status, got.stderr)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "run.json.partial")); err != nil || string(text) != "begun" {
		t.Errorf("the other's report is %q (%v)", text, err)
	}
}

// TestKeepAlive: the watchdog is fed while a gateway that stood by opens its devices, and not after that, nor for ever.
func TestKeepAlive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "4000")
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	fed := func(deadline time.Time) bool {
		buffer := make([]byte, 64)
		if err := l.SetReadDeadline(deadline); err != nil {
			t.Fatal(err)
		}
		n, err := l.Read(buffer)
		return err == nil && string(buffer[:n]) == "WATCHDOG=1"
	}
	stop := keepAlive(time.Hour)
	for range 3 {
		if !fed(time.Time{}) {
			t.Fatal("not fed")
		}
	}
	stop()
	stop()
	for fed(time.Now().Add(time.Millisecond)) { // what was sent before
	}
	stop = keepAlive(time.Nanosecond)
	for fed(time.Now().Add(100 * time.Millisecond)) { // ends by itself
	}
	stop()
	t.Setenv("WATCHDOG_USEC", "")
	keepAlive(time.Hour)()
	if fed(time.Now()) {
		t.Error("fed, though there is no watchdog")
	}
}
