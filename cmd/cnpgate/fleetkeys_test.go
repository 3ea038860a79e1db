package main

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFleetKeys: gateways with the files trust each other, at the addresses that were given; another one can be added; no file is replaced.
func TestFleetKeys(t *testing.T) {
	dir := workspace(t)
	got := cnpgate(t, dir, "fleet", "keys", "gw-1=127.0.0.1,gw-1.example.net", "gw-2=::1")
	if got.status != 0 || !strings.HasPrefix(got.stdout, "  members:\n    - {name: gw-1, key: U") || strings.Count(got.stdout, "{name:") != 2 {
		t.Fatalf("%+v", got)
	}
	if later := cnpgate(t, dir, "fleet", "keys", "gw-3=127.0.0.1"); later.status != 0 {
		t.Fatalf("%+v", later)
	}
	for _, name := range []string{"ca.key", "gw-1.key", "gw-1.nk", "gw-3.key"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(get(t, dir, "ca.pem")))
	of := func(name string) *tls.Config {
		pair, err := tls.LoadX509KeyPair(filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key"))
		if err != nil {
			t.Fatal(err)
		}
		return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
	}
	for _, c := range []struct {
		server, client, name string
		fails                bool
	}{{"gw-1", "gw-3", "127.0.0.1", false}, {"gw-1", "gw-2", "gw-1.example.net", false}, {"gw-2", "gw-1", "::1", false}, {"gw-2", "gw-1", "127.0.0.1", true}} {
		a, b := net.Pipe()
		client := of(c.client)
		client.ServerName = c.name
		served := make(chan error, 1)
		go func() { served <- tls.Server(b, of(c.server)).HandshakeContext(t.Context()) }()
		err := tls.Client(a, client).HandshakeContext(t.Context())
		_ = a.Close()
		if other := <-served; (err != nil) != c.fails || (other != nil) != c.fails {
			t.Errorf("%+v: %v; %v", c, err, other)
		}
	}
	for _, c := range []struct{ args, want string }{
		{"fleet keys", "no gateway or host is given"}, {"fleet keys gw-1=", `"gw-1=" is no gateway or host`}, {"fleet keys gw-1=127.0.0.1", "a key is never replaced"}, {"fleet keys ../x", "is no gateway or host"}, {"fleet keys a:b", "is no gateway or host"},
		{"fleet", "cnpgate fleet alone was removed; use cnpgate show fleet"}, {"fleet --watch 1s", "use cnpgate show fleet"}, {"fleet keys a=b --dir none", "no such file"},
	} {
		if got := within(t, dir, strings.Fields(c.args)...); got.status != 1 || !strings.Contains(got.stderr, c.want) {
			t.Errorf("%s: %+v, want %q", c.args, got, c.want)
		}
	}
}

// TestHostKey: of a name without an address only the key is made, and no CA.
func TestHostKey(t *testing.T) {
	dir := t.TempDir()
	got := cnpgate(t, dir, "fleet", "keys", "h17")
	if got.status != 0 || !strings.HasPrefix(got.stdout, "    - {name: h17, key: U") || strings.Count(got.stdout, "\n") != 1 {
		t.Errorf("%+v", got)
	}
	if left := names(t, dir); len(left) != 1 || left[0] != "h17.nk" {
		t.Errorf("files %q, want h17.nk", left)
	}
}
