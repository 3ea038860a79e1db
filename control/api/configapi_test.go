package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnpgate/cnpgate/control/config"
)

// TestConfig: the configuration in force is readable, as it was read and with its hash.
func TestConfig(t *testing.T) {
	g := newGate(t, 1)
	g.run(0)
	c, err := Get[Config](context.Background(), NewClient(g.path), ConfigPath)
	if err != nil || c.Text != gateConfig+g.path+"\"}\n" || c.File != "gate.yaml" || !filepath.IsAbs(c.Path) || filepath.Base(c.Path) != c.File || c.ConfigHash != g.config.File.Hash() {
		t.Errorf("%+v, %v", c, err)
	}
	g.want(t, http.MethodGet, ConfigPath+"?a=b", "", 400, "no parameter")
	g.want(t, http.MethodPut, ConfigPath, "", 405, "expected GET")
}

// TestReload: what has changed, or each mistake with its place.
func TestReload(t *testing.T) {
	g := newGate(t, 1)
	g.run(0)
	_, mistakes := config.Parse("gate.yaml", []byte("gateway: {}\n"))
	var changes []string
	var failure error
	var got ReloadRequest
	g.reload = func(r ReloadRequest) (*Reloaded, error) {
		got = r
		return &Reloaded{Changes: append([]string{}, changes...), ConfigHash: g.config.File.Hash()}, failure
	}
	client := NewClient(g.path)
	for _, c := range []struct {
		changes []string
		err     error
		status  int
		wants   []string
	}{
		{[]string{"ports[0].rate", "endpoints"}, nil, 200, []string{g.config.File.Hash()}},
		{nil, nil, 200, []string{`"changes":[]`}},
		{nil, mistakes, 422, []string{"the old one stays in force", "gate.yaml:1:10: gateway.name: missing", "ports: missing"}},
		{nil, fmt.Errorf("no file: %w", fs.ErrNotExist), 409, []string{"the old one stays in force: no file"}},
		{nil, errors.New("out of order"), 500, []string{"out of order"}},
	} {
		changes, failure = c.changes, c.err
		status, _, body := g.ask(t, http.MethodPost, ReloadPath, "")
		var text strings.Builder
		text.WriteString(body)
		if status != 200 {
			var e errorBody
			if err := json.Unmarshal([]byte(body), &e); err != nil {
				t.Fatal(err)
			}
			text.WriteString(e.Error)
		}
		for _, want := range c.wants {
			if status != c.status || !strings.Contains(text.String(), want) {
				t.Errorf("%v: %d %s, want %d with %q", c.err, status, body, c.status, want)
			}
		}
		r, err := client.Reload(context.Background(), ReloadRequest{})
		if (err == nil) != (c.err == nil) || err == nil && !slices.Equal(r.Changes, c.changes) || err != nil && !strings.Contains(err.Error(), c.wants[0]) {
			t.Errorf("client: %+v, %v", r, err)
		}
	}
	g.want(t, http.MethodGet, ReloadPath, "", 405, "expected POST")
	g.want(t, http.MethodPost, ReloadPath+"?file=x", "", 400, "no parameter")
	failure = nil
	for _, r := range []ReloadRequest{{DryRun: true}, {Confirm: time.Minute}} {
		if _, err := client.Reload(t.Context(), r); err != nil || got != r {
			t.Errorf("asked for %+v, the gateway got %+v, %v", r, got, err)
		}
	}
	for query, want := range map[string]string{
		"dry_run=maybe": "expected true or false", "confirm=5": "expected a time from 1s to 24h", "confirm=1ms": "expected a time from 1s to 24h", "confirm=25h": "expected a time from 1s to 24h",
		"confirm=1m&dry_run=true": "expected one of them",
	} {
		g.want(t, http.MethodPost, ReloadPath+"?"+query, "", 400, want)
	}
}

