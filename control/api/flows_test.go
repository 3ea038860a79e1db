package api

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/internal/testkit/effort"
	"github.com/cnpgate/cnpgate/pairing"
)

// scene has four flows at two workers: one of qp_map, one of UD, one that nothing is known of, and one that comes in by the WAN
// port with a VLAN.
func scene(t *testing.T) *gate {
	t.Helper()
	g := newGate(t, 2)
	static := testkit.RoCE{Src: "10.1.0.1", Dst: "10.9.0.9", DestQP: 100}
	g.see(t, 0, 0, static, static, testkit.RoCE{Src: "10.1.0.2", Dst: "10.9.0.9", DestQP: 7, SourceQP: 8, Opcode: packet.UDSendOnly})
	g.see(t, 1, 0, testkit.RoCE{Src: "fd00::1", Dst: "fd00::9", DestQP: 100})
	g.see(t, 1, 1, testkit.RoCE{Src: "10.9.0.9", Dst: "10.1.0.3", DestQP: 9, Tags: []uint32{0x8100_0064}})
	g.run(0, 1)
	return g
}

const (
	staticFlow = `{"port":"dc","source_ip":"10.1.0.1","destination_ip":"10.9.0.9","source_qp":50,"destination_qp":100,"qp_state":"confirmed",` +
		`"qp_evidence":"static","qp_packets":1,"qp_contradictions":0,"transport":"RC","packets":2,"bytes":1000,"ecn_marked":0,"notifications":{}}`
	udFlow = `{"port":"dc","source_ip":"10.1.0.2","destination_ip":"10.9.0.9","source_qp":8,"destination_qp":7,"qp_state":"confirmed",` +
		`"qp_evidence":"deth","qp_packets":1,"qp_contradictions":0,"transport":"UD","packets":1,"bytes":500,"ecn_marked":0,"notifications":{}}`
	unknownFlow = `{"port":"dc","source_ip":"fd00::1","destination_ip":"fd00::9","source_qp":null,"destination_qp":100,"qp_state":"unknown",` +
		`"qp_evidence":null,"qp_packets":0,"qp_contradictions":0,"transport":"RC","packets":1,"bytes":500,"ecn_marked":0,"notifications":{}}`
	vlanFlow = `{"port":"wan","source_ip":"10.9.0.9","destination_ip":"10.1.0.3","source_qp":null,"destination_qp":9,"vlan":[100],"qp_state":"unknown",` +
		`"qp_evidence":null,"qp_packets":0,"qp_contradictions":0,"transport":"RC","packets":1,"bytes":500,"ecn_marked":0,"notifications":{}}`
)

// ages are what differs from flow to flow and has tests of its own.
var ages = regexp.MustCompile(`,"age_ns":[0-9]+`)

func TestFlows(t *testing.T) {
	g := scene(t)
	for _, c := range []struct {
		query string
		more  bool
		want  []string
	}{
		{"", false, []string{staticFlow, udFlow, unknownFlow, vlanFlow}},
		{"?source_ip=10.1.0.1", false, []string{staticFlow}},
		{"?source_ip=10.1.0.0/16", false, []string{staticFlow, udFlow}},
		{"?source_ip=10.1.0.77/16&destination_ip=10.9.0.9", false, []string{staticFlow, udFlow}},
		{"?destination_ip=fd00::/64", false, []string{unknownFlow}},
		{"?destination_qp=100", false, []string{staticFlow, unknownFlow}},
		{"?destination_qp=0x64&qp_state=unknown", false, []string{unknownFlow}},
		{"?source_qp=8", false, []string{udFlow}},
		{"?source_qp=0", false, nil},
		{"?qp_state=confirmed", false, []string{staticFlow, udFlow}},
		{"?qp_state=candidate", false, nil},
		{"?qp_evidence=deth", false, []string{udFlow}},
		{"?qp_evidence=none", false, []string{unknownFlow, vlanFlow}},
		{"?source_ip=10.1.0.1&destination_ip=10.9.0.9&qp_state=confirmed&qp_evidence=static", false, []string{staticFlow}},
		{"?limit=1", true, []string{staticFlow}},
		{"?limit=3", true, []string{staticFlow, udFlow, unknownFlow}},
		{"?limit=4", false, []string{staticFlow, udFlow, unknownFlow, vlanFlow}},
		{"?limit=1&qp_state=unknown", true, []string{unknownFlow}},
	} {
		lines := strings.Join(c.want, ",\n")
		if lines != "" {
			lines = "\n" + lines
		}
		want := fmt.Sprintf("{\"flows\":[%s\n],\"more\":%t}\n", lines, c.more)
		status, _, got := g.ask(t, http.MethodGet, FlowsPath+c.query, "")
		if got = ages.ReplaceAllString(got, ""); status != http.StatusOK || got != want {
			t.Errorf("%s: status %d\n got %s\nwant %s", c.query, status, got, want)
		}
	}
}

