package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/control/config"
)

// TestConfig: the configuration in force is readable, as it was read and with its hash.
func TestConfig(t *testing.T) {
	g := newGate(t, 1)
	g.run(0)
	c, err := NewClient(g.path).Running(context.Background())
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
	g.reload = func() ([]string, error) { return changes, failure }
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
		status, _, body := g.ask(t, http.MethodPost, reloadPath, "")
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
		r, err := client.Reload(context.Background())
		if (err == nil) != (c.err == nil) || err == nil && !slices.Equal(r.Changes, c.changes) || err != nil && !strings.Contains(err.Error(), c.wants[0]) {
			t.Errorf("client: %+v, %v", r, err)
		}
	}
	g.want(t, http.MethodGet, reloadPath, "", 405, "expected POST")
	g.want(t, http.MethodPost, reloadPath+"?file=x", "", 400, "no parameter")
}
