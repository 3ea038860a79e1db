package ospf6d_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control/advertise/ospf6d"
	"github.com/cnpgate/cnpgate/internal/igp/ospf"
	"github.com/cnpgate/cnpgate/internal/igp/ospfv3"
	"github.com/cnpgate/cnpgate/internal/testkit/elsa"
	"github.com/cnpgate/cnpgate/proxy"
)

func text(senders []proxy.Sender) string {
	var words []string
	for _, s := range senders {
		words = append(words, fmt.Sprintf("%v=%v", s.Prefix, s.Proxy))
	}
	return strings.Join(words, " ")
}

// lsa is an extended LSA in hexadecimal. Each word is a prefix, and behind "=" the source router address of its proxy; without "=" it has no P-flag.
func lsa(t testing.TB, router string, lsaType uint16, age int, words string) string {
	t.Helper()
	tlv := map[uint16]ospfv3.PrefixTLV{ospfv3.EIntraAreaPrefix: ospfv3.IntraArea, ospfv3.EInterAreaPrefix: ospfv3.InterArea}[lsaType]
	if tlv == 0 {
		tlv = ospfv3.External
	}
	body := ospfv3.LSA{Reference: ospfv3.Reference{Router: netip.MustParseAddr(router)}}
	for _, word := range strings.Fields(words) {
		prefix, address, is := strings.Cut(word, "=")
		p := ospfv3.Prefix{TLV: tlv, Prefix: netip.MustParsePrefix(prefix)}
		if is {
			p.SetP()
		}
		if address != "" {
			p.Addresses = []netip.Addr{netip.MustParseAddr(address)}
		}
		body.Prefixes = append(body.Prefixes, p)
	}
	b, err := elsa.Body(&body, lsaType)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := (&ospf.LSA{Age: uint16(age), Type: lsaType, Router: netip.MustParseAddr(router), Body: b}).Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(whole)
}

// tree has 192.0.2.1, behind a network 192.0.2.2, and behind it 192.0.2.3, in the form of ospf6d's answer.
const tree = `{"0":{"192.0.2.1":{"cost":0,"isLeafNode":false,"children":{"192.0.2.1-0.0.0.2":{"cost":10,"isLeafNode":false,"children":{
	"192.0.2.2":{"cost":10,"isLeafNode":false,"children":{"192.0.2.3":{"cost":20,"isLeafNode":true}}}}}}}}}`

// dump is ospf6d's answer with LSAs of area and AS scope.
func dump(area, as []string) string {
	list := func(all []string) (lsas []map[string]string) {
		for _, h := range all {
			lsas = append(lsas, map[string]string{"linkStateId": "0.0.0.0", "header": h})
		}
		return lsas
	}
	b, _ := json.Marshal(map[string]any{
		"areaScopedLinkStateDb": []any{map[string]any{"areaId": "0", "lsa": list(area)}}, "interfaceScopedLinkStateDb": []any{},
		"asScopedLinkStateDb": []any{map[string]any{"lsa": list(as)}},
	})
	return string(b)
}

// daemon is a vty socket that answers each command as its test says.
type daemon struct {
	mutex   sync.Mutex
	answers map[string]string // with the end mark and the status
	path    string
}

func newDaemon(t *testing.T) *daemon {
	t.Helper()
	d := &daemon{answers: map[string]string{}, path: filepath.Join(t.TempDir(), "vty")}
	l, err := net.Listen("unix", d.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go d.serve(c)
		}
	}()
	return d
}

func (d *daemon) serve(c net.Conn) {
	defer c.Close()
	var command []byte
	for b := make([]byte, 1); ; command = append(command, b[0]) {
		if _, err := c.Read(b); err != nil {
			return
		}
		if b[0] == 0 {
			break
		}
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	_, _ = c.Write([]byte(d.answers[string(command)]))
}

// says sets the answers about the LSDB and the tree.
func (d *daemon) says(dump, tree string) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.answers = map[string]string{"show ipv6 ospf6 database dump json": dump, "show ipv6 ospf6 spf tree json": tree}
}

const ok = "\x00\x00\x00\x00"

