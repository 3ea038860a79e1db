package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// asking has a gate whose requests don't wait between two looks at the flows.
func asking(t *testing.T, workers int) *gate {
	t.Helper()
	g := newGate(t, workers)
	g.server.flows.wait = func(context.Context, time.Duration) error { return nil }
	return g
}

// explained is the answer to a question.
func (g *gate) explained(t *testing.T, query string) (e Explanation) {
	t.Helper()
	status, _, text := g.ask(t, http.MethodGet, ExplainPath+query, "")
	if err := json.Unmarshal([]byte(text), &e); err != nil || status != http.StatusOK {
		t.Fatalf("status %d, %s: %v", status, text, err)
	}
	return e
}

// TestExplainOtherVLAN: a flow whose opposite direction is in another VLAN, or may be in one of several, says so.
func TestExplainOtherVLAN(t *testing.T) {
	for _, c := range []struct {
		there, back []uint32 // VIDs; the flow's first
		want        string
	}{
		{[]uint32{10}, []uint32{20}, "those in VLAN 20 belong to VLAN 10 (pairing.scopes can state it)"},
		{[]uint32{10}, []uint32{20, 11}, "or in 1 others belong to it"},
		{[]uint32{10, 20}, []uint32{20}, "the rules compare both"},
	} {
		g := asking(t, 1)
		f := testkit.RoCE{Src: "10.1.0.1", Dst: "10.9.0.9", DestQP: 333}
		back := testkit.RoCE{Src: "10.9.0.9", Dst: "10.1.0.1", DestQP: 444}
		for _, vid := range c.there {
			f.Tags = []uint32{0x8100_0000 | vid}
			g.see(t, 0, 0, f)
		}
		for _, vid := range c.back {
			back.Tags = []uint32{0x8100_0000 | vid}
			g.see(t, 0, 1, back)
		}
		g.run(0)
		for _, gate := range g.explained(t, "?source_ip=10.1.0.1&destination_ip=10.9.0.9").Flows[0].Gates {
			if gate.Name == "source-qp" && !strings.Contains(gate.Text, c.want) {
				t.Errorf("%q, expected %q", gate.Text, c.want)
			}
		}
	}
}

// TestExplainTenants: flows with the same addresses and QPs in two VLANs and a tunnel, at two workers, are explained each.
func TestExplainTenants(t *testing.T) {
	g := asking(t, 2)
	f := testkit.RoCE{Src: "10.1.0.1", Dst: "10.9.0.9", DestQP: 100}
	inVLAN := func(id uint32) testkit.RoCE {
		tagged := f
		tagged.Tags = []uint32{0x8100_0000 | id}
		return tagged
	}
	back := testkit.RoCE{Src: "10.9.0.9", Dst: "10.1.0.1", DestQP: 50, Tags: []uint32{0x8100_0014}}
	g.see(t, 0, 0, inVLAN(10), inVLAN(20))
	g.see(t, 1, 1, back)
	f.Size = 500
	g.InjectAt(t, 1, 0, testkit.VXLAN(f.Frame(), 5000, 0, false))
	g.Drain()
	g.run(0, 1)
	e := g.explained(t, "?source_ip=10.1.0.1&destination_ip=10.9.0.9")
	if e.Notified || len(e.Flows) != 3 || e.More {
		t.Fatalf("%+v", e)
	}
	for i, want := range []struct {
		tunnel    string
		vlan      uint16
		worker    int
		stop, qp  string // gate, and part of what it says of the QP
		qpIsKnown bool
	}{
		{"vxlan", 0, 1, "recipient", "no packets of the opposite direction", false},
		{"", 10, 0, "grant", "no packets of the opposite direction", false},
		{"", 20, 0, "grant", "packets so far: 1; flows of the opposite direction, which don't prove one yet: 1", false},
	} {
		got := &e.Flows[i]
		var qp report.Gate
		for _, gate := range got.Gates {
			if gate.Name == "source-qp" {
				qp = gate
			}
		}
		if got.Tunnel != want.tunnel || want.vlan != 0 && (len(got.VLAN) != 1 || got.VLAN[0] != want.vlan) || got.Worker != want.worker || got.Port != "dc" ||
			got.Stop().Name != want.stop || !strings.Contains(qp.Text, want.qp) || got.Notified {
			t.Errorf("flow %d: %+v, want %+v", i, got, want)
		}
	}
	if e := g.explained(t, "?source_ip=10.9.0.9&destination_ip=10.1.0.1"); len(e.Flows) != 1 || e.Flows[0].Stop().Name != "path" {
		t.Errorf("the opposite direction: %+v", e)
	}
}