// TestManyFlows: of more flows than are in memory at once, each comes once, to several clients at the same time.
func TestManyFlows(t *testing.T) {
	const flows = 2*flowsAtOnce + 100
	g := newGateFor(t, 2, flows)
	for i := range uint32(flows) {
		g.InjectAt(t, int(i%2), 0, testkit.RoCE{Src: "10.1.0.1", Dst: "10.9.0.8", DestQP: 2 + i, Size: 500}.Frame())
		if i%100 == 99 || i == flows-1 {
			g.Drain()
		}
	}
	g.run(0, 1)
	const clients = 4*effort.Short + 2*effort.Race + 4*effort.Long
	results := make(chan error)
	for range clients {
		go func() {
			all, err := Get[FlowsBody](t.Context(), NewClient(g.path), FlowsPath)
			for range 20 { // a worker that was kept off its core for long doesn't answer
				if err == nil || !strings.HasSuffix(err.Error(), "try again") {
					break
				}
				all, err = Get[FlowsBody](t.Context(), NewClient(g.path), FlowsPath)
			}
			seen := map[uint32]bool{}
			for _, f := range all.Flows {
				seen[f.DestinationQP] = true
			}
			if err == nil && (len(all.Flows) != flows || len(seen) != flows) {
				err = fmt.Errorf("%d flows, %d of them different, want %d", len(all.Flows), len(seen), flows)
			}
			results <- err
		}()
	}
	for range clients {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}

// TestStopWhileFlowsAreRead: a client never takes a part of an answer for the whole.
func TestStopWhileFlowsAreRead(t *testing.T) {
	for _, c := range []struct {
		running []int
		waits   int // worker that is asked, and doesn't answer
		want    string
	}{{nil, 0, "worker 0 does not answer: it is stopping, or gets no CPU time; try again"}, {[]int{0}, 1, "EOF"}} {
		g := newGate(t, 2)
		g.see(t, 0, 0, testkit.RoCE{Src: "10.1.0.1", Dst: "10.9.0.8", DestQP: 2})
		g.run(c.running...)
		answer := make(chan error)
		go func() {
			_, err := Get[FlowsBody](context.Background(), NewClient(g.path), FlowsPath)
			answer <- err
		}()
		for len(g.server.flows.turns[c.waits]) == 0 {
			runtime.Gosched()
		}
		g.cancel()
		if err := <-answer; err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}

// TestClientIsGone: a client that has disconnected delays no other request.
func TestClientIsGone(t *testing.T) {
	g := newGate(t, 1)
	ctx, hangUp := context.WithCancel(t.Context())
	answer := make(chan error)
	go func() {
		_, err := Get[FlowsBody](ctx, NewClient(g.path), FlowsPath)
		answer <- err
	}()
	for len(g.server.flows.turns[0]) == 0 {
		runtime.Gosched()
	}
	hangUp()
	if err := <-answer; err == nil {
		t.Error("no error")
	}
	for len(g.server.flows.turns[0]) != 0 {
		runtime.Gosched()
	}
	go func() {
		_, err := Get[FlowsBody](t.Context(), NewClient(g.path), FlowsPath)
		answer <- err
	}()
	for len(g.server.flows.turns[0]) == 0 { // the next one waits for the worker, not for the one that is gone
		select {
		case err := <-answer:
			t.Fatal(err)
		default:
			runtime.Gosched()
		}
	}
	g.run(0)
	if err := <-answer; err != nil {
		t.Error(err)
	}
}

// TestPairs: flows whose source QP is confirmed or a candidate, with how long that has been so.
func TestPairs(t *testing.T) {
	g := newGate(t, 1)
	static := testkit.RoCE{Src: "10.1.0.1", Dst: "10.9.0.9", DestQP: 100}
	g.see(t, 0, 0, static, testkit.RoCE{Src: "10.1.0.3", Dst: "10.9.0.9", DestQP: 100})
	g.Advance(2_500_000_000)
	g.see(t, 0, 0, static, testkit.RoCE{Src: "10.1.0.2", Dst: "10.9.0.9", DestQP: 7, SourceQP: 8, Opcode: packet.UDSendOnly})
	g.run(0)
	pairs, err := Get[PairsBody](t.Context(), NewClient(g.path), PairsPath)
	if err != nil || len(pairs.Pairs) != 2 {
		t.Fatalf("%+v, %v", pairs, err)
	}
	for i, want := range []struct {
		source, evidence string
		qp               uint32
		age              float64
	}{{"10.1.0.1", "static", 50, 2.5}, {"10.1.0.2", "deth", 8, 0}} {
		p := &pairs.Pairs[i]
		if p.SourceIP.String() != want.source || *p.SourceQP != want.qp || p.CandidateQP != nil || *p.QPEvidence != want.evidence || p.QPState != "confirmed" ||
			float64(*p.QPAge)/1e9 < want.age || float64(*p.QPAge)/1e9 > want.age+0.1 {
			t.Errorf("%+v, age %v; want %+v", p, *p.QPAge, want)
		}
	}
	g.want(t, http.MethodGet, PairsPath+"?qp_evidence=deth&limit=1", "", 200, `"source_ip":"10.1.0.2"`, `"more":false`)
}

// TestCandidatePair: a candidate is not given as the source QP.
func TestCandidatePair(t *testing.T) {
	record := &dataplane.FlowRecord{View: pairing.Description{Answer: 9 | pairing.Answer(pairing.Candidate)<<24 | pairing.Answer(pairing.EvidenceCNP)<<26}}
	if p := makePair("dc", record); p.SourceQP != nil || *p.CandidateQP != 9 || p.QPState != "candidate" || *p.QPEvidence != "cnp" || p.QPAge != nil {
		t.Errorf("%+v", p)
	}
}
