package webserver

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/web"
)

// ask makes a request and returns the status, the header and the body's beginning.
func ask(t *testing.T, client *http.Client, method, url string, header map[string]string) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range header {
		if key == "Host" {
			r.Host = value
			continue
		}
		r.Header.Set(key, value)
	}
	a, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	text := make([]byte, 4096)
	n, _ := io.ReadAtLeast(a.Body, text, 1)
	return a.StatusCode, a.Header, string(text[:n])
}

// TestGuard: only requests to read, to this host, and from the page itself are answered.
func TestGuard(t *testing.T) {
	s := serve(t, Local("127.0.0.1:0"), NewLive(api.NewClient(newFake(t, 2, 10).socket)), files)
	_, port, _ := net.SplitHostPort(s.Address())
	for _, c := range []struct {
		method, path string
		header       map[string]string
		status       int
	}{
		{"GET", "/", nil, 200},
		{"HEAD", "/live.js", nil, 200},
		{"GET", "/index.html", nil, 200},
		{"GET", "/v1/version", nil, 200},
		{"GET", "/v1/version", map[string]string{"Host": "localhost:" + port}, 200},
		{"GET", "/v1/version", map[string]string{"Host": "[::1]:" + port}, 200},
		{"GET", "/v1/version", map[string]string{"Host": "evil.example"}, 421},
		{"GET", "/", map[string]string{"Host": "evil.example:" + port}, 421},
		{"GET", "/", map[string]string{"Host": "192.0.2.1"}, 421},
		{"GET", "/", map[string]string{"Host": "localhost.evil.example"}, 421},
		{"GET", "/", map[string]string{"Host": "127.0.0.1.evil.example"}, 421},
		{"GET", "/v1/version", map[string]string{"Origin": "http://" + s.Address()}, 200},
		{"GET", "/v1/version", map[string]string{"Origin": "https://" + s.Address()}, 403},
		{"GET", "/v1/version", map[string]string{"Origin": "http://evil.example"}, 403},
		{"GET", "/v1/version", map[string]string{"Origin": "null"}, 403},
		{"GET", "/v1/version", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		{"GET", "/v1/version", map[string]string{"Sec-Fetch-Site": "same-site"}, 403},
		{"GET", "/v1/version", map[string]string{"Sec-Fetch-Site": "same-origin"}, 200},
		{"GET", "/", map[string]string{"Sec-Fetch-Site": "cross-site"}, 200}, // a link to the page
		{"POST", "/v1/reload", nil, 405},
		{"PUT", "/v1/mode", nil, 405},
		{"DELETE", "/v1/drain", nil, 405},
		{"OPTIONS", "/v1/version", nil, 405},
		{"GET", "/v1/config", nil, 404},
		{"GET", "/v1/packets/stream", nil, 404},
		{"GET", "/v1/flows/../config", nil, 404},
		{"GET", "/v1/version", map[string]string{"X": strings.Repeat("x", 2*maxHeader)}, 431},
	} {
		status, header, body := ask(t, &http.Client{}, c.method, "http://"+s.Address()+c.path, c.header)
		if status != c.status {
			t.Errorf("%s %s %v: status %d, want %d: %s", c.method, c.path, c.header, status, c.status, body)
		}
		if c.status == 431 {
			continue // net/http answers before any handler
		}
		if header.Get("Content-Security-Policy") != web.Policy || header.Get("X-Content-Type-Options") != "nosniff" || header.Get("Set-Cookie") != "" ||
			header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s %s: header %v", c.method, c.path, header)
		}
	}
}

