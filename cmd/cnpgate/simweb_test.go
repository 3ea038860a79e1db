package main

import (
	"compress/flate"
	"encoding/base64"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestSimWebMistakes: what the playground can't show is refused, with what was expected; a scenario's mistakes come first.
func TestSimWebMistakes(t *testing.T) {
	dir := workspace(t)
	taken, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	put(t, dir, "wrong.yaml", []byte(strings.Replace(short, "senders: 4", "senders: four", 1)))
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"incast-1ms", "--web", "--csv", "x"}, "--csv and --web are given; expected one of them"},
		{[]string{"incast-1ms", "--web", "--sweep", "seed=1,2"}, "--sweep and --web are given"},
		{[]string{"incast-1ms", "--web", "--response", "ecn,ppfc,fast-cnp"}, "--response names 3 responses, and the playground shows two"},
		{[]string{"incast-1ms", "--web", "--listen", "192.0.2.1:80"}, "expected a loopback address and a port"},
		{[]string{"incast-1ms", "--web", "--listen", taken.Addr().String()}, "has " + taken.Addr().String() + "; expected a free port, such as --listen 127.0.0.1:0, which finds one"},
		{[]string{"incast-1ms", "--listen", "127.0.0.1:0"}, "--listen is where --web serves the page; give --web, too"},
		{[]string{"wrong.yaml", "--web"}, `wrong.yaml:3:32: topology.dumbbell.senders: "four" is not a whole number`},
	} {
		got := within(t, dir, append([]string{"sim"}, c.args...)...)
		if got.status != 1 || got.stdout != "" || !strings.Contains(got.stderr, c.says) {
			t.Errorf("%q: exit status %d, %q; want %q", c.args, got.status, got.stderr, c.says)
		}
	}
}

// TestPlaygroundState: the address names a built-in scenario with its settings, and holds any other one.
func TestPlaygroundState(t *testing.T) {
	file := filepath.Join(t.TempDir(), "my.yaml")
	if err := os.WriteFile(file, []byte(short), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		flags simFlags
		want  url.Values
		yaml  string // part of the text that the address holds
	}{
		{"incast-1ms", simFlags{set: []string{"seed=3", "hosts.mtu=1024"}},
			url.Values{"scenario": {"incast-1ms"}, "left": {"ecn"}, "right": {"standard-cnp"}, "set": {"seed=3", "hosts.mtu=1024"}}, ""},
		{"draft-tian-7", simFlags{}, url.Values{"scenario": {"draft-tian-7"}, "left": {"ecn"}, "right": {"long-haul-cnp"}}, ""},
		{file, simFlags{set: []string{"seed=3"}, responses: []string{"fast-cnp", "ecn"}}, url.Values{"scenario": {"short"}, "left": {"fast-cnp"}, "right": {"ecn"}}, "seed: 3"},
	} {
		state, err := c.flags.playground(&cobra.Command{}, c.name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := url.ParseQuery(state)
		if err != nil {
			t.Fatal(err)
		}
		packed, err := base64.RawURLEncoding.DecodeString(got.Get("yaml"))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(flate.NewReader(strings.NewReader(string(packed))))
		if !strings.Contains(string(text), c.yaml) || c.yaml == "" && len(packed) > 0 {
			t.Errorf("%s: the address holds %q", c.name, text)
		}
		got.Del("yaml")
		if got.Encode() != c.want.Encode() {
			t.Errorf("%s: %s, want %s", c.name, got.Encode(), c.want.Encode())
		}
	}
}