// TestLearn: what counts of an LSDB, as it changes.
func TestLearn(t *testing.T) {
	d := newDaemon(t)
	learned, said := make(chan string, 100), make(chan string, 1000)
	c := ospf6d.Client{Socket: d.path, Interval: time.Millisecond, Own: netip.MustParseAddr("2001:db8::99"), Log: zerolog.New(writer(said)), Note: writer(said).note,
		Accepts: func(p netip.Prefix) bool { return netip.MustParsePrefix("2001:db8::/32").Overlaps(p) }}
	c.Learned = func(senders []proxy.Sender) error {
		got := text(senders)
		learned <- got
		if strings.Contains(got, "refuse") {
			return errors.New("refused")
		}
		return nil
	}
	const intra, inter, as = ospfv3.EIntraAreaPrefix, ospfv3.EInterAreaPrefix, ospfv3.EASExternal
	good := lsa(t, "192.0.2.2", intra, 1, "2001:db8:1::/48=2001:db8::9")
	d.says(dump([]string{good}, nil)+ok, tree+ok)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Run(ctx)
	}()
	next := func(name, want string) {
		t.Helper()
		select {
		case got := <-learned:
			if got != want {
				t.Fatalf("%s: %q, want %q", name, got, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: nothing, want %q", name, want)
		}
	}
	next("intra-area", "2001:db8:1::/48=2001:db8::9")
	d.says(dump([]string{good, lsa(t, "192.0.2.3", inter, 1, "2001:db8:2::/48=2001:db8::8"), lsa(t, "192.0.2.1", 0x2001, 1, "")},
		[]string{lsa(t, "192.0.2.1", as, 1, "2001:db8:3::/48=192.0.2.7")})+ok, tree+ok)
	next("all types", "2001:db8:1::/48=2001:db8::9 2001:db8:2::/48=2001:db8::8 2001:db8:3::/48=192.0.2.7")
	d.says(dump([]string{
		good, lsa(t, "192.0.2.3", intra, 1, "2001:db8:1::/48=2001:db8::8"), // the lowest address counts
		lsa(t, "192.0.2.2", inter, 1, "2001:db8:4::/48 2001:db8:5::/48="),                                                // no flag; no address
		lsa(t, "192.0.2.4", inter, 1, "2001:db8:6::/48=2001:db8::8"),                                                     // unreachable
		lsa(t, "192.0.2.2", inter, ospf.MaxAge, "2001:db8:7::/48=2001:db8::8"),                                           // flushed
		lsa(t, "192.0.2.2", inter, 1, "2001:db8:8::/48=2001:db8::99 2001:db8:9::/48=fe80::1 2001:beef::/48=2001:db8::8"), // own, unusable, not accepted
	}, nil)+ok, tree+ok)
	next("what doesn't count", "2001:db8:1::/48=2001:db8::8")
	d.says(dump([]string{good, "0001"}, nil)+ok, tree+ok)
	next("an LSA that can't be read", "2001:db8:1::/48=2001:db8::9")
	for _, bad := range []struct{ dump, tree, want string }{
		{"% [OSPF6] Unknown command\n\x00\x00\x00\x02", tree + ok, "ospf6d refuses"},
		{"{" + ok, tree + ok, "unexpected end of JSON"},
		{dump(nil, nil) + ok, "[]" + ok, "show ipv6 ospf6 spf tree json: json: cannot unmarshal"},
		{"{}", tree + ok, "the answer ends after 2 bytes without its status"},
	} {
		d.says(bad.dump, bad.tree)
		next(bad.want, "")
		saying(t, said, bad.want)
		d.says(dump([]string{good}, nil)+ok, tree+ok)
		next("as before", "2001:db8:1::/48=2001:db8::9")
	}
	cancel()
	<-done
	next("stopped", "")
}

// saying waits until the log says something.
func saying(t *testing.T, said <-chan string, want string) {
	t.Helper()
	for end := time.After(time.Minute); ; {
		select {
		case line := <-said:
			if strings.Contains(line, want) {
				return
			}
		case <-end:
			t.Fatalf("the log doesn't say %q", want)
		}
	}
}

// note passes on why ospf6d doesn't answer.
func (w writer) note(err error) {
	if err != nil {
		_, _ = w.Write([]byte(err.Error()))
	}
}

// writer passes on lines, and discards what nobody reads.
type writer chan string

func (w writer) Write(line []byte) (int, error) {
	select {
	case w <- string(line):
	default:
	}
	return len(line), nil
}

// TestNoSocket: the log says what to do.
func TestNoSocket(t *testing.T) {
	said := make(chan string, 10)
	ctx, cancel := context.WithCancel(context.Background())
	c := ospf6d.Client{Socket: filepath.Join(t.TempDir(), "vty"), Interval: time.Millisecond, Log: zerolog.New(writer(said)), Note: writer(said).note,
		Learned: func([]proxy.Sender) error { return nil }}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Run(ctx)
	}()
	if line := <-said; !strings.Contains(line, "no such file") || !strings.Contains(line, "start ospf6d") {
		t.Errorf("logged %s", line)
	}
	cancel()
	<-done
}
