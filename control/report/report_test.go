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
	"github.com/cnpgate/cnpgate/pairing"
)

// TestTransportOfEveryService: a flow keeps only the three bits of the service.
func TestTransportOfEveryService(t *testing.T) {
	for opcode, want := range map[packet.Opcode]string{
		packet.RCReadRespMiddle: "RC", packet.UCSendOnly: "UC", packet.RDWriteFirst: "RD", packet.UDSendOnly: "UD", packet.UDSendOnlyImm: "UD",
		packet.XRCAcknowledge: "XRC",
	} {
		if got := transport(uint8(opcode) >> 5); got != want {
			t.Errorf("%v: transport %q, want %q", opcode, got, want)
		}
	}
}

// TestSourceQPOnlyWhenConfirmed: a candidate isn't named, or someone would act on it.
func TestSourceQPOnlyWhenConfirmed(t *testing.T) {
	record := &dataplane.FlowRecord{
		Key: flowtable.Key{Src: packet.AddrFrom(netip.MustParseAddr("10.1.0.1")), Dst: packet.AddrFrom(netip.MustParseAddr("fd00::1")),
			DestQP: 7, OuterTag: packet.MakeTag(packet.EtherTypeCTag, 100), InnerTag: packet.MakeTag(packet.EtherTypeCTag, 200)},
		Traffic: pairing.Traffic{Packets: 3, Bytes: 300}, Marked: 2,
	}
	record.Notified[congestion.LongHaulCNP] = 5
	for _, c := range []struct {
		view pairing.View
		want string
	}{
		{pairing.View{Answer: answer(9, pairing.Candidate, pairing.EvidenceNone)}, `"source_qp":null,"destination_qp":7,"vlan":[100,200],"qp_state":"candidate","qp_evidence":null,"qp_packets":0`},
		{pairing.View{}, `"source_qp":null,"destination_qp":7,"vlan":[100,200],"qp_state":"unknown","qp_evidence":null,"qp_packets":0`},
		{pairing.View{Answer: answer(9, pairing.Confirmed, pairing.EvidenceStatic), Took: 1},
			`"source_qp":9,"destination_qp":7,"vlan":[100,200],"qp_state":"confirmed","qp_evidence":"static","qp_packets":1`},
	} {
		record.View = c.view
		b, err := json.Marshal(MakeFlow(record))
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

// answer lays an answer out as pairing.Answer says.
func answer(qp uint32, s pairing.State, e pairing.Evidence) pairing.Answer {
	return pairing.Answer(qp) | pairing.Answer(s)<<24 | pairing.Answer(e)<<26
}

// TestVLANs: the VIDs of all tags, and the TPIDs where one isn't 0x8100.
func TestVLANs(t *testing.T) {
	c, s, q := packet.MakeTag(packet.EtherTypeCTag, 100), packet.MakeTag(packet.EtherTypeSTag, 100), packet.MakeTag(packet.EtherTypeQinQ, 0)
	for _, k := range []struct {
		outer, inner packet.Tag
		vids         []uint16
		protocols    []string
	}{
		{0, 0, nil, nil},
		{c, 0, []uint16{100}, nil},
		{packet.MakeTag(packet.EtherTypeCTag, 0), 0, []uint16{0}, nil},
		{c, c, []uint16{100, 100}, nil},
		{s, 0, []uint16{100}, []string{"0x88a8"}},
		{s, c, []uint16{100, 100}, []string{"0x88a8", "0x8100"}},
		{c, q, []uint16{100, 0}, []string{"0x8100", "0x9100"}},
	} {
		f := MakeFlow(&dataplane.FlowRecord{Key: flowtable.Key{OuterTag: k.outer, InnerTag: k.inner}})
		if !slices.Equal(f.VLAN, k.vids) || !slices.Equal(f.VLANProtocol, k.protocols) {
			t.Errorf("tags %v and %v: VLANs %v, protocols %v", k.outer, k.inner, f.VLAN, f.VLANProtocol)
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
