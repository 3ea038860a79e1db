//go:build live && !nodpdk

package main

import (
	"encoding/json"
	"io"
	"testing"

	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
	"github.com/cnpgate/cnpgate/nictest"
)

// TestLiveNICTest: over a wire, nictest finds that an endpoint obeys standard CNPs, and reads a Long-haul CNP as one, but no other format nor a wrong CNP.
func TestLiveNICTest(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	program := liveBinary(t)
	enterNamespace(t)
	var tester *endpointProcess
	elsewhere(t, "a1", func() {
		tester = startEndpoint(t, program, "nictest -i a1 --address 10.0.0.1 --mac 02:00:00:00:00:01 --mtu 1024 --quick --silence 10s -o json")
	})
	startEndpoint(t, program, "endpoint send -i a0 --address 10.0.0.2 --peer 10.0.0.1 --peer-mac 02:00:00:00:00:01 --cm --mtu 1024"+
		" --trust 10.0.0.1,192.0.2.1 --nic connectx-default --rate 200Mbps --duration 60s --progress")
	said, _ := io.ReadAll(tester.stderr)
	if err := tester.cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	var r nictest.Report
	if err := json.Unmarshal(tester.stdout.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if r.Verdict != nictest.ObeysCNPs || !r.Complete {
		t.Errorf("%s, complete: %v; expected that it obeys CNPs", r.Verdict, r.Complete)
	}
	for _, f := range r.Forms {
		want := nictest.Obeyed
		switch f.Form {
		case "icrc-wrong", "qp-foreign", "ppfc", "pfc":
			want = nictest.Ignored
		case "long-haul-cnp":
			want = nictest.AsCNP
		}
		if f.Verdict != want {
			t.Errorf("%s: %s, want %s", f.Form, f.Verdict, want)
		}
	}
	if t.Failed() {
		for _, x := range r.Trials {
			t.Logf("%s: %d sent, %d ns late: %+v", x.Name, x.Sent, x.Late, x.Response)
		}
	}
}
