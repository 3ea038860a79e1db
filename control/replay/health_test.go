package replay_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/control/replay"
	"github.com/cnpgate/cnpgate/health"
)

func healthOf(t *testing.T, path string) *health.Report {
	t.Helper()
	c, err := replay.OpenCooked(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r, err := replay.Health(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestHealthyCaptures: nothing is wrong with them.
func TestHealthyCaptures(t *testing.T) {
	all, err := filepath.Glob("../../testdata/captures/*.pcap*")
	if err != nil || len(all) < 10 {
		t.Fatal(all, err)
	}
	for _, path := range all {
		t.Run(filepath.Base(path), func(t *testing.T) {
			r := healthOf(t, path)
			if r.Summary.Connections == 0 {
				t.Error("no connection is followed")
			}
			if strings.Contains(path, "congested") { // half of it was lost behind the capture, and the queue there held up to 800 ms
				names := ""
				for _, v := range r.Verdicts {
					names += v.Name + " "
				}
				if !strings.Contains(names, health.LossDownstream) || !strings.Contains(names, health.ShortTimeOut) || strings.Contains(names, health.LossUpstream) {
					t.Errorf("verdicts %s", names)
				}
				return
			}
			// In one, Soft-RoCE times out twice although nothing is lost.
			if resent := r.Summary.Retransmitted.Packets; len(r.Verdicts) != 0 || resent > 5 || resent > 0 && !strings.Contains(path, "rc_pingpong_v6") {
				t.Errorf("verdicts: %+v\nretransmitted %+v", r.Verdicts, r.Summary.Causes)
			}
		})
	}
}

// TestHealthOfKernelCaptures: the causes in captures of Soft-RoCE over a path that lost packets, whose truth TestHealthOfSoftRoCE (internal/testkit/guest) has
// written beside them.
func TestHealthOfKernelCaptures(t *testing.T) {
	all, err := filepath.Glob("../../testdata/health/*.json")
	if err != nil || len(all) < 2 {
		t.Fatal(all, err)
	}
	for _, path := range all {
		t.Run(filepath.Base(path), func(t *testing.T) {
			var truth struct {
				Causes  map[string]uint64
				Verdict string
			}
			b, err := os.ReadFile(path)
			if err == nil {
				err = json.Unmarshal(b, &truth)
			}
			if err != nil {
				t.Fatal(err)
			}
			r := healthOf(t, strings.TrimSuffix(path, ".json")+".pcap")
			right, resent := uint64(0), uint64(0)
			for cause, n := range truth.Causes {
				right += min(n, r.Summary.Causes[cause].Packets)
				resent += n
			}
			found := truth.Verdict == ""
			for _, v := range r.Verdicts {
				found = found || v.Name == truth.Verdict
			}
			if right*100 < resent*98 || r.Summary.Causes["spurious"].Packets > truth.Causes["spurious"] || !found {
				t.Errorf("got %v, want %v and %s; verdicts %+v", r.Summary.Causes, truth.Causes, truth.Verdict, r.Verdicts)
			}
		})
	}
}
