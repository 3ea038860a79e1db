package main

import (
	"archive/tar"
	"compress/gzip"
	"io"
	"path/filepath"
	"strings"
	"testing"
)

// TestShowTech: the bundle has what the gateway answers, says what is missing, and has no secret.
func TestShowTech(t *testing.T) {
	dir := workspace(t)
	socket := filepath.Join(dir, "gw.sock")
	operable(t, socket, map[string]string{"GET /v1/config": `{"text":"servers: [\"tls://me:hunter2@nats:4222\"]"}`, "GET /v1/version": `{"version":"1.2.3"}`})
	got := cnpgate(t, dir, "show", "tech", "-", "--socket", socket)
	if got.status != 0 {
		t.Fatalf("%+v", got)
	}
	files := map[string]string{}
	zipped, err := gzip.NewReader(strings.NewReader(got.stdout))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(zipped); ; {
		h, err := r.Next()
		if err != nil {
			break
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = string(text)
	}
	for name, want := range map[string]string{
		"gateway/config.json": `tls://REMOVED@nats:4222`, "gateway/version.json": "1.2.3", "missing.txt": "gateway/health.json: ", "host/proc/meminfo": "MemTotal", "command-version.txt": "cnpgate",
	} {
		if !strings.Contains(files["cnpgate/"+name], want) {
			t.Errorf("%s: %.300q, want %q", name, files["cnpgate/"+name], want)
		}
	}
	for _, c := range []struct{ args, want string }{{"show tech bundle.tar.gz --socket none.sock", ""}, {"show tech bundle.tar.gz --socket none.sock", "expected a file that doesn't exist"}} {
		if got := within(t, dir, strings.Fields(c.args)...); !strings.Contains(got.stderr, c.want) || (got.status == 0) != (c.want == "") {
			t.Errorf("%s: %+v", c.args, got)
		}
	}
}

func TestWithoutSecrets(t *testing.T) {
	for text, want := range map[string]string{
		"tls://a:b@host:1": "tls://REMOVED@host:1", "nats://token@h": "nats://REMOVED@h", "https://host/x@y": "https://host/x@y", `"password": "x y"`: `"password": "REMOVED"`,
		`{"text":"password: \"x y\"\nb: 1"}`: `{"text":"password: \"REMOVED\"\nb: 1"}`, "secret: 'x y'": "secret: 'REMOVED'", "nats://u:p@ss@h": "nats://REMOVED@h",
		"Authorization: Bearer x": "Authorization: Bearer REMOVED", `{"text":"token: x\nb: 1"}`: `{"text":"token: REMOVED\nb: 1"}`,
		"token=abc,def": "token=REMOVED,def", "key SUAMK2FG4MI6UE3ACF3FK3OIQBCEIEZV7NSWFFEW63UXMRLFM2XLAXK4GY5Q.": "key SUAMK2FG4MI6UE3ACF3FK3OIQBCEIEZV7NSWFFEW63UXMRLFM2XLAXK4GY5Q.",
		"key UBXKIKYVWJ5SE5JVJLJJQZHZ6IAYRVXQH7BW4BDCMBMP6QU5NSXQVQ5N": "key UBXKIKYVWJ5SE5JVJLJJQZHZ6IAYRVXQH7BW4BDCMBMP6QU5NSXQVQ5N", "token_file: /etc/t": "token_file: /etc/t",
	} {
		if got := string(withoutSecrets([]byte(text))); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	seed := "S" + "U" + strings.Repeat("A", 56)
	if got := string(withoutSecrets([]byte("a " + seed))); got != "a REMOVED" {
		t.Error(got)
	}
}

// TestBinaryToTerminal: nothing but text is written to a terminal.
func TestBinaryToTerminal(t *testing.T) {
	for _, args := range []string{"show tech -", "capture -w -"} {
		to, seen := terminal(t)
		c := root()
		c.SetArgs(strings.Fields(args))
		c.SetOut(to)
		err := c.Execute()
		if text := seen(); err == nil || !strings.Contains(err.Error(), "to a terminal; expected a pipe or a file") || text != "" {
			t.Errorf("%s: %v, and %q", args, err, text)
		}
	}
}
