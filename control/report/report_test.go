package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/pairing"
	"github.com/cnpgate/cnpgate/telemetry"
)

// TestTransportOfEveryService: a flow keeps only the three bits of the service.
func TestTransportOfEveryService(t *testing.T) {
	for opcode, want := range map[packet.Opcode]string{
		packet.RCReadRespMiddle: "RC", packet.UC | packet.RCSendOnly: "UC", packet.RD | packet.RCWriteFirst: "RD", packet.UDSendOnly: "UD", packet.UD | packet.RCSendOnlyImm: "UD",
		packet.XRC | packet.RCAcknowledge: "XRC",
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
	record.Notified[packet.LongHaulCNP] = 5
	for _, c := range []struct {
		view pairing.Description
		want string
	}{
		{pairing.Description{Answer: answer(9, pairing.Candidate, pairing.EvidenceCNP)}, `"source_qp":null,"destination_qp":7,"vlan":[100,200],"qp_state":"candidate","qp_evidence":"cnp","qp_packets":0`},
		{pairing.Description{}, `"source_qp":null,"destination_qp":7,"vlan":[100,200],"qp_state":"unknown","qp_evidence":null,"qp_packets":0`},
		{pairing.Description{Answer: answer(9, pairing.Confirmed, pairing.EvidenceStatic), Took: 1},
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

// TestTunnels: a flow in a tunnel has its kind and identifier, and only the VID that counts there.
func TestTunnels(t *testing.T) {
	for _, c := range []struct {
		tunnel packet.Tunnel
		outer  packet.Tag
		want   Flow
	}{
		{packet.Tunnel{Kind: packet.VXLAN, ID: 0x123456}, 0, Flow{Tunnel: "vxlan", TunnelID: 0x123456}},
		{packet.Tunnel{Kind: packet.GRE, ID: 0xffffffff, VLAN: packet.MakeTag(packet.EtherTypeCTag, 7)}, packet.MakeTag(packet.EtherTypeSTag, 100),
			Flow{Tunnel: "gre", TunnelID: 0xffffffff, VLAN: []uint16{7}}},
		{packet.Tunnel{Kind: packet.IPInIP}, packet.MakeTag(packet.EtherTypeSTag, 100), Flow{Tunnel: "ip-in-ip", VLAN: []uint16{100}}},
	} {
		var k flowtable.Key
		k.SetTunnel(c.tunnel, c.outer)
		f := MakeFlow(&dataplane.FlowRecord{Key: k})
		if f.Tunnel != c.want.Tunnel || f.TunnelID != c.want.TunnelID || !slices.Equal(f.VLAN, c.want.VLAN) || f.VLANProtocol != nil {
			t.Errorf("%+v: got %q %d, VLANs %v", c.tunnel, f.Tunnel, f.TunnelID, f.VLAN)
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
	if r.Counters.Sum(telemetry.ReceivedPackets) != 6 || r.Ports[0].Counters.Sum(telemetry.ReceivedPackets) != 5 ||
		r.Ports[1].Counters.Sum(telemetry.ForwardedPackets) != 5 || r.Counters.Sum(telemetry.FlowsAged) != 1 {
		t.Errorf("counters are %v, of the ports %v and %v", r.Counters, r.Ports[0].Counters, r.Ports[1].Counters)
	}
	if err := r.Counters.Check(); err != nil {
		t.Error(err)
	}
	var a, b bytes.Buffer
	if err := r.Write(&a); err != nil {
		t.Fatal(err)
	}
	if err := Make(c, rig.Plane, &ended).Write(&b); err != nil || !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Errorf("two reports of the same differ (%v)", err)
	}
}

// TestTimeline: samples of empty queues are left out, but for those next to another depth.
func TestTimeline(t *testing.T) {
	for _, c := range []struct{ dc, wan, wantDC, wantWAN []uint64 }{
		{[]uint64{0, 0, 0}, []uint64{0, 0, 0}, nil, nil},
		{[]uint64{0, 0, 5, 0, 0, 0}, []uint64{0, 0, 0, 0, 0, 7}, []uint64{101, 5, 103}, []uint64{104, 7}},
		{[]uint64{5, 0, 6}, []uint64{5, 5, 0}, []uint64{5, 101, 6}, []uint64{5, 5, 102}},
	} {
		var all []Depth
		for i := range c.dc {
			all = append(all, Depth{int64(100 + i), "dc", c.dc[i]}, Depth{int64(100 + i), "wan", c.wan[i]})
		}
		var r Report
		r.SetTimeline(time.UnixMilli(42), all)
		got := map[string][]uint64{}
		for _, d := range r.Timeline {
			got[d.Port] = append(got[d.Port], max(d.DepthBytes, uint64(d.MS)*b2u(d.DepthBytes == 0))) // of an empty queue, when
		}
		if r.BeganMS != 42 || !slices.Equal(got["dc"], c.wantDC) || !slices.Equal(got["wan"], c.wantWAN) {
			t.Errorf("%v, %v: got %v", c.dc, c.wan, got)
		}
		if !slices.IsSortedFunc(r.Timeline, func(a, b Depth) int { return cmp.Compare(a.MS, b.MS) }) {
			t.Errorf("%v is not in the order of time", r.Timeline)
		}
	}
}

func b2u(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// TestTotalsFirst: a reader of a long report sees the totals first.
func TestTotalsFirst(t *testing.T) {
	var b bytes.Buffer
	if err := Make(testConfig(t), testkit.New(t, testkit.Setup{}).Plane, nil).Write(&b); err != nil {
		t.Fatal(err)
	}
	at := -1
	for _, member := range []string{"gateway", "config_hash", "counters", "ports", "flows"} {
		next := bytes.Index(b.Bytes(), []byte("\n  \""+member+"\":"))
		if next <= at {
			t.Errorf("%s is at %d, expected behind %d", member, next, at)
		}
		at = next
	}
}

// TestNoFlowsIsAList, not null.
func TestNoFlowsIsAList(t *testing.T) {
	var b bytes.Buffer
	if err := Make(testConfig(t), testkit.New(t, testkit.Setup{}).Plane, nil).Write(&b); err != nil || !bytes.Contains(b.Bytes(), []byte(`"flows": []`)) {
		t.Errorf("%v:\n%s", err, b.Bytes())
	}
}

// TestReportIsTheCatalogue: every number of a report, apart from those of a flow, is a metric of the catalogue, and the report has each
// metric in the place of its scope. Histograms and what is known of workers' steps are a running gateway's, not a replay's.
func TestReportIsTheCatalogue(t *testing.T) {
	r := Make(testConfig(t), testkit.New(t, testkit.Setup{}).Plane, nil)
	b, err := json.Marshal(r.Ports[0])
	if err != nil {
		t.Fatal(err)
	}
	var port map[string]any
	if err := json.Unmarshal(b, &port); err != nil {
		t.Fatal(err)
	}
	var members []string
	for name, v := range port {
		if _, is := v.(float64); is {
			members = append(members, name)
		}
	}
	portCounters := slices.Collect(maps.Keys(r.Ports[0].Counters))
	for _, m := range telemetry.All() {
		if m.Kind == telemetry.Sizes || m.Label == "worker" || m == telemetry.ServiceUp || m == telemetry.ConfigFileDiffers ||
			m == telemetry.TableUsed || m == telemetry.TableSize || m == telemetry.LogLinesLost { // the last are of a gateway that runs
			continue
		}
		switch in := slices.Contains(members, m.Name); {
		case m.Scope == telemetry.Device: // a replay has none
		case m.Scope == telemetry.Queue && !in:
			t.Errorf("a port of the report has no member %s", m.Name)
		case m.Scope == telemetry.Port && in == slices.Contains(portCounters, m.Name):
			t.Errorf("%s is a member of a port of the report or of its counters: %t; expected one of both", m.Name, in)
		}
		total := m.Scope == telemetry.Gateway || slices.Contains(portCounters, m.Name)
		if reading, is := r.Counters[m.Name]; is != total || is && (m.Label == "") != (reading.By == nil) {
			t.Errorf("the counters of the report have %s: %t, by label: %t", m.Name, is, reading.By != nil)
		}
		members = slices.DeleteFunc(members, func(name string) bool { return name == m.Name })
		delete(r.Counters, m.Name)
		portCounters = slices.DeleteFunc(portCounters, func(name string) bool { return name == m.Name })
	}
	if len(members)+len(portCounters)+len(r.Counters) > 0 {
		t.Errorf("the catalogue lacks %q, %q, %v, which the report has", members, portCounters, r.Counters)
	}
}

// TestAddWorker: each number of two workers comes under its own name.
func TestAddWorker(t *testing.T) {
	p := pairing.Stats{Contradictions: 5, Reuses: 6, Skipped: 7, NoSlot: 8, CMDropped: 11, Ambiguous: 12, Displaced: 13}
	p.Evidence[pairing.EvidenceHint], p.Confirmed[pairing.EvidenceHint] = 9, 10
	v := telemetry.Values{}
	addWorker(v, flowtable.Stats{Flows: 1, Aged: 2, Evictions: 3, Refused: 4}, p)
	addWorker(v, flowtable.Stats{Flows: 100}, pairing.Stats{})
	for name, want := range map[string]uint64{
		"flows": 101, "flows_aged_total": 2, "flow_evictions_total": 3, "flows_refused_total": 4, "qp_contradictions_total": 5, "qp_reuses_total": 6,
		"qp_evidence_skipped_total": 7, "qp_unpaired_total": 8, "qp_cm_dropped_total": 11, "qp_hints_ambiguous_total": 12, "qp_displaced_total": 13,
	} {
		if got := v[name].Value; got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
	if e, c := v["qp_evidence_total"].By["hint"], v["qp_confirmed_total"].By["hint"]; e != 9 || c != 10 {
		t.Errorf("%d pieces of evidence by hint and %d confirmed, want 9 and 10", e, c)
	}
	if e := v["qp_evidence_total"].By; len(e) != int(pairing.Evidences)-1 {
		t.Errorf("evidence of the sources %v, want all", e)
	}
}
