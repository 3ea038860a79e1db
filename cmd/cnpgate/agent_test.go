package main

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/agent"
	"github.com/cnpgate/cnpgate/fleet"
)

// TestAgentMistakes: what is wrong in a command line is said, and what was expected.
func TestAgentMistakes(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	if _, err := agent.CreateKey(key); err != nil {
		t.Fatal(err)
	}
	open := filepath.Join(t.TempDir(), "open")
	if err := os.WriteFile(open, []byte("SU"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	broker := "run --site paris --name h17 --server nats://127.0.0.1:1 "
	for line, want := range map[string]string{
		"":                                        "needs a command after it",
		"run":                                     "missing: one of --socket, --server",
		"run --socket a --server b --site c":      "exclude each other",
		"run --server nats://a":                   "site",
		"run --site paris --server nats://a":      "--server needs --key",
		broker + "--key /nonexistent":             "make NAME.nk: cnpgate fleet keys NAME",
		broker + "--key " + open:                  "mode 0644",
		broker + "--name H.17 --key " + key:       "expected 1 to 32 of a-z, 0-9 and -",
		broker + "--ca /nonexistent --key " + key: "/nonexistent",
		broker + "--tls-cert a --key " + key:      "tls-key",
		broker + "--interval 1ms --key " + key:    "--interval 1ms: expected 10ms to 1m",
		broker + "--lifetime 1ms --key " + key:    "--lifetime 1ms: expected 1s to 10m0s",
		broker + "--lifetime 10s --interval 5s":   "at least four times --interval",
		broker + "--log-level loud":               "debug, info, warn or error",
		"run file.sock":                           "did you mean --socket file.sock?",
		"show now":                                "unexpected argument",
		"show -o yaml":                            "text or json",
		"run --socket x --interval 2m":            "expected 10ms to 1m",
	} {
		if got := within(t, t.TempDir(), append([]string{"agent"}, strings.Fields(line)...)...); got.status != 1 || !strings.Contains(got.stderr, want) {
			t.Errorf("agent %s: %+v, expected %q", line, got, want)
		}
	}
}

// TestAgentShow: text has a line for each hint and what was left out; JSON is the hints as they are published.
func TestAgentShow(t *testing.T) {
	v := agentView{
		Devices: []string{"mlx5_0"}, Left: agent.Left{Ambiguous: 2, NoAddress: 1},
		Hints: []fleet.Hint{
			{Source: netip.MustParseAddr("10.1.0.1"), Destination: netip.MustParseAddr("10.2.0.1"), SourceQP: 17, DestinationQP: 18},
			{Source: netip.MustParseAddr("10.1.0.1"), SourceQP: 19, DestinationQP: 20},
		},
	}
	var text, object bytes.Buffer
	if err := v.print(&text, "text"); err != nil {
		t.Fatal(err)
	}
	const want = `SOURCE    SOURCE_QP  DESTINATION  DESTINATION_QP
10.1.0.1  17         10.2.0.1     18
10.1.0.1  19         -            20
2 connected QPs have no hint: another QP is connected to a QP of the same number, and RDMA-CM knows neither host
1 connected QPs have no hint: their port has no RoCEv2 address but link-local ones
`
	if text.String() != want {
		t.Errorf("%q, expected %q", &text, want)
	}
	if err := v.print(&object, "json"); err != nil {
		t.Fatal(err)
	}
	var again agentView
	if err := json.Unmarshal(object.Bytes(), &again); err != nil || len(again.Hints) != 2 || again.Hints[1] != v.Hints[1] || again.Left != v.Left {
		t.Errorf("%v: %s", err, &object)
	}
}
