package api

import (
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// TestClientOfAnotherServer: the server may not be a gateway, or may be one of another version.
func TestClientOfAnotherServer(t *testing.T) {
	for _, c := range []struct {
		answer func(http.ResponseWriter)
		want   string
	}{
		{func(w http.ResponseWriter) { http.Error(w, "nginx", http.StatusBadGateway) }, "answers with 502 Bad Gateway, which is not an answer of the API; expected a gateway of this version"},
		{func(w http.ResponseWriter) { answerError(w, failed(http.StatusTeapot, "short and stout")) }, ": short and stout"},
		{func(w http.ResponseWriter) { _, _ = w.Write([]byte("<html>")) }, "invalid character '<'"},
		{func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, "EOF"},
		{func(w http.ResponseWriter) {
			_, _ = w.Write([]byte(`{"flows":[`))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, "EOF; try again"},
		{func(w http.ResponseWriter) { _, _ = w.Write([]byte(`{"flows":[]}`)) }, ""},
	} {
		l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
		if err != nil {
			t.Fatal(err)
		}
		server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { c.answer(w) })}
		served := make(chan error)
		go func() { served <- server.Serve(l) }()
		_, err = Get[FlowsBody](t.Context(), NewClient(l.Addr().String()), FlowsPath)
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
		check(t, server.Close())
		<-served
	}
}
