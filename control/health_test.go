package control

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"runtime"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

func (h *health) want(t *testing.T, what string, want map[string]string) {
	t.Helper()
	if got := h.problems(); !maps.Equal(got, want) {
		t.Errorf("%s: the problems are %q, expected %q", what, got, want)
	}
}

// TestHealthJoinsCauses: a cause that ends takes no other with it, and the same problem noted twice ends at once.
func TestHealthJoinsCauses(t *testing.T) {
	h := &health{}
	h.want(t, "at first", map[string]string{})
	h.note("wan", linkCause, "no link")
	h.note("wan", deviceCause, "interface eth1 is down")
	h.note("fabric", linkCause, "")
	h.want(t, "two causes", map[string]string{"wan": "interface eth1 is down; no link"})
	h.note("wan", deviceCause, "interface eth1 is gone")
	h.note("wan", deviceCause, "interface eth1 is gone")
	h.want(t, "another state", map[string]string{"wan": "interface eth1 is gone; no link"})
	h.note("wan", deviceCause, "")
	h.want(t, "one cause has ended", map[string]string{"wan": "no link"})
	h.note("wan", linkCause, "")
	h.want(t, "all have ended", map[string]string{})
}

// TestHealthOfLinks: a port without a link is ill from the first look on until its link is up, whatever the reason.
func TestHealthOfLinks(t *testing.T) {
	w := newWatched(1)
	g := &gateway{started: w.config}
	watch := &watch{g: g, links: w.links}
	want := func(what string, d time.Duration, port0, port1 string) {
		t.Helper()
		w.after(d)
		watch.noteLinks()
		expected := map[string]string{}
		for name, text := range map[string]string{"port0": port0, "port1": port1} {
			if text != "" {
				expected[name] = text
			}
		}
		g.health.want(t, what, expected)
	}
	w.cable[0], w.blind[1] = false, true // the looks begin at 00:16:40 and are 50 ms apart
	want("no cable, and a device that can't tell", sampleStep, "no link since the gateway started at 1970-01-01T00:16:40Z", "")
	w.blind[1] = false
	want("later", 9950*time.Millisecond, "no link since the gateway started at 1970-01-01T00:16:40Z", "")
	w.cable[0] = true
	want("plugged, not confirmed", sampleStep, "no link since the gateway started at 1970-01-01T00:16:40Z", "")
	want("up", 10*time.Second, "", "")
	w.cable[0] = false
	want("a glitch", sampleStep, "", "")
	want("failed", 10*time.Second, "no link since 1970-01-01T00:17:00Z", "link taken down at 1970-01-01T00:17:00Z, as port port0 has none")
	w.cable[0], w.rise[1] = true, time.Minute
	want("back, the peer comes up", 10*time.Second, "", "no link yet: let up again at 1970-01-01T00:17:10Z")
	w.cable[1] = false
	want("the peer's cable was pulled meanwhile", 2*time.Minute, "link taken down at 1970-01-01T00:18:40Z, as port port1 has none", "no link since 1970-01-01T00:17:10Z")
	w.cable[1], w.rise[1] = true, 0
	want("all is plugged", time.Second, "", "")
}

// devicesThat report what a test gives them.
type devicesThat struct {
	*wire
	notices []Notice
}

func (d *devicesThat) Watch(_ context.Context, report func(Notice)) error {
	for _, n := range d.notices {
		report(n)
	}
	return nil
}

// TestWatchDevices: health is what the last notice says of the state, and the log has each notice with it.
func TestWatchDevices(t *testing.T) {
	var log bytes.Buffer
	w := newWatched(1)
	g := &gateway{started: w.config, options: Options{Log: zerolog.New(&log)}}
	watch := func(n ...Notice) {
		g.devices = &devicesThat{w.wire, n}
		(&watch{g: g}).watchDevices(t.Context())
	}
	watch(Notice{Port: 1, Text: "interface b0 has MTU 1400 now", Problem: "MTU 1400 is too small"}, Notice{Port: 1, Text: "interface b0 is called c0 now", Problem: "MTU 1400 is too small"})
	g.health.want(t, "an unrelated change", map[string]string{"port1": "MTU 1400 is too small"})
	watch(Notice{Port: 1, Text: "interface c0 has MTU 1500 now"})
	g.health.want(t, "mended", map[string]string{})
	type line struct {
		Level, Port, Message, Problem string
		Healthy                       bool
	}
	lines := json.NewDecoder(&log)
	for _, want := range []line{
		{"warn", "port1", "Interface b0 has MTU 1400 now.", "MTU 1400 is too small", false},
		{"warn", "port1", "Interface b0 is called c0 now.", "MTU 1400 is too small", false},
		{"info", "port1", "Interface c0 has MTU 1500 now.", "", true},
	} {
		var got line
		if err := lines.Decode(&got); err != nil || got != want {
			t.Errorf("the log has %+v (%v), expected %+v", got, err, want)
		}
	}
}

// lateBench is devices whose workers can't begin until they may.
type lateBench struct {
	*bench
	may chan struct{}
}

func (l *lateBench) Enter(core int) (func(), error) {
	<-l.may
	return l.bench.Enter(core)
}

// TestHealthBeforeForwarding: the API already answers while the workers begin, but nothing is forwarded yet.
func TestHealthBeforeForwarding(t *testing.T) {
	before := runtime.NumGoroutine()
	c, b := newBench(t, []int{0}, "backoff", "1Gbps", 0)
	ctx, cancel := context.WithCancel(t.Context())
	devices, started := &lateBench{b, make(chan struct{})}, make(chan struct{})
	g := newGateway(c, devices, Options{Log: zerolog.Nop(), Started: func() { close(started) }})
	ended := make(chan error)
	go func() {
		_, err := g.run(ctx)
		ended <- err
	}()
	for deadline := time.Now().Add(10 * time.Second); len(g.health.problems()) < len(c.Ports); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("problems while no worker has begun: %v", g.health.problems())
			break
		}
	}
	close(devices.may)
	<-started
	if p := g.health.problems(); len(p) > 0 {
		t.Errorf("problems of a gateway that forwards: %v", p)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	b.done(t, before)
}