// TestExplainUnknown: what is said of a sender without a flow.
func TestExplainUnknown(t *testing.T) {
	g := asking(t, 1)
	g.see(t, 0, 0, testkit.RoCE{Src: "10.1.0.1", Dst: "10.9.0.9", DestQP: 100}, testkit.RoCE{Src: "10.1.0.1", Dst: "10.9.0.9", DestQP: 101})
	g.run(0)
	for query, want := range map[string]string{
		"?source_ip=10.1.0.7&destination_ip=10.9.0.9":        "no packet from 10.1.0.7 to 10.9.0.9 has come in the last 60s; cnpgate show flows lists those that pass the gateway",
		"?source_ip=10.9.0.9&destination_ip=10.1.0.1":        "no packet from 10.9.0.9 to 10.1.0.1 has come in the last 60s; flows of the opposite direction: 2",
		"?source_ip=10.1.0.1&destination_ip=10.9.0.9&qp=102": "no flow to or from QP 102; there are flows to QP 100, 101",
	} {
		if e := g.explained(t, query); e.Notified || len(e.Flows) != 0 || len(e.Gates) != 1 || e.Gates[0].State != report.Stops || e.Gates[0].Text != want {
			t.Errorf("%s: %+v, want %s", query, e, want)
		}
	}
	for query, qp := range map[string]uint32{"&qp=101": 101, "&qp=50": 100} { // 50 is the source QP by the map
		if e := g.explained(t, "?source_ip=10.1.0.1&destination_ip=10.9.0.9"+query); len(e.Flows) != 1 || e.Flows[0].DestinationQP != qp {
			t.Errorf("%s: %+v", query, e)
		}
	}
	g.want(t, http.MethodGet, ExplainPath+"?source_ip=10.1.0.1", "", 400, `destination_ip is \"\"; expected an address, such as 10.1.0.1`)
	g.want(t, http.MethodGet, ExplainPath+"?source_ip=10.1.0.1&destination_ip=10.9.0.0/24", "", 400, `destination_ip is \"10.9.0.0/24\"`)
	g.want(t, http.MethodGet, ExplainPath+"?source_ip=10.1.0.1&destination_ip=fd00::1", "", 400, "expected two addresses of one IP version")
	g.want(t, http.MethodGet, ExplainPath+"?source_ip=10.1.0.1&destination_ip=10.9.0.9&qp=x", "", 400, `qp is \"x\"; expected a QP`)
}

// TestExplainFullTable: flows that the full table has refused, as all the others in it have packets of the same burst.
func TestExplainFullTable(t *testing.T) {
	g := newGateFor(t, 1, 1)
	g.server.flows.wait = func(context.Context, time.Duration) error { return nil }
	for i := range uint32(32) {
		g.InjectAt(t, 0, 0, testkit.RoCE{Src: "10.1.0.1", Dst: "10.9.0.8", DestQP: 2 + i}.Frame())
	}
	g.Drain()
	g.run(0)
	e := g.explained(t, "?source_ip=10.1.0.7&destination_ip=10.9.0.9")
	if len(e.Gates) != 1 || e.Gates[0].Reason != "flow-unknown" || e.Gates[0].Key != "flows.capacity" {
		t.Errorf("%+v", e)
	}
}
