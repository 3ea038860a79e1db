package control

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/config"
)

// operated is a gateway that forwards, its configuration file and a client.
type operated struct {
	*api.Client
	t      *testing.T
	file   *operator
	text   string
	socket string
	log    *shared
}

// operate runs a gateway until the end of the test.
func operate(t *testing.T) *operated {
	t.Helper()
	goroutines := runtime.NumGoroutine()
	c, b := newBench(t, []int{0}, "backoff", "1Gbps", 0)
	o := &operated{t: t, file: &operator{}, socket: filepath.Join(t.TempDir(), "gw.sock"), log: &shared{}}
	o.text = string(c.File.Text) + "profiles: {default: {mode: thresholds}}\nmanagement: {listen: \"unix:" + o.socket + "\"}\n"
	c, err := config.Parse("gw.yaml", []byte(o.text))
	if err != nil {
		t.Fatal(err)
	}
	o.file.write(o.text)
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() {
		_, err := Run(ctx, c, b, Options{Log: zerolog.New(o.log), Load: o.file.load})
		over <- err
	}()
	t.Cleanup(func() {
		stop()
		if err := <-over; err != nil {
			t.Error(err)
		}
		b.done(t, goroutines)
	})
	o.log.await(t, `"message":"The gateway is forwarding."`)
	o.log.await(t, `"message":"The API listens at a Unix socket."`)
	o.Client = api.NewClient(o.socket)
	return o
}

// edit writes the file anew, with a change.
func (o *operated) edit(old, replacement string) (text string) {
	o.t.Helper()
	text = strings.Replace(o.text, old, replacement, 1)
	if text == o.text {
		o.t.Fatalf("%q is not in the configuration", old)
	}
	o.file.write(text)
	return text
}

// inForce fails the test unless a text is the configuration in force.
func (o *operated) inForce(when, text string) {
	o.t.Helper()
	if c, err := api.Get[api.Config](o.t.Context(), o.Client, api.ConfigPath); err != nil || c.Text != text {
		o.t.Errorf("%s: in force is %+v, %v\nwant %s", when, c, err, text)
	}
}

// TestDryRun: it says what a reload would change and what needs a restart, finds mistakes, and changes nothing.
func TestDryRun(t *testing.T) {
	o := operate(t)
	for _, c := range []struct {
		old, new string
		changes  []string
		restart  []string
		mistake  string
	}{
		{"1Gbps", "2Gbps", []string{"ports[0].rate"}, nil, ""},
		{"none0", "none7", []string{"ports[0].device"}, []string{"gw.yaml:6:24: ports[0].device: differs"}, ""},
		{"capacity: 1Ki}", "capacity: 2Ki, aging: 5s}", []string{"flows.capacity", "flows.aging"}, []string{"gw.yaml:4:19: flows.capacity: differs", "gw.yaml:4:31: flows.aging: differs"}, ""},
		{"1Gbps", "fast", nil, nil, "gw.yaml:6:63: ports[0].rate"},
	} {
		o.edit(c.old, c.new)
		r, err := o.Reload(t.Context(), api.ReloadRequest{DryRun: true})
		switch {
		case c.mistake != "":
			if err == nil || !strings.Contains(err.Error(), c.mistake) {
				t.Errorf("%s: %+v, %v", c.new, r, err)
			}
		case err != nil || !slices.Equal(r.Changes, c.changes) || len(r.NeedsRestart) != len(c.restart):
			t.Errorf("%s: %+v, %v", c.new, r, err)
		default:
			for i, want := range c.restart {
				if !strings.HasPrefix(r.NeedsRestart[i], want) {
					t.Errorf("%s: %q, want %q", c.new, r.NeedsRestart, want)
				}
			}
		}
		o.inForce(c.new, o.text)
	}
}

