package agent

import (
	"crypto/ed25519"
	"encoding/base32"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/fleet"
	"github.com/cnpgate/cnpgate/fleet/wire"
)

// patience bounds what a test waits for.
const patience = 30 * time.Second

// broker is a broker that knows one host's key, and lets it publish below its name only.
func broker(t *testing.T, port int, key nkeys.KeyPair, may string) *server.Server {
	t.Helper()
	public, err := key.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: port, NoSigs: true,
		Nkeys: []*server.NkeyUser{{Nkey: public, Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Allow: []string{may}}, Subscribe: &server.SubjectPermission{Deny: []string{">"}},
		}}},
		Users: []*server.User{{Username: "gateway", Password: "x"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(patience) {
		t.Fatal("the broker doesn't start")
	}
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	return s
}

// subscriber gets what a gateway would.
func subscriber(t *testing.T, s *server.Server) <-chan *nats.Msg {
	t.Helper()
	c, err := nats.Connect(s.ClientURL(), nats.UserInfo("gateway", "x"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	got := make(chan *nats.Msg, 100)
	if _, err := c.ChanSubscribe(fleet.MaySubscribe("paris"), got); err != nil {
		t.Fatal(err)
	}
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	return got
}

// console is a log.
type console struct {
	mutex sync.Mutex
	text  strings.Builder
}

func (c *console) Write(b []byte) (int, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.text.Write(b)
}

// until waits until the log has a text.
func (c *console) until(t *testing.T, text string) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		c.mutex.Lock()
		has := strings.Contains(c.text.String(), text)
		c.mutex.Unlock()
		if has {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the log has no %q: %s", text, &c.text)
		}
	}
}

func newKey(t *testing.T) nkeys.KeyPair {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	public, err := CreateKey(path)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ReadKey(path)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := key.PublicKey(); err != nil || p != public || !nkeys.IsValidPublicUserKey(p) {
		t.Fatalf("the file has the key %s, %v, expected %s", p, err, public)
	}
	return key
}

// trust is a gateway's that knows the host h17 with 10.1.0.1.
func trust(t *testing.T, key nkeys.KeyPair) *fleet.Trust {
	t.Helper()
	text, err := key.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(text)
	if err != nil || len(raw) != 1+ed25519.PublicKeySize+2 {
		t.Fatal(err, len(raw))
	}
	all, err := fleet.NewTrust("paris", []fleet.Party{{Name: "h17", Key: raw[1 : 1+ed25519.PublicKeySize], Addresses: []netip.Prefix{netip.MustParsePrefix("10.1.0.1/32")}}})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestBroker: a gateway accepts what the agent publishes, as the host's; after the broker has gone and come the agent connects again, and its
// messages still count.
func TestBroker(t *testing.T) {
	key, log := newKey(t), &console{}
	s := broker(t, -1, key, fleet.MayPublish("paris", "h17"))
	gateway, received := trust(t, key), subscriber(t, s)
	port := s.Addr().(*net.TCPAddr).Port
	b, err := Dial(BrokerOptions{Site: "paris", Host: "h17", Servers: []string{s.ClientURL()}, Key: key, Log: zerolog.New(log)})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	log.until(t, "Connected to the broker")
	sent := fleet.HintMessage{Lifetime: 5000, Hints: []fleet.Hint{hint("10.1.0.1", 17, "", 30), hint("10.1.0.1", 18, "10.2.0.1", 30)},
		Withdrawn: []fleet.Hint{hint("10.1.0.1", 19, "", 31)}}
	publish := func(received <-chan *nats.Msg) {
		t.Helper()
		if err := b.Publish(t.Context(), &sent); err != nil {
			t.Fatal(err)
		}
		select {
		case m := <-received:
			h, body, _, err := gateway.Accept(m.Subject, m.Data, time.Now().UnixNano())
			if err != nil || h.Kind != wire.Hints || h.Sender != "h17" {
				t.Fatalf("%+v, %v", h, err)
			}
			got, foreign, err := gateway.AcceptHints(h.Sender, body)
			if err != nil || foreign != 0 || got.Lifetime != 5000 || !slices.Equal(got.Hints, sent.Hints) || !slices.Equal(got.Withdrawn, sent.Withdrawn) {
				t.Fatalf("%+v, %v, expected %+v", got, err, sent)
			}
		case <-time.After(patience):
			t.Fatal("nothing was received")
		}
	}
	publish(received)
	publish(received)
	if !b.Renewed() || b.Renewed() {
		t.Error("Renewed is for the first call after a connection only")
	}
	s.Shutdown()
	s.WaitForShutdown()
	log.until(t, "is lost")
	if err := b.Publish(t.Context(), &sent); err == nil {
		t.Error("published without a broker")
	}
	received = subscriber(t, broker(t, port, key, fleet.MayPublish("paris", "h17")))
	for end := time.Now().Add(patience); !b.Renewed(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the agent doesn't connect again")
		}
	}
	publish(received)
}

// TestBrokerRefuses: the log says what a broker refuses, and the agent goes on trying.
func TestBrokerRefuses(t *testing.T) {
	key := newKey(t)
	for name, c := range map[string]struct {
		known nkeys.KeyPair
		may   string
		want  string
	}{
		"another key":     {newKey(t), fleet.MayPublish("paris", "h17"), "Authorization Violation"},
		"another host":    {key, fleet.MayPublish("paris", "h18"), "publish below cnpgate.paris.h17."},
		"nobody is there": {nil, "", "connection refused"},
	} {
		log := &console{}
		url := "nats://127.0.0.1:1"
		if c.known != nil {
			url = broker(t, -1, c.known, c.may).ClientURL()
		}
		b, err := Dial(BrokerOptions{Site: "paris", Host: "h17", Servers: []string{url}, Key: key, Log: zerolog.New(log)})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if c.known == key {
			log.until(t, "Connected")
			if err := b.Publish(t.Context(), &fleet.HintMessage{}); err != nil {
				t.Error(err)
			}
		}
		log.until(t, c.want)
		b.Close()
	}
	for _, o := range []BrokerOptions{
		{Site: "Paris", Host: "h17", Servers: []string{"x"}, Key: key}, {Site: "paris", Host: "h.17", Servers: []string{"x"}, Key: key},
		{Site: "paris", Host: "h17", Servers: []string{"nats://[::1"}, Key: key}, {Site: "paris", Host: "h17", Servers: []string{"x"}, CA: "/nonexistent", Key: key},
	} {
		if b, err := Dial(o); err == nil {
			b.Close()
			t.Errorf("%+v: accepted", o)
		}
	}
}

// TestKeys: a key file is never replaced, nor used if others could have read it, and what is wrong with one is said.
func TestKeys(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	if _, err := CreateKey(path); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		do   func() error
		want string
	}{
		"create again": {func() error { _, err := CreateKey(path); return err }, "never replaced"},
		"no folder":    {func() error { _, err := CreateKey(filepath.Join(dir, "a/b")); return err }, "no such file"},
		"no file":      {func() error { _, err := ReadKey(filepath.Join(dir, "other")); return err }, "cnpgate fleet keys"},
		"mode": {func() error {
			if err := os.Chmod(path, 0o644); err != nil {
				return err
			}
			_, err := ReadKey(path)
			return err
		}, "mode 0644"},
		"text": {func() error {
			if err := os.WriteFile(filepath.Join(dir, "text"), []byte("hello"), 0o600); err != nil {
				return err
			}
			_, err := ReadKey(filepath.Join(dir, "text"))
			return err
		}, "expected the seed of an nkey"},
	} {
		if err := c.do(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, expected %q", name, err, c.want)
		}
	}
}
