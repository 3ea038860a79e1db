package replay_test

import (
	"bytes"
	"compress/bzip2"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/control/replay"
	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// TestCongestedCapture replays real traffic of four connections through the very gateway whose WAN port dropped half of it: time-outs,
// go-back-N and NAKs for two minutes. The senders' QPs must be known nearly all the time, and no notification may name a wrong one. Loss is found where it was, and
// that the queue held packets for longer than the time-out, up to 800 ms.
func TestCongestedCapture(t *testing.T) {
	const name = "../../testdata/captures/rc_write_congested_v4"
	path := unpacked(t, name+".pcap.bz2")
	var c capture
	if err := json.Unmarshal(readFile(t, name+".json"), &c.truth); err != nil {
		t.Fatal(err)
	}
	var emitted bytes.Buffer
	r := run(t, loadConfig(t, name+".yaml"), path, replay.Options{Fabric: []netip.Prefix{netip.MustParsePrefix("198.18.0.2/32")}, Emitted: &emitted})

	sent := total(r, "notifications_sent_total")
	suppressed := r.Counters["notifications_suppressed_total"].By
	unknown, tried := suppressed["source-qp-unknown"], sent+total(r, "notifications_suppressed_total")
	if sent < 1000 || 1000*unknown > 5*tried {
		t.Errorf("%d notifications were sent; of %d tried %d end as source-qp-unknown, want at most 0.5 %%", sent, tried, unknown)
	}
	senders := map[uint32]uint32{} // destination QP of the data to the sender's
	sources := trueSources(c)
	for _, conn := range c.truth.Connections {
		senders[conn.ServerQPN] = conn.ClientQPN
	}
	if len(r.Flows) != 2*len(senders) {
		t.Errorf("%d flows, want each of %d connections to be one record each way", len(r.Flows), len(senders))
	}
	for _, f := range r.Flows {
		if f.SourceQP == nil || f.QPState != "confirmed" || f.Ended != "" {
			t.Errorf("at the end the flow from %s to QP %d is %s %s", f.SourceIP, f.DestinationQP, f.QPState, f.Ended)
			continue
		}
		key := fmt.Sprint(f.SourceIP, " to ", f.DestinationIP, " QP ", f.DestinationQP)
		if want := sources[key]; *f.SourceQP != want {
			t.Errorf("%s comes from QP %d, and is said to come from %d", key, want, *f.SourceQP)
		}
	}
	for i, n := range frames(t, emitted.Bytes()) {
		p := n.parse()
		_, _, qp := describe(n, &p)
		if p.Kind != packet.RoCEv2 || !knownSender(senders, qp) {
			t.Fatalf("notification %d names QP %d, no sender's: %v", i+1, qp, n)
		}
	}
	var verdicts []string
	for _, v := range healthOf(t, path).Verdicts {
		verdicts = append(verdicts, v.Name)
	}
	if !slices.Contains(verdicts, health.LossDownstream) || !slices.Contains(verdicts, health.ShortTimeOut) || slices.Contains(verdicts, health.LossUpstream) {
		t.Errorf("verdicts %v", verdicts)
	}
}

func knownSender(senders map[uint32]uint32, qp uint32) bool {
	for _, sender := range senders {
		if sender == qp {
			return true
		}
	}
	return false
}

// unpacked is the path of a file that a bzip2 file holds.
func unpacked(t *testing.T, path string) string {
	t.Helper()
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.Create(filepath.Join(t.TempDir(), "capture.pcap"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := io.Copy(out, bzip2.NewReader(in)); err != nil {
		t.Fatal(err)
	}
	return out.Name()
}