// certificate writes a certificate for a name, and its key.
func certificate(t *testing.T, name string) (file, key string, roots *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots.AddCert(parsed)
	dir := t.TempDir()
	file, key = filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem")
	for path, block := range map[string]*pem.Block{file: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return file, key, roots
}

func tokenFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestEntry: "/" leads to the page that the source is for.
func TestEntry(t *testing.T) {
	for _, c := range []struct {
		source Source
		want   string
	}{
		{Playground{Entry: "index.html#scenario=incast-1ms&right=fast-cnp"}, "/index.html#scenario=incast-1ms&right=fast-cnp"},
		{&Diagnosis{Diagnosis: diagnosed(t)}, "/diagnose.html#report"},
		{&Recording{}, ""},
	} {
		files := fstest.MapFS{"live.html": {Data: []byte("live")}, "index.html": {Data: []byte("playground")}}
		s := serve(t, Local("127.0.0.1:0"), c.source, files)
		client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		answer, err := client.Get(s.URL())
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if got := answer.Header.Get("Location"); got != c.want || (answer.StatusCode == http.StatusFound) != (c.want != "") {
			t.Errorf("%T: status %d, Location %q, expected %q", c.source, answer.StatusCode, got, c.want)
		}
		if want := s.URL() + strings.TrimPrefix(c.want, "/"); s.Entry() != want {
			t.Errorf("%T: the entry is %q, expected %q", c.source, s.Entry(), want)
		}
	}
}

// TestToken: with TLS and a token, the files are for anyone, and what the gateway says is for those who have the token; another token ends what the old one began.
func TestToken(t *testing.T) {
	file, key, roots := certificate(t, "gw.example")
	token := strings.Repeat("k", leastToken)
	c := &config.Web{Listen: "127.0.0.1:0", Certificate: file, Key: key, TokenFile: tokenFile(t, token+"\n")}
	settings, err := Load(c)
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, settings, NewLive(api.NewClient(newFake(t, 2, 10).socket)), files)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "gw.example"}}}
	base := "https://" + s.Address()
	for _, one := range []struct {
		path          string
		authorization string
		host          string
		status        int
	}{
		{"/", "", "", 200},
		{"/v1/version", "", "", 401},
		{"/events", "", "", 401},
		{"/source", "Bearer ", "", 401},
		{"/source", token, "", 401},
		{"/source", "Basic " + token, "", 401},
		{"/source", "Bearer " + token + "k", "", 401},
		{"/source", "Bearer " + token[1:], "", 401},
		{"/source", "Bearer " + token, "", 200},
		{"/source", "Bearer " + token, "gw.example", 200},
		{"/source", "Bearer " + token, "GW.example:8420", 200},
		{"/source", "Bearer " + token, "other.example", 421},
	} {
		header := map[string]string{}
		if one.authorization != "" {
			header["Authorization"] = one.authorization
		}
		if one.host != "" {
			header["Host"] = one.host
		}
		if status, _, body := ask(t, client, "GET", base+one.path, header); status != one.status {
			t.Errorf("%+v: status %d: %s", one, status, body)
		}
	}
	if _, err := http.Get("http://" + s.Address() + "/"); err == nil {
		if status, _, _ := ask(t, http.DefaultClient, "GET", "http://"+s.Address()+"/", nil); status != 400 {
			t.Errorf("HTTP without TLS: status %d", status)
		}
	}
	r, _ := http.NewRequestWithContext(t.Context(), "GET", base+"/events", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	open, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Body.Close()
	s.Use(settings) // the same: nothing ends
	if _, err := bufio.NewReader(open.Body).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	c.TokenFile = tokenFile(t, strings.Repeat("n", leastToken))
	next, err := Load(c)
	if err != nil {
		t.Fatal(err)
	}
	s.Use(next)
	if _, err := io.Copy(io.Discard, open.Body); err != nil {
		t.Error("the end of the events: ", err)
	}
	if status, _, _ := ask(t, client, "GET", base+"/source", map[string]string{"Authorization": "Bearer " + token}); status != 401 {
		t.Errorf("the old token: status %d", status)
	}
}

// TestLoad: files that can't be used are named, without their contents.
func TestLoad(t *testing.T) {
	file, key, _ := certificate(t, "gw.example")
	secret := strings.Repeat("s", leastToken-1)
	for _, c := range []struct {
		web  config.Web
		want string
	}{
		{config.Web{Certificate: file, Key: file}, "management.web.certificate and key: "},
		{config.Web{Certificate: "/nowhere", Key: key}, "no such file"},
		{config.Web{TokenFile: "/nowhere"}, "management.web.token_file: "},
		{config.Web{TokenFile: t.TempDir()}, "is not a file"},
		{config.Web{TokenFile: tokenFile(t, secret)}, "expected one line of 32 to 256"},
		{config.Web{TokenFile: tokenFile(t, secret+" x")}, "without spaces"},
		{config.Web{TokenFile: tokenFile(t, secret+"\nx")}, "one line"},
		{config.Web{TokenFile: tokenFile(t, strings.Repeat("x", mostToken+3))}, "32 to 256"},
	} {
		if _, err := Load(&c.web); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%+v: %v, want %s", c.web, err, c.want)
		}
	}
	if s, err := Load(nil); s != nil || err != nil {
		t.Error(s, err)
	}
	for _, address := range []string{"127.0.0.1:99999", "192.0.2.77:8420"} {
		if _, err := open(Local(address), &Recording{}, files, nil); err == nil {
			t.Errorf("listens at %s", address)
		}
	}
}