// TestConfirmedReload: a reload on trial goes back by itself, or at once, unless it is confirmed; meanwhile another one is refused.
func TestConfirmedReload(t *testing.T) {
	o := operate(t)
	try := func(d time.Duration) string {
		t.Helper()
		text := o.edit("1Gbps", "2Gbps")
		r, err := o.Reload(t.Context(), api.ReloadRequest{Confirm: d})
		if err != nil || r.ConfirmBy == nil || time.Until(*r.ConfirmBy) > d || !slices.Equal(r.Changes, []string{"ports[0].rate"}) {
			t.Fatalf("%+v, %v", r, err)
		}
		o.inForce("on trial", text)
		return text
	}
	try(time.Second)
	o.log.await(t, `"changes":["ports[0].rate"],"message":"The reload was not confirmed in time. The configuration before it is in force again.`)
	o.inForce("not confirmed", o.text)

	text := try(time.Hour)
	o.edit("1Gbps", "3Gbps")
	if r, err := o.Reload(t.Context(), api.ReloadRequest{}); err == nil || !strings.Contains(err.Error(), "keep it with cnpgate reload --confirmed, or go back with cnpgate reload --revert") {
		t.Errorf("a second reload: %+v, %v", r, err)
	}
	if h, err := api.Get[api.Health](t.Context(), o.Client, api.HealthPath); err != nil || len(h.Notices) != 1 || !strings.Contains(h.Notices[0], "to be confirmed") {
		t.Errorf("%+v, %v", h, err)
	}
	o.inForce("after a second reload", text)
	if _, err := api.Do[api.Reloaded](t.Context(), o.Client, http.MethodPost, api.ConfirmPath, nil); err != nil {
		t.Error(err)
	}
	if _, err := api.Do[api.Reloaded](t.Context(), o.Client, http.MethodPost, api.RevertPath, nil); err == nil || !strings.Contains(err.Error(), "no reload waits to be confirmed") {
		t.Errorf("nothing to revert: %v", err)
	}
	o.inForce("confirmed", text)

	o.file.write(o.text)
	if r, err := o.Reload(t.Context(), api.ReloadRequest{}); err != nil || r.ConfirmBy != nil {
		t.Errorf("%+v, %v", r, err)
	}
	try(time.Hour)
	if r, err := api.Do[api.Reloaded](t.Context(), o.Client, http.MethodPost, api.RevertPath, nil); err != nil || !slices.Equal(r.Changes, []string{"ports[0].rate"}) {
		t.Errorf("%+v, %v", r, err)
	}
	o.inForce("reverted", o.text)
	o.file.write(o.text)
	if r, err := o.Reload(t.Context(), api.ReloadRequest{Confirm: time.Hour}); err != nil || r.ConfirmBy != nil || len(r.Changes) != 0 {
		t.Errorf("nothing has changed, so there is nothing to confirm: %+v, %v", r, err)
	}
	try(time.Hour) // at the end of the gateway it is forgotten
}

// wellButForCores reports whether nothing is wrong, but that a busy machine may keep workers off their cores.
func wellButForCores(h *api.Health) bool {
	for _, problem := range h.Problems {
		for one := range strings.SplitSeq(problem, "; ") {
			if !strings.Contains(one, " has stopped stepping: ") {
				return false
			}
		}
	}
	return h.Healthy == (len(h.Problems) == 0)
}

// TestMode: a mode holds for a port or for all until the next reload, and health says so.
func TestMode(t *testing.T) {
	o := operate(t)
	modes := func(m *api.Modes) (all string) {
		for _, p := range m.Ports {
			all += p.Mode + " "
		}
		return strings.TrimSpace(all)
	}
	for _, c := range []struct{ port, mode, want string }{
		{"line", "observe", "send observe"}, {"", "observe", "observe observe"}, {"dc", "send", "send observe"}, {"", "send", "send send"}, {"line", "observe", "send observe"},
	} {
		m, err := api.Do[api.Modes](t.Context(), o.Client, http.MethodPut, api.ModePath, api.ModeRequest{Mode: c.mode, Port: c.port})
		if err != nil || modes(m) != c.want {
			t.Fatalf("%+v: %+v, %v", c, m, err)
		}
		h, err := api.Get[api.Health](t.Context(), o.Client, api.HealthPath)
		if differ := strings.Count(c.want, "observe"); err != nil || !wellButForCores(h) || len(h.Notices) != differ {
			t.Errorf("%+v: %+v, %v", c, h, err)
		}
	}
	if _, err := o.Reload(t.Context(), api.ReloadRequest{}); err != nil {
		t.Error(err)
	}
	if m, err := api.Get[api.Modes](t.Context(), o.Client, api.ModePath); err != nil || modes(m) != "send send" {
		t.Errorf("after a reload: %+v, %v", m, err)
	}
}

