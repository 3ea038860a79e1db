//go:build live && !nodpdk

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
)

// edit is an operator's change to the live configuration.
type edit struct {
	old, new string
	refused  string // a part of the error; "": it is accepted
}

var edits = []edit{
	{"gateway:", "gateway:", ""}, // as at the start
	{"rate: 10Gbps, mtu", "rate: 8Gbps, mtu", ""},
	{"queue_capacity: 500KB}\nflows", "queue_capacity: 400KB}\nflows", ""},
	{"queue_capacity: 500KB}\nflows", "queue_capacity: 500KB, rtt: 2ms, traffic_classes: [{name: default, dscp: [1]}]}\nflows", `traffic_classes: differs`},
	{"flows:", "profiles: {default: {mode: thresholds, k_base: 100KB}}\nflows:", ""},
	{"flows:", "notifications: {mode: observe, long_haul_cnp: {enabled: true}}\nendpoints: [{prefix: 198.51.100.0/24, accepts: [long-haul-cnp]}]\nflows:", ""},
	{"flows:", "domain: {members: [198.51.100.0/24], notification_sources: []}\nflows:", ""},
	{"rate: 10Gbps", "rate: fast", `"fast" is not a rate`},
	{"iface=b0", "iface=c0", "ports[1].device: differs"},
	{"queue_capacity: 500KB", "queue_capacity: 40MB", "needs memory for 39062 frames"},
	{"{capacity: 1Ki}", "{capacity: 2Ki", "not valid YAML"},
	{"flows: {capacity: 1Ki}", "flows: {capacity: 2Ki}", "flows.capacity: differs"},
}

// TestLiveReloads: hundreds of reloads of valid and invalid files under load lose no packet. Each is accepted or refused as it has to be, and the
// configuration in force at the end is the last one that was accepted.
func TestLiveReloads(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	program := liveBinary(t)
	enterNamespace(t)
	p := startGateway(t, program)
	file, client := filepath.Join(p.dir, "c.yaml"), api.NewClient(filepath.Join(p.dir, "api.sock"))
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	a, b := newHost(t, "a1"), newHost(t, "b1")
	end := a.load(1000)
	flows(t, "at first", b, startTime)
	random := rand.New(rand.NewPCG(1, 2))
	inForce, accepted := string(text), 0
	for range reloads {
		e := &edits[random.IntN(len(edits))]
		edited := strings.Replace(string(text), e.old, e.new, 1)
		if edited == string(text) && e.old != e.new {
			t.Fatalf("%q is not in the configuration", e.old)
		}
		if err := os.WriteFile(file, []byte(edited), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := client.Reload(t.Context(), api.ReloadRequest{})
		switch {
		case (err == nil) != (e.refused == ""):
			t.Fatalf("%s: %v", e.new, err)
		case err == nil:
			inForce, accepted = edited, accepted+1
		case !strings.Contains(err.Error(), e.refused):
			t.Fatalf("%s: %v, want %q", e.new, err, e.refused)
		}
	}
	running, err := api.Get[api.Config](t.Context(), client, api.ConfigPath)
	if err != nil || running.Text != inForce {
		t.Errorf("%v: in force is\n%s\nwant\n%s", err, running.Text, inForce)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	p.signal(syscall.SIGHUP)
	p.says(fmt.Sprintf(`"config_hash":"%s"`, (&config.File{Text: text}).Hash()), 1)
	flows(t, "afterwards", b, recoveryTime)
	end()
	b.settle()
	fabric, wan := p.stop()
	b.close()
	sent, arrived := a.sent.Load(), b.received.Load()
	if arrived != sent || fabric.Counters.Received != sent || wan.Counters.Forwarded != sent {
		t.Errorf("%d frames sent, %d received by the gateway, %d forwarded, %d arrived; dropped %v, device %v", sent, fabric.Counters.Received,
			wan.Counters.Forwarded, arrived, wan.Counters.Dropped, fabric.Device)
	}
	t.Logf("%d reloads, %d accepted; %d frames, none lost", reloads, accepted, sent)
}
