package replay_test

import (
	"fmt"
	"testing"
)

// TestPairsEveryCapture: without a map, every flow of a connection with traffic both ways ends confirmed with the true source QP, and no
// flow of any capture ends confirmed with a wrong one, whoever is on which side of the gateway.
func TestPairsEveryCapture(t *testing.T) {
	by := map[string]int{}
	for _, c := range captures(t) {
		for _, s := range sides[:2] {
			t.Run(c.name+"/"+s.name, func(t *testing.T) {
				r := replayed(t, &scenario{path: c.path, fabric: s.fabric, config: wire})
				truth, left := trueSources(c), trueSources(c)
				for _, f := range r.report.Flows {
					key := fmt.Sprint(f.SourceIP, " to ", f.DestinationIP, " QP ", f.DestinationQP)
					if f.DestinationQP == 1 {
						continue
					}
					want, ok := truth[key]
					switch {
					case !ok:
						t.Errorf("%s: a flow that the capture's truth doesn't have", key)
					case f.QPState != "confirmed" || f.SourceQP == nil:
						t.Errorf("%s is %s, want it confirmed with QP %d; it has %d packets", key, f.QPState, want, f.Packets)
					case *f.SourceQP != want:
						t.Errorf("%s is confirmed with QP %d by %s, the truth is %d", key, *f.SourceQP, *f.QPEvidence, want)
					default:
						by[*f.QPEvidence]++
					}
					if f.QPConflicts != 0 {
						t.Errorf("%s has %d contradictions", key, f.QPConflicts)
					}
					if f.QPPackets == 0 || f.QPPackets > f.Packets {
						t.Errorf("%s took %d of %d packets", key, f.QPPackets, f.Packets)
					}
					delete(left, key)
				}
				for key := range left {
					t.Errorf("%s: no such flow was reported", key)
				}
			})
		}
	}
	for _, evidence := range []string{"cm", "port", "deth"} {
		if by[evidence] == 0 {
			t.Errorf("nothing was confirmed by %s: %v", evidence, by)
		}
	}
	t.Logf("flows confirmed: %v", by)
}

// trueSources is the source QP of every flow of a capture's connections.
func trueSources(c capture) map[string]uint32 {
	m := map[string]uint32{}
	for _, q := range c.truth.Connections {
		m[fmt.Sprint(q.ClientIP, " to ", q.ServerIP, " QP ", q.ServerQPN)] = q.ClientQPN
		m[fmt.Sprint(q.ServerIP, " to ", q.ClientIP, " QP ", q.ClientQPN)] = q.ServerQPN
	}
	return m
}
