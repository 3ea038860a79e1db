package nictest_test

import (
	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/nictest"
	"github.com/cnpgate/cnpgate/sim/scenario"
	"os"
	"testing"
	"time"
)

func TestDump(t *testing.T) {
	for _, nic := range scenario.NICs() {
		r := nicOf(t, nic)
		t0 := time.Now()
		b, err := nictest.SessionJSON(nictest.Config{Plan: nictest.Plan(false, true, false)[:28], Addresses: addresses},
			nictest.Simulation{Sender: endpoint.Config{Addr: senderAddr, LineRate: 10e9, MTU: 4096, Reaction: r}, Peer: peerAddr, Delay: 1000})
		if err != nil {
			t.Fatal(err)
		}
		os.WriteFile("/tmp/nt/"+nic+".json", b, 0o644)
		t.Logf("%s %v", nic, time.Since(t0))
	}
}
func TestFit(t *testing.T) {
	for _, nic := range scenario.NICs() {
		t0 := time.Now()
		b, _ := os.ReadFile("/tmp/nt/" + nic + ".json")
		r := nicOf(t, nic)
		p, e, te, n := nictest.FitJSON(b, &nictest.Profile{DCQCN: r.DCQCN})
		t.Logf("%s fit %.4f true %.4f evals %d %v\n%+v\n%+v", nic, e, te, n, time.Since(t0), r.DCQCN, p)
	}
}
