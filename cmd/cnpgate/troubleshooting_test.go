package main

import (
	"errors"
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/assemble"
	"github.com/cnpgate/cnpgate/control/capture"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/notify"
	"github.com/cnpgate/cnpgate/dataplane/respond"
	"github.com/cnpgate/cnpgate/dataplane/trace"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/ratelimit"
)

var update = flag.Bool("update", false, "write the examples of docs/troubleshooting.md anew")

const troubledConfig = `gateway: {name: gw}
ports:
  - {name: dc0, device: d0, role: fabric, peer: wan0, rate: 10Gbps}
  - {name: wan0, device: d1, role: wan, peer: dc0, rate: 1Gbps, rtt: 10ms}
flows: {capacity: 1Ki}
endpoints: [{prefix: 10.1.0.1/32, accepts: [standard-cnp]}]
notifications: {standard_cnp: {enabled: true}}
qp_map: [{source_ip: 10.1.0.1, destination_ip: 10.2.0.1, source_qp: 421, destination_qp: 61}]
`

// TestTroubleshooting: the outputs in docs/troubleshooting.md are those of a gateway at which two senders offer three times what the WAN port sends, in
// virtual time. One of them has no endpoint.
func TestTroubleshooting(t *testing.T) {
	t.Setenv("TZ", "UTC")
	cfg, err := config.Parse("gw.yaml", []byte(troubledConfig))
	if err != nil {
		t.Fatal(err)
	}
	r := testkit.New(t, testkit.Setup{Buffers: 20_000, Forget: true, Change: func(d *dataplane.Config) {
		s, err := assemble.Settings(cfg, 1, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.Backends, s.Allocate = d.Backends, d.Allocate
		*d = s
	}})
	defer r.Close(t)
	r.Plane.SetWallClock(time.Date(2026, 11, 22, 10, 15, 0, 0, time.UTC).UnixNano() - r.Now)
	address := func(s string) packet.Addr { return packet.AddrFrom(netip.MustParseAddr(s)) }
	granted := testkit.RoCE{Src: "10.1.0.1", Dst: "10.2.0.1", DestQP: 61, Size: 1082, DSCP: 26, ECN: packet.ECT0}.Frame()
	other := testkit.RoCE{Src: "10.1.0.7", Dst: "10.2.0.9", DestQP: 118, Size: 1082, DSCP: 26, ECN: packet.ECT0}.Frame()
	tr := &trace.Trace{Source: address("10.1.0.1"), Destination: address("10.2.0.1"), DestQP: 61, Decisions: true, Rate: ratelimit.PerSecond(1000)}
	if !r.Plane.StartTrace(tr) {
		t.Fatal("the trace did not start")
	}
	var traced trace.PacketRecord // the last one
	for range 3000 {
		r.Inject(t, 0, granted)
		r.Inject(t, 0, other)
		r.Settle()
		r.Advance(6_000)
		takeAll(tr, &traced)
	}
	page := readPage(t)
	page.example(t, "$ cnpgate explain ", explainedSender(t, r, cfg, address))
	r.Drain()
	takeAll(tr, &traced)
	w := r.Plane.Worker(0)
	last := make([]notify.NotificationRecord, 1)
	if n, _ := w.Notifications().Read(w.Notifications().Recorded()-1, last); n != 1 {
		t.Fatal("no notification is recorded")
	}
	var table strings.Builder
	if err := printNotifications(&table, &api.Notifications{Notifications: []report.Notification{report.MakeNotification(cfg, 0, &last[0], false)}}); err != nil {
		t.Fatal(err)
	}
	page.example(t, "$ cnpgate show notifications ", table.String())
	page.example(t, "$ cnpgate capture --flow ", tracedPacket(t, cfg, &traced))
	page.write(t)
}

// explainedSender is what explain prints of the sender without an endpoint.
func explainedSender(t *testing.T, r *testkit.Rig, cfg *config.Config, address func(string) packet.Addr) string {
	t.Helper()
	s := &dataplane.Snapshot{Flows: make([]dataplane.FlowRecord, 0, 4), Between: &dataplane.Between{
		A: address("10.1.0.7"), B: address("10.2.0.9"), Standings: make([]respond.Standing, 0, 4)}}
	w := r.Plane.Worker(0)
	for w.Ask(s); w.Asked(s); {
		w.Step()
	}
	if len(s.Flows) != 1 {
		t.Fatalf("the flows are %+v", s.Flows)
	}
	e := report.Explained{Config: cfg, Policy: r.Plane.Policy(), Flow: &s.Flows[0], Standing: &s.Between.Standings[0]}
	f := api.ExplainedFlow{Flow: api.Flow{Port: "dc0", Flow: report.MakeFlow(&s.Flows[0])}, Gates: e.Gates()}
	var text strings.Builder
	if err := printExplanation(&text, "10.1.0.7", "10.2.0.9", &api.Explanation{Flows: []api.ExplainedFlow{f}}); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// takeAll reads a trace to its end, and keeps the last record.
func takeAll(tr *trace.Trace, last *trace.PacketRecord) {
	for r, ok := tr.Take(0); ok; r, ok = tr.Take(0) {
		*last = r
	}
}

// tracedPacket is a packet as decode prints it from a capture.
func tracedPacket(t *testing.T, cfg *config.Config, r *trace.PacketRecord) string {
	t.Helper()
	dir := workspace(t)
	file, err := os.Create(dir + "/trace.pcapng")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w, err := capture.NewWriter(file, "test")
	if err != nil {
		t.Fatal(err)
	}
	p := report.MakePacket(cfg, 0, r, true)
	if err := errors.Join(w.WritePacket(&p), w.End()); err != nil {
		t.Fatal(err)
	}
	return cnpgate(t, dir, "decode", "trace.pcapng").stdout
}

// page is docs/troubleshooting.md, by line.
type page struct {
	lines   []string
	changed bool
}

const troubleshooting = "../../docs/troubleshooting.md"

func readPage(t *testing.T) *page {
	t.Helper()
	text, err := os.ReadFile(troubleshooting)
	if err != nil {
		t.Fatal(err)
	}
	return &page{lines: strings.Split(string(text), "\n")}
}

// example compares the lines below a command, up to the first empty one, with the first paragraph that the command prints.
func (p *page) example(t *testing.T, command, printed string) {
	t.Helper()
	at := slices.IndexFunc(p.lines, func(line string) bool { return strings.HasPrefix(strings.TrimLeft(line, " "), command) })
	if at < 0 {
		t.Fatalf("%s has no line %s", troubleshooting, command)
	}
	indent, _, _ := strings.Cut(p.lines[at], "$")
	first, _, _ := strings.Cut(printed, "\n\n")
	var want []string
	for line := range strings.SplitSeq(strings.TrimSuffix(first, "\n"), "\n") {
		want = append(want, indent+strings.TrimRight(line, " "))
	}
	end := at + 1 + slices.Index(p.lines[at+1:], "")
	if got := p.lines[at+1 : end]; !slices.Equal(got, want) {
		if p.changed = true; !*update {
			t.Errorf("%s has below %s\n%s\nwant (write it with -update)\n%s", troubleshooting, command, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		p.lines = slices.Replace(p.lines, at+1, end, want...)
	}
}

func (p *page) write(t *testing.T) {
	t.Helper()
	if *update && p.changed {
		if err := os.WriteFile(troubleshooting, []byte(strings.Join(p.lines, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// explained is what a gateway answers about two flows of a sender, in two VLANs: one is notified.
const explained = `{"notified":true,"flows":[
{"port":"dc","source_ip":"10.1.0.1","destination_ip":"10.9.0.9","source_qp":50,"destination_qp":100,"vlan":[10],"qp_state":"confirmed","qp_evidence":"psn","qp_packets":1,"qp_contradictions":0,"transport":"RC","packets":2,"bytes":1000,"ecn_marked":0,"notifications":{},"age_ns":1,"worker":0,"notified":true,"gates":[
{"gate":"flow","result":"pass","text":"2 packets, 3Gbps now"},
{"gate":"limits","result":"wait","reason":"flow-limit","text":"per_flow: the last one is less than the interval ago","key":"notifications.limits.per_flow"},
{"gate":"last","result":"pass","text":"standard-cnp notify 2ms ago"}]},
{"port":"dc","source_ip":"10.1.0.1","destination_ip":"10.9.0.9","source_qp":null,"destination_qp":100,"tunnel":"vxlan","tunnel_id":5000,"qp_state":"unknown","qp_evidence":null,"qp_packets":0,"qp_contradictions":0,"transport":"RC","packets":1,"bytes":500,"ecn_marked":0,"notifications":{},"age_ns":1,"worker":1,"notified":false,"gates":[
{"gate":"flow","result":"pass","text":"1 packets, 0bps now"},
{"gate":"recipient","result":"stop","reason":"encapsulated","text":"the flow is in a tunnel","key":"proxy.senders"},
{"gate":"grant","result":"unknown","text":"accepts standard-cnp"}]}],"more":true}
`

const shownExplained = `10.1.0.1 QP 50 to 10.9.0.9 QP 100, port dc, VLAN 10, worker 0: notified
  pass  flow       2 packets, 3Gbps now
  wait  limits     per_flow: the last one is less than the interval ago
                   (flow-limit); change notifications.limits.per_flow
  pass  last       standard-cnp notify 2ms ago

10.1.0.1 QP - to 10.9.0.9 QP 100, port dc, VLAN vxlan:5000, worker 1: not
notified, because of: recipient
  stop  recipient  the flow is in a tunnel (encapsulated); change proxy.senders
  pass  flow       1 packets, 0bps now
  -     grant      accepts standard-cnp

and other flows; --qp selects one
`

// unexplained is what a gateway answers about a sender without a flow.
const unexplained = `{"notified":false,"flows":[],"gates":[{"gate":"flow","result":"stop","text":"no packet has come"}],"more":false}
`

// TestExplain: the first gate that stops is at the top, and the exit status says whether a sender is notified.
func TestExplain(t *testing.T) {
	dir := workspace(t)
	gatewayAt(t, filepath.Join(dir, "gw.sock"), answered, true)
	gatewayAt(t, filepath.Join(dir, "idle.sock"), "{}", true)
	for _, c := range []struct {
		args           string
		status         int
		stdout, stderr string
	}{
		{"10.1.0.1 10.9.0.9 --socket gw.sock", 0, shownExplained, ""},
		{"10.1.0.1 10.9.0.9 --qp 0x64 --socket gw.sock -o json", 0, explained, ""},
		{"10.1.0.1 10.9.0.9 --socket idle.sock", 3, "10.1.0.1 to 10.9.0.9: not notified\n  stop  flow       no packet has come\n\n", ""},
		{"10.1.0.1 10.9.0.9 --socket idle.sock -o json", 3, unexplained, ""},
		{"10.1.0.1 10.9.0.9 --socket none.sock", 1, "", "no socket at none.sock"},
	} {
		t.Run(c.args, func(t *testing.T) {
			got := within(t, dir, append([]string{"explain"}, strings.Fields(c.args)...)...)
			if got.status != c.status || got.stdout != c.stdout || !tells(got.stderr, c.stderr) {
				t.Errorf("exit status %d, want %d\nstdout: %s\nwant    %s\nstderr: %s\nwant    %s", got.status, c.status, got.stdout, c.stdout, got.stderr, c.stderr)
			}
		})
	}
}
