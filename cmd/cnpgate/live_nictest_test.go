//go:build live && !nodpdk

package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
	"github.com/cnpgate/cnpgate/nictest"
)

// slowNIC takes a second to recover, so that its reactions show on a machine that stalls processes.
const slowNIC = `name: slow
source: a test
obeys: [standard-cnp, fast-cnp]
dcqcn: {cut: at-once, g: 0.5, rate_timer: 200ms, byte_counter: 0B, additive_increase: 2Mbps, min_rate: 1Mbps}
`

// TestLiveNICTest: nictest measures a sender with a NIC's file. CNPs that the sender must ignore aren't reported as obeyed, although processes stall.
func TestLiveNICTest(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	program := liveBinary(t)
	enterNamespace(t)
	dir := t.TempDir()
	nic, profile := filepath.Join(dir, "slow.yaml"), filepath.Join(dir, "measured.yaml")
	if err := os.WriteFile(nic, []byte(slowNIC), 0o600); err != nil {
		t.Fatal(err)
	}
	receiver := startEndpoint(t, program, "nictest -i a0 --address fd00:18::1 --mac 02:00:00:18:00:01 --quick --bin 1ms --priority 0 --silence 10s -o json --nic slow --profile "+profile)
	var sender *endpointProcess
	elsewhere(t, "a1", func() {
		sender = startEndpoint(t, program, "endpoint send -i a1 --address fd00:18::2 --peer fd00:18::1 --peer-mac 02:00:00:18:00:01 --cm --rate 20Mbps"+
			" --timeout 500ms --trust 2001:db8::1,fd00:18::1 -o json --nic "+nic)
	})
	r := receiver.measured()
	_ = sender.cmd.Process.Kill()
	if r.Verdict != nictest.ObeysCNPs || !r.Complete || r.Unsteady || r.Sender != "fd00:18::2" || r.Suggest.Source != "receiver" {
		t.Errorf("%s, complete %v, unsteady %v, sender %s, suggestion %+v", r.Verdict, r.Complete, r.Unsteady, r.Sender, r.Suggest)
	}
	verdicts := map[string]string{}
	for _, f := range r.Forms {
		verdicts[f.Form] = f.Verdict
	}
	for form, want := range map[string]string{
		"standard-cnp": nictest.Obeyed, "source-gateway": nictest.Obeyed, "icrc-wrong": nictest.Ignored, "qp-foreign": nictest.Ignored,
	} {
		if verdicts[form] != want {
			t.Errorf("%s: %q, want %q", form, verdicts[form], want)
		}
	}
	t.Logf("%v; rate %.1f Mbit/s, fit %.3f\n%s", verdicts, r.LineRate/1e6, r.FitError, r.File)
	if text, err := os.ReadFile(profile); err != nil || string(text) != r.File {
		t.Errorf("%v: the profile's file is %q, the report's %q", err, text, r.File)
	}
}

// measured waits until nictest has ended, and reads its report.
func (e *endpointProcess) measured() (r nictest.Report) {
	e.t.Helper()
	said, _ := io.ReadAll(e.stderr) // an error is Wait's, too
	if err := e.cmd.Wait(); err != nil {
		e.t.Errorf("%v: %v\n%s", strings.Join(e.cmd.Args, " "), err, said)
	}
	if err := json.Unmarshal(e.stdout.Bytes(), &r); err != nil {
		e.t.Fatalf("%v: %s\n%s", err, e.stdout.String(), said)
	}
	return r
}
