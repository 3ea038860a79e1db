package report

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// TestTransportOfEveryService: a flow keeps only the three bits of the service.
func TestTransportOfEveryService(t *testing.T) {
	for opcode, want := range map[packet.Opcode]string{
		packet.RCReadRespMiddle: "RC", packet.UCSendOnly: "UC", packet.RDWriteFirst: "RD", packet.UDSendOnly: "UD", packet.UDSendOnlyImm: "UD",
		packet.XRCAcknowledge: "XRC",
	} {
		r := &flowtable.Flow{Transport: uint8(opcode) >> 5}
		if got := transport(r); got != want {
			t.Errorf("%v: transport %q, want %q", opcode, got, want)
		}
	}
}

// TestSourceQPOnlyWhenConfirmed: a candidate isn't named, or someone would act on it.
func TestSourceQPOnlyWhenConfirmed(t *testing.T) {
	key := &flowtable.Key{Src: packet.AddrFrom(netip.MustParseAddr("10.1.0.1")), Dst: packet.AddrFrom(netip.MustParseAddr("fd00::1")),
		DestQP: 7, OuterVID: 100, InnerVID: 200}
	record := &flowtable.Flow{Packets: 3, Bytes: 300, Marked: 2}
	record.Notified[congestion.LongHaulCNP] = 5
	for _, c := range []struct {
		view flowtable.View
		want string
	}{
		{flowtable.View{SourceQP: 9, State: flowtable.Candidate}, `"source_qp":null,"destination_qp":7,"vlan":[100,200],"qp_state":"candidate","qp_evidence":null,"qp_packets":0`},
		{flowtable.View{}, `"source_qp":null,"destination_qp":7,"vlan":[100,200],"qp_state":"unknown","qp_evidence":null,"qp_packets":0`},
		{flowtable.View{SourceQP: 9, State: flowtable.Confirmed, Evidence: flowtable.EvidenceStatic, Took: 1},
			`"source_qp":9,"destination_qp":7,"vlan":[100,200],"qp_state":"confirmed","qp_evidence":"static","qp_packets":1`},
	} {
		b, err := json.Marshal(MakeFlow(key, record, c.view))
		if err != nil {
			t.Fatal(err)
		}
		want := `{"source_ip":"10.1.0.1","destination_ip":"fd00::1",` + c.want +
			`,"qp_contradictions":0,"transport":"RC","packets":3,"bytes":300,"ecn_marked":2,"notifications":{"long-haul-cnp":5}}`
		if string(b) != want {
			t.Errorf("got\n%s, want\n%s", b, want)
		}
	}
}

// testConfig fits the rig's two ports.
func testConfig(t *testing.T) *config.Config {
	t.Helper()
	c, err := config.Parse("test.yaml", []byte(`gateway: {name: gw, ipv4: 192.0.2.1}
ports:
  - {name: dc, device: d0, role: fabric, peer: wan, rate: 10Gbps}
  - {name: wan, device: d1, role: wan, peer: dc, rate: 10Gbps}
`))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestMake: flows of all workers and those that have ended, sorted; counters of all ports, and each port's.
func TestMake(t *testing.T) {
	var ended Flows
	rig := testkit.New(t, testkit.Setup{Change: func(c *dataplane.Config) { c.Ended = ended.Ended }})
	frame := func(src, dst string, qp uint32) []byte {
		return testkit.RoCE{Src: src, Dst: dst, DestQP: qp, Size: 100}.Frame()
	}
	rig.Inject(t, 0, frame("10.1.0.2", "10.9.0.9", 5))
	rig.Drain()
	rig.Advance(61e9) // beyond aging
	rig.Inject(t, 0, frame("10.1.0.2", "10.9.0.9", 4), frame("10.1.0.1", "10.9.0.9", 9), frame("10.1.0.2", "10.9.0.9", 5), frame("9.1.0.1", "10.9.0.9", 9))
	rig.Inject(t, 1, frame("10.9.0.9", "10.1.0.1", 1))
	rig.Drain()
	c := testConfig(t)
	r := Make(c, rig.Plane, &ended)
	var got []string
	for _, f := range r.Flows {
		got = append(got, f.SourceIP.String()+" "+f.Ended)
	}
	if want := []string{"9.1.0.1 ", "10.1.0.1 ", "10.1.0.2 ", "10.1.0.2 aged", "10.1.0.2 ", "10.9.0.9 "}; !slices.Equal(got, want) {
		t.Errorf("the flows are %q, want %q", got, want)
	}
	if r.Counters["received_packets_total"] != uint64(6) || r.Ports[0].Counters["received_packets_total"] != uint64(5) ||
		r.Ports[1].Counters["forwarded_packets_total"] != uint64(5) || r.Counters["flows_aged_total"] != uint64(1) {
		t.Errorf("counters are %v, of the ports %v and %v", r.Counters, r.Ports[0].Counters, r.Ports[1].Counters)
	}
	if n := r.Unaccounted(); n != 0 {
		t.Errorf("%d frames unaccounted for, want 0", n)
	}
	var a, b bytes.Buffer
	if err := r.Write(&a); err != nil {
		t.Fatal(err)
	}
	if err := Make(c, rig.Plane, &ended).Write(&b); err != nil || !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Errorf("two reports of the same differ (%v)", err)
	}
}

// TestNoFlowsIsAList, not null.
func TestNoFlowsIsAList(t *testing.T) {
	var b bytes.Buffer
	if err := Make(testConfig(t), testkit.New(t, testkit.Setup{}).Plane, nil).Write(&b); err != nil || !bytes.Contains(b.Bytes(), []byte(`"flows": [],`)) {
		t.Errorf("%v:\n%s", err, b.Bytes())
	}
}

// TestUnaccounted counts every way a frame can end, and sees one that ended in none.
func TestUnaccounted(t *testing.T) {
	r := &Report{Counters: Values{
		"received_packets_total": uint64(20), "forwarded_packets_total": uint64(9),
		"dropped_packets_total": map[string]uint64{"queue-full-bytes": 3, "border-in": 2}, "consumed_packets_total": map[string]uint64{"mac-control": 1},
		"queued_packets": int64(4),
	}}
	if n := r.Unaccounted(); n != 1 {
		t.Errorf("%d frames unaccounted for, want 1", n)
	}
}
