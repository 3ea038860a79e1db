package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReloadOfAnotherFile: a reload reads the gateway's own file, so a --config that is another one is refused. A link to it, and the same path spelled
// otherwise, are the gateway's.
func TestReloadOfAnotherFile(t *testing.T) {
	dir := workspace(t)
	reloads := 0
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/config", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"file":"run.yaml","path":%q,"config_hash":"","text":""}`, filepath.Join(dir, "run.yaml"))
	})
	mux.HandleFunc("POST /v1/reload", func(w http.ResponseWriter, _ *http.Request) {
		reloads++
		fmt.Fprint(w, `{"changes":[],"config_hash":""}`)
	})
	socket := filepath.Join(dir, "api.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := http.Server{Handler: mux}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	text := goodConfig + fmt.Sprintf("management: {listen: 'unix:%s'}\n", socket)
	put(t, dir, "run.yaml", []byte(text))
	put(t, dir, "other.yaml", []byte(text))
	if err := os.Symlink("run.yaml", filepath.Join(dir, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"run.yaml", "./run.yaml", "link.yaml", filepath.Join(dir, "run.yaml")} {
		if got := cnpgate(t, dir, "reload", "--config", file); got.status != 0 || got.stdout != "reloaded; nothing has changed\n" {
			t.Errorf("%s: %+v", file, got)
		}
	}
	before := reloads
	got := cnpgate(t, dir, "reload", "--config", "other.yaml")
	if want := "the gateway runs " + filepath.Join(dir, "run.yaml"); got.status != 1 || got.stdout != "" || !strings.Contains(got.stderr, want) {
		t.Errorf("another file: %+v, expected %q", got, want)
	}
	if reloads != before {
		t.Error("the gateway was asked to reload all the same")
	}
}
