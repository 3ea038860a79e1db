package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/fleet/wire"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// endless is a body that never ends; it counts what was read of it.
type endless struct{ read int }

func (e *endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	e.read += len(b)
	return len(b), nil
}

// FuzzAPI: whatever comes in, nothing panics, no bad request is answered as the gateway's fault, and each answer is as documented.
func FuzzAPI(f *testing.F) {
	for _, o := range (&Server{}).operations() {
		f.Add(o.method, o.path, "", "")
		f.Add(o.method, o.path, "source_ip=10.1.0.1&destination_ip=10.9.0.9&source_qp=17&destination_qp=18&limit=2", aHint)
		f.Add(o.method, o.path, "qp_state=confirmed&qp_evidence=hint", `{"log_level":"debug"}`)
	}
	f.Add("BREW", "/v1/../v1//flows", "%zz;&=&=", "{")
	f.Add("CONNECT", "*", "a=b", `{"log_level":{"log_level":[]}}`)
	g := newFuzzGate(f)
	f.Fuzz(func(t *testing.T, method, path, query, body string) {
		r, err := http.NewRequest(method, "http://localhost/", strings.NewReader(body))
		if err != nil {
			return // net/http refuses such a method itself
		}
		r.URL = &url.URL{Scheme: "http", Host: "localhost", Path: path, RawQuery: query}
		if path == StreamPath { // it ends with the request's context
			ctx, cancel := context.WithCancel(r.Context())
			cancel()
			r = r.WithContext(ctx)
		}
		w := httptest.NewRecorder()
		g.server.http.Handler.ServeHTTP(w, r)
		answer := w.Body.Bytes()
		if w.Code >= 500 && !(w.Code == http.StatusInsufficientStorage && path == HintsPath) {
			t.Errorf("%q %q %q %q: %d %s", method, path, query, body, w.Code, answer)
		}
		if path == StreamPath && w.Code == http.StatusOK {
			return // lines, which the checker does not read
		}
		if err := breach(method, r.URL.RequestURI(), body, w.Code, w.Header(), answer); err != nil {
			t.Errorf("%q %q %q %q: %v", method, path, query, body, err)
		}
	})
}

// newFuzzGate is a gateway with a flow, whose health is good and whose reload changes nothing.
func newFuzzGate(t testing.TB) *gate {
	g := newGate(t, 1)
	g.reload = func(ReloadRequest) (*Reloaded, error) { return &Reloaded{Changes: []string{}}, nil }
	g.see(t, 0, 0, testkit.RoCE{Src: "10.1.0.1", Dst: "10.9.0.9", DestQP: 100})
	g.run(0)
	return g
}

// TestBodiesAreBounded: no request has more read of its body than is needed to refuse it.
func TestBodiesAreBounded(t *testing.T) {
	g := newFuzzGate(t)
	for _, o := range g.server.operations() {
		if o.lines {
			continue // it would not end
		}
		query := url.Values{}
		for _, p := range o.parameters {
			if p.required {
				query.Set(p.name, fmt.Sprint(p.schema.Examples[0]))
			}
		}
		body := &endless{}
		r := httptest.NewRequest(o.method, o.path+"?"+query.Encode(), io.NopCloser(body))
		w := httptest.NewRecorder()
		g.server.http.Handler.ServeHTTP(w, r)
		if want := map[bool]int{false: http.StatusOK, true: http.StatusRequestEntityTooLarge}[o.body != nil]; w.Code != want && o.path != HintsPath {
			t.Errorf("%s %s: status %d, want %d", o.method, o.path, w.Code, want)
		}
		most := maxBody
		if o.path == HintsPath && o.method == http.MethodPost {
			most = wire.MaxBody
		}
		if body.read > 2*most {
			t.Errorf("%s %s: %d bytes of the body were read", o.method, o.path, body.read)
		}
	}
}
