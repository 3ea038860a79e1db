package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/metrics"
	"github.com/cnpgate/cnpgate/control/report"
)

// operator is a configuration file that a test edits.
type operator struct {
	text atomic.Pointer[string]
}

func (o *operator) write(text string) { o.text.Store(&text) }

func (o *operator) load() (*config.Config, error) {
	if text := *o.text.Load(); text != "" {
		return config.Parse("gw.yaml", []byte(text))
	}
	return nil, fmt.Errorf("gw.yaml: %w", fs.ErrNotExist)
}

// await waits until a text is in the log, for a minute at most.
func (s *shared) await(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !strings.Contains(s.String(), text); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%q is not in the log:\n%s", text, s)
		}
	}
}

// TestReload: a gateway that forwards goes over to a valid file, and nothing changes at one that is wrong, is gone or asks for a restart, whether
// it is asked by a signal or by the API.
func TestReload(t *testing.T) {
	goroutines := runtime.NumGoroutine()
	manager := serviceManager(t)
	c, b := newBench(t, []int{3, 5}, "backoff", "1Gbps", 0)
	socket := t.TempDir() + "/gw.sock"
	text := string(c.File.Text) + "profiles: {default: {mode: thresholds}}\nmanagement: {listen: \"unix:" + socket + "\"}\n"
	c, err := config.Parse("gw.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	file, hangups, log := &operator{}, make(chan struct{}), &shared{}
	file.write(text)
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() {
		_, err := Run(ctx, c, b, Options{Log: zerolog.New(log), Load: file.load, Hangups: hangups, Build: metrics.Build{Version: "v1.2"}})
		over <- err
	}()
	log.await(t, `"message":"The gateway is forwarding."`)
	log.await(t, `"message":"The API listens at a Unix socket."`)
	client := api.NewClient(socket)
	reload := func(want []string, mistakes ...string) {
		t.Helper()
		r, err := client.Reload(t.Context(), api.ReloadRequest{})
		if (err == nil) != (mistakes == nil) || err == nil && !slices.Equal(r.Changes, want) {
			t.Errorf("changed %v, %v; want %v, %q", r, err, want, mistakes)
		}
		for _, m := range mistakes {
			if !strings.Contains(err.Error(), m) || !strings.Contains(log.String(), m) {
				t.Errorf("%v, want %q there and in the log:\n%s", err, m, log)
			}
		}
	}
	kMax := func() uint64 {
		t.Helper()
		counters, err := api.Get[report.Counters](t.Context(), client, api.CountersPath)
		if err != nil {
			t.Fatal(err)
		}
		return counters.Ports[1].KMaxBytes
	}
	level := func(when, want string) {
		t.Helper()
		if l, err := api.Get[api.LogLevel](t.Context(), client, api.LogLevelPath); err != nil || l.LogLevel != want || l.Configured != "info" {
			t.Errorf("%s: %+v, %v, want %s", when, l, err, want)
		}
	}
	level("at first", "info")
	if _, err := api.Do[api.LogLevel](t.Context(), client, http.MethodPut, api.LogLevelPath, api.LogLevelRequest{LogLevel: "debug"}); err != nil {
		t.Error(err)
	}
	level("set", "debug")
	reload([]string{})
	level("after a reload", "info")
	if asked := strings.Count(log.String(), `"level":"debug","method":"GET","path":"/v1/log-level"`); asked != 1 {
		t.Errorf("%d requests logged, want the one while the level was debug:\n%s", asked, log)
	}
	v, err := api.Get[api.Version](t.Context(), client, api.VersionPath)
	if err != nil || v.Version != "v1.2" || v.ConfigHash != c.File.Hash() || !strings.Contains(log.String(),
		`"version":"v1.2","start_time":"`+v.StartTime.Format(zerolog.TimeFieldFormat)+`","config_hash":"`+v.ConfigHash+`","message":"The gateway starts."`) {
		t.Errorf("%+v, %v, not as the log says:\n%s", v, err, log)
	}
	before := kMax()
	changed := strings.Replace(text, "rate: 1Gbps}\n  - {name: line", "rate: 1Gbps}\n  - {rtt: 4ms, name: line", 1)
	file.write(changed)
	reload([]string{"ports[1].rtt"})
	if now := kMax(); now != 500_000 || now == before {
		t.Errorf("K_max is %d, was %d, want 500000: 1 Gbps for 4 ms", now, before)
	}
	file.write(strings.Replace(changed, "rate: 1Gbps}", "rate: fast}", 1))
	reload(nil, "gw.yaml:6:63", "ports[0].rate")
	file.write(strings.Replace(changed, "rtt: 4ms", "rtt: 400ms, device: none7", 1))
	reload(nil, "gw.yaml:7:45", "given twice")
	file.write(strings.Replace(changed, "none1", "none7", 1))
	reload(nil, "gw.yaml:7:36", "ports[1].device", "restart the gateway")
	file.write("")
	reload(nil, "file does not exist")
	if now := kMax(); now != 500_000 {
		t.Errorf("K_max is %d after files that were refused, want 500000", now)
	}
	if in, err := api.Get[api.Config](t.Context(), client, api.ConfigPath); err != nil || in.Text != changed {
		t.Errorf("in force is %+v, %v", in, err)
	}
	file.write(text)
	hangups <- struct{}{}
	log.await(t, `"config_hash":"`+c.File.Hash()+`","changes":["ports[1].rtt"]`)
	if now := kMax(); now != before {
		t.Errorf("K_max is %d, want %d again", now, before)
	}
	reload([]string{}) // once the one that the signal asked for is over
	stop()
	if err := <-over; err != nil {
		t.Error(err)
	}
	want := "ready" + strings.Repeat(" reloading ready", 8) + " stopping"
	if got := manager(); got != want {
		t.Errorf("the service manager got %q, want %q", got, want)
	}
	b.done(t, goroutines)
}

// serviceManager listens as systemd does. What it returns gives all states up to the last one, stopping.
func serviceManager(t *testing.T) func() string {
	t.Helper()
	path := t.TempDir() + "/notify.sock"
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("NOTIFY_SOCKET", path)
	states := make(chan string, 64)
	go func() {
		defer close(states)
		buffer := make([]byte, 4096)
		for {
			n, err := l.Read(buffer)
			if err != nil {
				return
			}
			state, rest, _ := strings.Cut(string(buffer[:n]), "=1")
			if (state == "RELOADING") != strings.HasPrefix(rest, "\nMONOTONIC_USEC=") {
				t.Errorf("%q", buffer[:n])
			}
			states <- strings.ToLower(state)
			if state == "STOPPING" {
				return
			}
		}
	}()
	return func() string {
		var all []string
		for s := range states {
			all = append(all, s)
		}
		_ = l.Close()
		return strings.Join(all, " ")
	}
}

// TestReloadBeforeForwarding: a reload while the gateway starts doesn't make the service manager believe that it forwards.
func TestReloadBeforeForwarding(t *testing.T) {
	states := serviceManager(t)
	g := newGateway(nil, nil, Options{Log: zerolog.Nop()})
	if _, err := g.Reload(api.ReloadRequest{}); err == nil {
		t.Error("nothing to read is no error")
	}
	announce("STOPPING=1")
	if got := states(); got != "stopping" {
		t.Errorf("the service manager was notified: %s", got)
	}
}

// TestNothingToReload: the error of a gateway without a configuration file says so.
func TestNothingToReload(t *testing.T) {
	log := &shared{}
	g := newGateway(nil, nil, Options{Log: zerolog.New(log)})
	if _, err := g.Reload(api.ReloadRequest{}); err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(log.String(), "no configuration file") {
		t.Errorf("%v: %s", err, log)
	}
}
