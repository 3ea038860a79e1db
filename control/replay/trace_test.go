package replay_test

import (
	"path/filepath"
	"testing"

	"github.com/cnpgate/cnpgate/control/replay"
	"github.com/cnpgate/cnpgate/health"
)

// sumsOf are a trace's packets by kind. It checks what each trace must keep to.
func sumsOf(t *testing.T, trace *health.Trace) map[string]uint64 {
	t.Helper()
	if len(trace.Points) > health.MostPoints {
		t.Errorf("%d points, expected at most %d", len(trace.Points), health.MostPoints)
	}
	sums, before := map[string]uint64{}, int64(0)
	for _, p := range trace.Points {
		if p.TimeNS < before || p.PSNs < 1 || p.Packets < 1 || uint64(p.PSNs) < p.Packets && trace.MergedNS == 0 {
			t.Fatalf("%+v after %d ns", p, before)
		}
		before = p.TimeNS
		sums[p.Kind] += p.Packets
	}
	return sums
}

// traced compares a connection's traces with the report, and reports whether points are merged.
func traced(t *testing.T, d *replay.Diagnosis, connection int) (merged bool) {
	t.Helper()
	for _, s := range d.Report.Connections[connection].Requests {
		trace, err := d.Trace(connection, s.Requester)
		if err != nil {
			t.Fatal(err)
		}
		sums := sumsOf(t, trace)
		if got := sums[health.PointAgain] + sums[health.PointResponseAgain]; got != s.Retransmitted.Packets {
			t.Errorf("connection %d: %d packets sent again, the report has %d", connection, got, s.Retransmitted.Packets)
		}
		all := uint64(0)
		for kind, n := range sums {
			switch kind {
			case health.PointMissing, health.PointCNP, health.PointCE:
			default:
				all += n
			}
		}
		if want := s.Packets.Packets + s.Responses.Packets; all != want {
			t.Errorf("connection %d: %d packets, the report has %d; %v", connection, all, want, sums)
		}
		if sums[health.PointCE] != s.CE || sums[health.PointRNRNAK] < s.RNRNAKs {
			t.Errorf("connection %d: %v, the report has CE %d, RNR NAKs %d", connection, sums, s.CE, s.RNRNAKs)
		}
		merged = merged || trace.MergedNS > 0
	}
	return merged
}

// TestTraceOfSite: so they do of a capture that is judged in shares.
func TestTraceOfSite(t *testing.T) {
	c, err := replay.Open(site{connections: 3000, hosts: 50}.write(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	d, err := replay.Diagnose(c, replay.HealthOptions{Connections: 500})
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{0, 1, 2, 100, 2999, 0} {
		traced(t, d, at)
	}
}

// TestTrace: the points of a connection add up to what the report says of it.
func TestTrace(t *testing.T) {
	files, err := filepath.Glob("testdata/cases/*.zst")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	merged := false
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			c, err := replay.Open(path, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			d, err := replay.Diagnose(c, replay.HealthOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for i := range d.Report.Connections[:min(2, len(d.Report.Connections))] {
				merged = traced(t, d, i) || merged
			}
			if _, err := d.Trace(len(d.Report.Connections), 0); err == nil {
				t.Error("a connection that isn't there can be traced")
			}
		})
	}
	if !merged {
		t.Error("no trace has so many packets that points are merged")
	}
}
