package api

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
)

var update = flag.Bool("update", false, "write docs/openapi.json anew")

const documentFile = "../../docs/openapi.json"

// TestDocumentIsCurrent: docs/openapi.json is what the gateway serves. `go test ./control/api -run Current -update` writes it.
func TestDocumentIsCurrent(t *testing.T) {
	got, err := document((&Server{}).operations())
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		check(t, os.WriteFile(documentFile, got, 0o644))
	}
	want, err := os.ReadFile(documentFile)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("docs/openapi.json is not the document of this program (%v); write it with -update", err)
	}
}

// contract is the document as read by an independent implementation.
var contract = sync.OnceValues(func() (routers.Router, error) {
	text, err := document((&Server{}).operations())
	if err != nil {
		return nil, err
	}
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return nil, err
	}
	if err := doc.Validate(context.Background()); err != nil {
		return nil, err
	}
	return legacy.NewRouter(doc)
})

// TestDocumentIsValid: it is OpenAPI 3.1, and has each operation.
func TestDocumentIsValid(t *testing.T) {
	router, err := contract()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range (&Server{}).operations() {
		r, err := http.NewRequestWithContext(t.Context(), o.method, "http://localhost"+o.path, nil)
		check(t, err)
		if route, _, err := router.FindRoute(r); err != nil || route.Operation.OperationID != o.id {
			t.Errorf("%s %s: %v", o.method, o.path, err)
		}
	}
}

// breach compares a request and its answer with the document: the answer has the documented form, and a request that the document does not allow is
// refused.
func breach(method, path, body string, status int, header http.Header, answer []byte) error {
	router, err := contract()
	if err != nil {
		return err
	}
	ctx := context.Background()
	r, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, strings.NewReader(body))
	if err != nil {
		return nil // nothing that net/http reads from a connection
	}
	r.Header.Set("Content-Type", jsonType)
	route, parameters, err := router.FindRoute(r)
	if err != nil {
		if status != http.StatusNotFound && status != http.StatusMethodNotAllowed && method != http.MethodHead {
			return fmt.Errorf("status %d of a request that the document does not have", status)
		}
		return nil
	}
	in := &openapi3filter.RequestValidationInput{Request: r, Route: route, PathParams: parameters}
	if err := openapi3filter.ValidateRequest(ctx, in); err != nil && status < 400 {
		return fmt.Errorf("status %d, but by the document %w", status, err)
	}
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: status, Header: header, Body: io.NopCloser(bytes.NewReader(answer))}
	return openapi3filter.ValidateResponse(ctx, out)
}

// TestBreach: what is not as documented is noticed.
func TestBreach(t *testing.T) {
	header := http.Header{"Content-Type": {jsonType}}
	for _, c := range []struct {
		path, answer string
		status       int
	}{
		{HealthPath, `{"healthy":1,"problems":{}}`, 200}, {HealthPath, `{"healthy":true,"problems":{},"other":1}`, 200}, {HealthPath, `{}`, 200},
		{FlowsPath, `{"flows":[{}],"more":false}`, 200}, {"/v1/other", `{}`, 200}, {FlowsPath + "?qp_state=sure", `{"flows":[],"more":false}`, 200},
		{CountersPath, `{"gateway":"a","config_hash":"","counters":{"received":1},"ports":[]}`, 200}, {VersionPath, `{}`, 404},
	} {
		if breach(http.MethodGet, c.path, "", c.status, header, []byte(c.answer)) == nil {
			t.Errorf("%s: %s passes", c.path, c.answer)
		}
	}
	if err := breach(http.MethodGet, HealthPath, "", 200, header, []byte(`{"healthy":true,"problems":{}}`)); err != nil {
		t.Error(err)
	}
}
