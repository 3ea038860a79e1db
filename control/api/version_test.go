package api

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

// TestVersion: the answer says which gateway it is, by the names that the counters use.
func TestVersion(t *testing.T) {
	g := newGate(t, 1)
	g.run(0)
	v, err := Get[Version](t.Context(), NewClient(g.path), VersionPath)
	want := g.Identity()
	if err != nil || v.Gateway != "gw" || v.Version != want.Version || !v.StartTime.Equal(*want.StartTime) || v.ConfigHash != g.config.File.Hash() || v.GoVersion != runtime.Version() {
		t.Errorf("%+v, %v", v, err)
	}
	identity := `"gateway":"gw","version":"v1.2.3","start_time":"2026-01-02T03:04:05Z","config_hash":"` + want.ConfigHash + `"`
	g.want(t, http.MethodGet, VersionPath, "", 200, identity)
	g.want(t, http.MethodGet, CountersPath, "", 200, identity)
}

// TestLogLevel: it is read and set, and one that doesn't exist changes nothing.
func TestLogLevel(t *testing.T) {
	g := newGate(t, 1)
	g.run(0)
	client := NewClient(g.path)
	for _, c := range []struct{ set, want, err string }{{"", "info", ""}, {"debug", "debug", ""}, {"loud", "debug", "expected debug, info, warn, error"}, {"error", "error", ""}} {
		if c.set != "" {
			l, err := Do[LogLevel](t.Context(), client, http.MethodPut, LogLevelPath, LogLevelRequest{LogLevel: c.set})
			if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) || err == nil && l.LogLevel != c.want {
				t.Errorf("set %s: %+v, %v", c.set, l, err)
			}
		}
		if l, err := Get[LogLevel](t.Context(), client, LogLevelPath); err != nil || l.LogLevel != c.want || l.Configured != "info" || g.level != c.want {
			t.Errorf("after %s: %+v, %v", c.set, l, err)
		}
	}
}

// TestRequestsAreLogged: at the level debug.
func TestRequestsAreLogged(t *testing.T) {
	for _, o := range (&Server{}).operations() {
		var log strings.Builder
		s := &Server{log: zerolog.New(&log)}
		s.handler(nil).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(o.method, o.path, nil))
		if want := `{"level":"debug","method":"` + o.method + `","path":"` + o.path + `","status":404,"message":"The API has answered a request."}` + "\n"; log.String() != want {
			t.Errorf("got %s, want %s", log.String(), want)
		}
	}
}
