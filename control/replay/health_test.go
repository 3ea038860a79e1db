package replay_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/control/replay"
	"github.com/cnpgate/cnpgate/health"
)

func healthOf(t *testing.T, path string) *health.Report {
	t.Helper()
	r, _ := healthOfAll(t, path)
	return r
}

// healthOfAll judges the files of a capture, and returns how many frames they have, too.
func healthOfAll(t *testing.T, names ...string) (r *health.Report, frames int) {
	t.Helper()
	c, err := replay.OpenAll(names, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if r, err = diagnosed(c, replay.HealthOptions{}); err != nil {
		t.Fatal(err)
	}
	return r, c.Frames
}

// diagnosed is the report of a diagnosis.
func diagnosed(c *replay.Capture, o replay.HealthOptions) (*health.Report, error) {
	d, err := replay.Diagnose(c, o)
	if err != nil {
		return nil, err
	}
	return d.Report, nil
}

// TestHealthyCaptures: nothing is wrong with them.
func TestHealthyCaptures(t *testing.T) {
	all, err := filepath.Glob("../../testdata/captures/*.pcap")
	if err != nil || len(all) < 9 {
		t.Fatal(all, err)
	}
	for _, path := range all {
		t.Run(filepath.Base(path), func(t *testing.T) {
			r := healthOf(t, path)
			if r.Summary.Connections == 0 {
				t.Error("no connection is followed")
			}
			// In one, Soft-RoCE times out twice although nothing is lost.
			if resent := r.Summary.Retransmitted.Packets; len(r.Verdicts) != 0 || resent > 5 || resent > 0 && !strings.Contains(path, "rc_pingpong_v6") {
				t.Errorf("verdicts: %+v\nretransmitted %+v", r.Verdicts, r.Summary.Causes)
			}
		})
	}
}
