package main

import (
	"strings"
	"testing"
)

// TestPeerRules: each flow of a layout has a rule of l3fwd and of OVS, from the port that receives it to the other one.
func TestPeerRules(t *testing.T) {
	flows := traffic{flows: 4}.tuples()
	l3fwd, ovs := strings.Split(strings.TrimSpace(string(l3fwdRules(flows))), "\n"), strings.Split(strings.TrimSpace(string(ovsRules(flows))), "\n")
	if len(l3fwd) != 4 || len(ovs) != 4 {
		t.Fatalf("%d and %d rules", len(l3fwd), len(ovs))
	}
	for i, f := range flows {
		if want := "R" + f.destination + " " + f.source + " 4791 49152 17 " + number10(f.out); l3fwd[i] != want {
			t.Errorf("l3fwd has %q, want %q", l3fwd[i], want)
		}
		want := "in_port=" + number10(f.in+1) + ",udp,nw_src=" + f.source + ",nw_dst=" + f.destination + ",tp_src=49152,tp_dst=4791,actions=output:" + number10(f.out+1)
		if ovs[i] != want {
			t.Errorf("OVS has %q, want %q", ovs[i], want)
		}
		if f.in == f.out {
			t.Errorf("flow %d goes back to its port", i)
		}
	}
}

const ovsStats = `pmd thread numa_id 0 core_id 1:
  packets received: 1000
  packet recirculations: 0
  emc hits: 990
  smc hits: 0
  megaflow hits: 10
  miss with success upcall: %
  miss with failed upcall: 0
`

// TestOVSCounts: a run counts only if the caches have all flows, and the exact-match cache those that fit into it.
func TestOVSCounts(t *testing.T) {
	for _, c := range []struct {
		text        string
		exact, fine bool
	}{
		{strings.Replace(ovsStats, "%", "0", 1), true, true},
		{strings.Replace(ovsStats, "%", "3", 1), true, false},
		{strings.Replace(strings.Replace(ovsStats, "%", "0", 1), "990", "900", 1), true, false},
		{strings.Replace(strings.Replace(ovsStats, "%", "0", 1), "990", "900", 1), false, true},
	} {
		got, err := readOVSCounts([]byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		got.cpu = 1
		if err := got.check(c.exact); (err == nil) != c.fine || got.received != 1000 || got.megaflow != 10 {
			t.Errorf("%+v: %v", got, err)
		}
	}
	if _, err := readOVSCounts([]byte("something else")); err == nil {
		t.Error("anything is taken as statistics")
	}
}

// TestPeerRowsAreOptional: they are listed and measured only with their programs.
func TestPeerRowsAreOptional(t *testing.T) {
	without, with := len((&bench{}).groups()), len((&bench{peers: "/nowhere"}).groups())
	if with != without+len(peerGroups()) {
		t.Errorf("%d groups without peers, %d with", without, with)
	}
	for _, g := range peerGroups() {
		for _, r := range g.rows {
			if r.Wanted == 0 || r.What == "" || r.Peer == "" {
				t.Errorf("%+v lacks something", r)
			}
		}
	}
}