// TestSlowPages: pages that read nothing miss events, and hold neither the others nor memory; too many are refused.
func TestSlowPages(t *testing.T) {
	h := newHub()
	slow, err := h.join()
	if err != nil {
		t.Fatal(err)
	}
	fast, _ := h.join()
	for i := range 3 * queued {
		e := newEvent("counters", fmt.Appendf(nil, "%d", i))
		h.send(e, e)
		if got := <-fast.events; got != e {
			t.Fatalf("the fast page gets %s", got.text)
		}
	}
	if len(slow.events) != queued || h.takeMissed(slow) != 2*queued || h.takeMissed(slow) != 0 || h.takeMissed(fast) != 0 {
		t.Errorf("the slow page has %d events", len(slow.events))
	}
	late, err := h.join()
	if err != nil || len(late.events) != 1 {
		t.Fatalf("a late page: %v, %d events, expected the latest", err, len(late.events))
	}
	for range maxPages - 3 {
		if _, err := h.join(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.join(); err == nil {
		t.Error("one page more is let in")
	}
	h.leave(late)
	if _, err := h.join(); err != nil {
		t.Error(err)
	}
}

// TestHostile: clients that never finish a request are disconnected, so that others are served.
func TestHostile(t *testing.T) {
	f := newFake(t, 2, 10)
	s := opened(t, Local("127.0.0.1:0"), NewLive(api.NewClient(f.socket)), files)
	s.http.ReadHeaderTimeout, s.http.ReadTimeout = time.Second, time.Second
	start(t, s)
	for i := range 3 * maxConnections {
		c, err := net.Dial("tcp4", s.Address())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, []string{"", "GET /events HTTP/1.1\r\nHost: ", "GET / HTTP/1.1\r\nX: " + strings.Repeat("x", 1<<10)}[i%3]); err != nil {
			t.Fatal(err)
		}
	}
	if status, _, body := ask(t, &http.Client{}, "GET", "http://"+s.Address()+"/v1/version", nil); status != 200 || !strings.Contains(body, "v1.2.3") {
		t.Errorf("status %d: %s", status, body)
	}
}

// TestOnlyWhileOpen: the gateway is asked only while a page is open, and once for all pages.
func TestOnlyWhileOpen(t *testing.T) {
	f := newFake(t, 2, 10)
	s := serve(t, Local("127.0.0.1:0"), NewLive(api.NewClient(f.socket)), files)
	if n := f.asked.Load(); n != 0 {
		t.Errorf("the gateway was asked %d times before a page came", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begin := time.Now()
	var readers []*bufio.Reader
	for range maxPages {
		r, _ := http.NewRequestWithContext(ctx, "GET", "http://"+s.Address()+"/events", nil)
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		readers = append(readers, bufio.NewReader(a.Body))
	}
	if status, _, body := ask(t, http.DefaultClient, "GET", "http://"+s.Address()+"/events", nil); status != 503 || !strings.Contains(body, "too many pages") {
		t.Errorf("one page more: status %d: %s", status, body)
	}
	for _, r := range readers {
		for n := 0; n < 3; {
			line, err := r.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if line == "event: counters\n" {
				n++
			}
		}
	}
	if n, most := f.looks.Load(), int64(time.Since(begin)/lookEvery)+2; n > most {
		t.Errorf("the counters were asked for %d times, expected at most %d", n, most)
	}
}

// TestMissingFiles: without a built page, nothing is listened at.
func TestMissingFiles(t *testing.T) {
	s := serve(t, Local("127.0.0.1:0"), &Recording{Title: "x"}, fstest.MapFS{})
	if status, _, _ := ask(t, http.DefaultClient, "GET", "http://"+s.Address()+"/", nil); status != 404 {
		t.Errorf("status %d", status)
	}
	if status, _, body := ask(t, http.DefaultClient, "GET", "http://"+s.Address()+"/source", nil); status != 200 || !strings.Contains(body, `"live":false`) {
		t.Errorf("status %d: %s", status, body)
	}
}
