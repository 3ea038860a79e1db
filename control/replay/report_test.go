package replay_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"testing"
)

// TestReportShape: what others read. Names and types are a promise.
func TestReportShape(t *testing.T) {
	for _, name := range []string{"rc_write_q8_v4/client/long-haul-cnp", "ud_pingpong_v6/client/fast-cnp", "rc_send_v6/client/fast-cnp-unmapped"} {
		t.Run(name, func(t *testing.T) {
			s := find(t, congested(t), name)
			var b bytes.Buffer
			if err := replayed(t, s).report.Write(&b); err != nil {
				t.Fatal(err)
			}
			var r struct {
				Flows    []map[string]any
				Counters map[string]any
			}
			if err := json.Unmarshal(b.Bytes(), &r); err != nil || b.Bytes()[b.Len()-1] != '\n' {
				t.Fatalf("not JSON with a newline at its end: %v", err)
			}
			checkFlows(t, r.Flows)
			for _, counter := range []string{"received_packets_total", "forwarded_packets_total", "queue_ecn_marked_packets_total",
				"roce_ce_received_packets_total", "queued_packets", "flows", "flow_evictions_total"} {
				if _, ok := r.Counters[counter].(float64); !ok {
					t.Errorf("counter %s is %v, want a number", counter, r.Counters[counter])
				}
			}
			for counter, label := range map[string]string{"dropped_packets_total": "queue-full-bytes", "consumed_packets_total": "mac-control",
				"notifications_sent_total": s.kind, "notifications_suppressed_total": "flow-limit", "notifications_received_total": "standard-cnp"} {
				by, _ := r.Counters[counter].(map[string]any)
				if _, ok := by[label].(float64); !ok {
					t.Errorf("counter %s has no %s: %v", counter, label, r.Counters[counter])
				}
			}
		})
	}
}

func find(t *testing.T, all []*scenario, name string) *scenario {
	t.Helper()
	for _, s := range all {
		if s.name == name {
			return s
		}
	}
	t.Fatalf("no scenario is called %s", name)
	return nil
}

var flowFields = []string{"bytes", "destination_ip", "destination_qp", "ecn_marked", "notifications", "packets", "qp_contradictions", "qp_evidence",
	"qp_packets", "qp_state",
	"source_ip", "source_qp", "transport"}

func checkFlows(t *testing.T, flows []map[string]any) {
	t.Helper()
	if len(flows) < 2 {
		t.Fatalf("%d flows, want both directions", len(flows))
	}
	notifications := 0
	for _, f := range flows {
		if fields := slices.Sorted(maps.Keys(f)); !slices.Equal(fields, flowFields) {
			t.Errorf("a flow has the fields %q, want %q", fields, flowFields)
		}
		for _, field := range []string{"source_ip", "destination_ip"} {
			if a, err := netip.ParseAddr(f[field].(string)); err != nil || a.String() != f[field] {
				t.Errorf("%s is %v, want an address as netip prints it", field, f[field])
			}
		}
		for _, field := range []string{"destination_qp", "packets", "bytes", "ecn_marked", "qp_packets", "qp_contradictions"} {
			if _, ok := f[field].(float64); !ok {
				t.Errorf("%s is %v, want a number", field, f[field])
			}
		}
		_, known := f["source_qp"].(float64)
		_, evidence := f["qp_evidence"].(string)
		switch state := f["qp_state"]; {
		case state == "confirmed" && known && evidence, state == "unknown" && f["source_qp"] == nil && f["qp_evidence"] == nil:
		default:
			t.Errorf("source_qp %v, qp_state %v and qp_evidence %v don't go together", f["source_qp"], state, f["qp_evidence"])
		}
		if transport := f["transport"]; transport != "RC" && transport != "UD" {
			t.Errorf("transport is %q", transport)
		}
		notifications += len(f["notifications"].(map[string]any))
	}
	if notifications == 0 {
		t.Error("no sender was notified, which the scenario is about")
	}
}

// TestSameInputSameOutput: octet for octet.
func TestSameInputSameOutput(t *testing.T) {
	for _, s := range some(congested(t)) {
		a, b := replayed(t, s), replayed(t, s)
		var ra, rb bytes.Buffer
		if err := a.report.Write(&ra); err != nil {
			t.Fatal(err)
		}
		if err := b.report.Write(&rb); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a.forwardedPcap, b.forwardedPcap) || !bytes.Equal(a.emittedPcap, b.emittedPcap) || !bytes.Equal(ra.Bytes(), rb.Bytes()) {
			t.Errorf("%s: two replays differ", s.name)
		}
	}
}