// TestConfirm: both answers to a reload that waits, and the refusal if none does.
func TestConfirm(t *testing.T) {
	g := newGate(t, 1)
	g.run(0)
	client := NewClient(g.path)
	if r, err := Do[Reloaded](t.Context(), client, http.MethodPost, ConfirmPath, nil); err != nil || !slices.Equal(r.Changes, []string{"kept"}) {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := Do[Reloaded](t.Context(), client, http.MethodPost, RevertPath, nil); err != nil || !slices.Equal(r.Changes, []string{"back"}) {
		t.Errorf("%+v, %v", r, err)
	}
	g.refusal = Conflict{errors.New("none waits")}
	g.want(t, http.MethodPost, ConfirmPath, "", 409, "none waits")
	g.want(t, http.MethodPost, RevertPath, "", 409, "none waits")
}

// TestModeAndDrain: they are read and set, and mistakes change nothing.
func TestModeAndDrain(t *testing.T) {
	g := newGate(t, 1)
	g.run(0)
	client := NewClient(g.path)
	if m, err := Do[Modes](t.Context(), client, http.MethodPut, ModePath, ModeRequest{Mode: "observe", Port: "wan"}); err != nil || !slices.Equal(m.Ports, []PortMode{{"dc", "send", "send"}, {"wan", "observe", "send"}}) {
		t.Errorf("%+v, %v", m, err)
	}
	for body, want := range map[string]string{
		`{"mode":"notify"}`: "expected send or observe", `{"mode":"observe","port":"lan"}`: "expected dc, wan", `{"port":"wan"}`: "expected send or observe", `[]`: "not an object",
	} {
		g.want(t, http.MethodPut, ModePath, body, 400, want)
	}
	if m, err := Get[Modes](t.Context(), client, ModePath); err != nil || m.Ports[1].Mode != "observe" {
		t.Errorf("%+v, %v", m, err)
	}
	g.refusal = errors.New("a mirror port")
	g.want(t, http.MethodPut, ModePath, `{"mode":"send"}`, 409, "a mirror port")
	for _, on := range []bool{true, false} {
		d, err := Do[Drain](t.Context(), client, map[bool]string{true: http.MethodPut, false: http.MethodDelete}[on], DrainPath, nil)
		again, againErr := Get[Drain](t.Context(), client, DrainPath)
		if err != nil || againErr != nil || d.Draining != on || again.Draining != on || d.Safe != on {
			t.Errorf("%+v, %v; then %+v, %v", d, err, again, againErr)
		}
	}
	g.notices = []string{"port wan: mode observe"}
	g.want(t, http.MethodGet, HealthPath, "", 200, `"notices":["port wan: mode observe"]`)
}

// TestMove: a server answers at another socket, keeps its hints, and the request during which it moves gets its answer.
func TestMove(t *testing.T) {
	g := newGate(t, 1)
	g.run(0)
	elsewhere := filepath.Join(t.TempDir(), "other.sock")
	g.want(t, http.MethodPut, HintsPath, `{"source_ip":"10.1.0.2","destination_ip":"10.9.0.8","source_qp":51,"destination_qp":101}`, 201)
	g.reload = func(ReloadRequest) (*Reloaded, error) {
		at, err := Listen(elsewhere)
		if err == nil {
			g.server.Move(at)
		}
		return &Reloaded{Changes: []string{"management.listen"}}, err
	}
	if r, err := NewClient(g.path).Reload(t.Context(), ReloadRequest{}); err != nil || len(r.Changes) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := Get[Health](t.Context(), NewClient(g.path), HealthPath); err == nil || !strings.Contains(err.Error(), "no socket at") {
		t.Errorf("the old socket: %v", err)
	}
	body, err := NewClient(elsewhere).JSON(t.Context(), HintsPath)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if text, err := io.ReadAll(body); err != nil || !strings.Contains(string(text), `"source_qp":51`) {
		t.Errorf("%s, %v", text, err)
	}
	g.server.Move(nil)
	if _, err := Get[Health](t.Context(), NewClient(elsewhere), HealthPath); err == nil {
		t.Error("a server without a socket answers")
	}
}