// TestDrainOfAGateway: it is safe to stop once the workers have counted the senders, and a reload doesn't end the drain.
func TestDrainOfAGateway(t *testing.T) {
	o := operate(t)
	if d, err := api.Get[api.Drain](t.Context(), o.Client, api.DrainPath); err != nil || d.Draining || d.Safe {
		t.Errorf("%+v, %v", d, err)
	}
	d, err := api.Do[api.Drain](t.Context(), o.Client, http.MethodPut, api.DrainPath, nil)
	for deadline := time.Now().Add(time.Minute); err == nil && !d.Safe && time.Now().Before(deadline); d, err = api.Get[api.Drain](t.Context(), o.Client, api.DrainPath) {
		if len(d.Waits) != 1 || !strings.Contains(d.Waits[0], "have not counted") {
			t.Fatalf("%+v", d)
		}
	}
	if err != nil || !d.Draining || !d.Safe {
		t.Fatalf("%+v, %v", d, err)
	}
	if _, err := o.Reload(t.Context(), api.ReloadRequest{}); err != nil {
		t.Error(err)
	}
	if h, err := api.Get[api.Health](t.Context(), o.Client, api.HealthPath); err != nil || len(h.Notices) != 1 || !strings.Contains(h.Notices[0], "drained") {
		t.Errorf("%+v, %v", h, err)
	}
	if d, err := api.Do[api.Drain](t.Context(), o.Client, http.MethodDelete, api.DrainPath, nil); err != nil || d.Draining || d.Safe {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestServersMove: a reload moves the API and the metrics; of an address that can't be used, the answer says so.
func TestServersMove(t *testing.T) {
	o := operate(t)
	elsewhere := filepath.Join(t.TempDir(), "new.sock")
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String() // which is free
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	scrape := func() int {
		a, err := http.Get("http://" + address + "/metrics")
		if err != nil {
			return 0
		}
		_ = a.Body.Close()
		return a.StatusCode
	}
	o.edit(o.socket+`"`, o.socket+`", metrics: "198.51.100.7:1"`)
	if r, err := o.Reload(t.Context(), api.ReloadRequest{}); err != nil || !strings.Contains(r.Services["management.metrics"], "198.51.100.7:1: bind: ") {
		t.Errorf("%+v, %v", r, err)
	}
	o.edit(o.socket+`"`, elsewhere+`", metrics: "`+address+`"`)
	if r, err := o.Reload(t.Context(), api.ReloadRequest{}); err != nil || !slices.Equal(r.Changes, []string{"management.listen", "management.metrics"}) {
		t.Fatalf("%+v, %v", r, err)
	}
	if status := scrape(); status != http.StatusOK {
		t.Errorf("metrics: status %d", status)
	}
	if _, err := api.Get[api.Health](t.Context(), o.Client, api.HealthPath); err == nil {
		t.Error("the old socket still answers")
	}
	o.Client = api.NewClient(elsewhere)
	o.file.write(strings.Replace(o.text, o.socket, elsewhere, 1))
	if r, err := o.Reload(t.Context(), api.ReloadRequest{}); err != nil || !slices.Equal(r.Changes, []string{"management.metrics"}) {
		t.Fatalf("%+v, %v", r, err)
	}
	for deadline := time.Now().Add(time.Minute); scrape() != 0; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("the metrics are still served")
		}
	}
}
