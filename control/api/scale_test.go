package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/internal/testkit/effort"
	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
)

const connections = 10_000*effort.Short + 10_000*effort.Race + 50_000*effort.Long // of TestAtScale

// TestAtScale: a gateway with two workers, one for each direction, and 4,096 hosts. All connections are paired. The lists of the API
// are complete, and what is bounded stays so; taking them allocates nothing in a worker.
func TestAtScale(t *testing.T) {
	if ontime.Again(t) { // a worker that was kept off its core for seconds doesn't answer
		return
	}
	const hosts, flows = 4096, 2 * connections
	g := newGateFor(t, 2, 1<<17)
	counters := len(g.counterNames(t))
	for n := range uint32(10 * connections) { // round by round: five requests of each, each acknowledged
		i := n % connections
		a, b, qp := fmt.Sprintf("10.1.%d.%d", i%hosts>>8, i%256), fmt.Sprintf("10.9.%d.%d", i/hosts, i*7%256), [2]uint32{1000 + i, 1<<20 + i}
		frame := testkit.RoCE{Src: a, Dst: b, Opcode: packet.RCSendOnly, Flags: 0x80, DestQP: qp[1], PSN: i*977 + n/connections/2, Size: 200, SrcPort: packet.SourcePort(qp[0], qp[1])}
		from := int(n / connections % 2)
		if from == 1 {
			frame.Src, frame.Dst, frame.DestQP, frame.Opcode, frame.Flags = b, a, qp[0], packet.RCAcknowledge, 0
		}
		g.InjectAt(t, from, from, frame.Frame())
		if n%8 == 7 { // a burst has budget for eight new flows
			g.Drain()
		}
	}
	g.Drain()
	snapshot := &dataplane.Snapshot{Flows: make([]dataplane.FlowRecord, 0, flowsAtOnce)}
	if n := testing.AllocsPerRun(200, func() {
		w := g.Plane.Worker(1)
		if !w.Asked(snapshot) {
			snapshot.Flows = snapshot.Flows[:0]
			w.Ask(snapshot)
		}
		before := len(snapshot.Flows)
		if w.Step(); len(snapshot.Flows)-before > 32 {
			t.Errorf("a step has copied %d flows", len(snapshot.Flows)-before)
		}
	}); n != 0 {
		t.Errorf("%v allocations a step", n)
	}
	g.Plane.Worker(1).Forget(snapshot)
	g.run(0, 1)

	var all FlowsBody
	g.read(t, FlowsPath, &all)
	known := 0
	for i := range all.Flows {
		if f := &all.Flows[i]; f.SourceQP != nil {
			known++
		}
	}
	if len(all.Flows) != flows || known != flows {
		t.Errorf("%d flows, of %d the source QP is known, expected %d", len(all.Flows), known, flows)
	}
	var senders SendersBody
	if g.read(t, SendersPath+"?source_ip=10.1.0.0/16&sort=bytes&limit=4096&interval=10ms", &senders); senders.Total != hosts || len(senders.Senders) != hosts || senders.LeftOut != 0 {
		t.Errorf("%d of %d senders, %d flows left out", len(senders.Senders), senders.Total, senders.LeftOut)
	}
	var top FlowsBody
	if g.read(t, FlowsPath+"?sort=bytes&limit=100&interval=10ms", &top); len(top.Flows) != 100 || !top.More {
		t.Errorf("%d flows at the top, more %v", len(top.Flows), top.More)
	}
	if n := len(g.counterNames(t)); n != counters {
		t.Errorf("%d counters, %d before there were flows", n, counters)
	}
}

// read makes a request, and reads the answer.
func (g *gate) read(t *testing.T, path string, to any) {
	t.Helper()
	status, _, text := g.ask(t, http.MethodGet, path, "")
	if err := json.Unmarshal([]byte(text), to); err != nil || status != http.StatusOK {
		t.Fatalf("%s: status %d, %v", path, status, err)
	}
}

// counterNames are the names of all counters.
func (g *gate) counterNames(t *testing.T) (names map[string]any) {
	t.Helper()
	c := g.Counters()
	names = map[string]any{}
	for name, v := range c.Counters {
		names[name] = nil
		for by := range v.By {
			names[name+" "+by] = nil
		}
	}
	return names
}
