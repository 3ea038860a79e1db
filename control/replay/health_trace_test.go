package replay_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/internal/testkit/lossypath"
	"github.com/cnpgate/cnpgate/internal/testkit/pcap"
)

// TestHealthOfTraces: the causes in captures of Soft-RoCE over a path that lost packets, whose truth TestHealthOfSoftRoCE (internal/testkit/guest) has
// recorded. Each run gives three captures: in the middle of the path, where the packets were lost, and at either host.
func TestHealthOfTraces(t *testing.T) {
	all, err := filepath.Glob("../../testdata/health/*.trace")
	if err != nil || len(all) != len(traceVerdicts) {
		t.Fatal(all, err)
	}
	for _, path := range all {
		name := strings.TrimSuffix(filepath.Base(path), ".trace")
		for at, place := range []string{"host0", "host1", "middle"} {
			t.Run(name+"/"+place, func(t *testing.T) {
				truth, file := captureOf(t, path, lossypath.Place(at))
				r := healthOf(t, file)
				checkCauses(t, truth, r)
				if lossypath.Place(at) == lossypath.Middle {
					checkVerdicts(t, r, traceVerdicts[name])
				}
			})
		}
	}
}

// traceVerdicts are the expected verdicts for the captures taken in the middle.
var traceVerdicts = map[string][]string{
	"healthy_write": nil, "healthy_send": nil, "healthy_read": nil, "long_timeout": nil,
	"loss_before": {health.LossUpstream}, "loss_behind": {health.LossDownstream}, "acks_lost": {health.AckLoss}, "acks_lost_before": {health.LossDownstream},
	"loss_everywhere":    {health.LossUpstream, health.LossDownstream, health.AckLoss},
	"loss_bidirectional": {health.LossUpstream, health.LossDownstream},
	"read_loss":          {health.LossDownstream}, "read_loss_before": {health.LossUpstream},
	"read_loss_everywhere": {health.LossUpstream, health.LossDownstream},
	"read_loss_alone":      {health.LossDownstream}, "read_short_timeout": {health.ShortTimeOut}, "read_reordered": {health.LossDownstream}, "reordered_repeats": {health.Unexplained},
	"reordered": {health.Reordering}, "reordered_behind": {health.Unexplained},
	"rnr": {health.NotReady}, "rnr_loss": {health.NotReady, health.LossUpstream, health.LossDownstream}, "short_timeout": {health.ShortTimeOut},
	"short_timeout_acks_lost":  {health.ShortTimeOut, health.LossDownstream},
	"read_short_timeout_alone": {health.ShortTimeOut}, "read_loss_busy": {health.LossUpstream}, "read_reordered_busy": {health.LossDownstream}, "reordered_busy": {health.Unexplained}, "reordered_overtaken": {health.Reordering}, "reordered_first": {health.Unexplained},
}

// checkVerdicts: these verdicts, and no others.
func checkVerdicts(t *testing.T, r *health.Report, want []string) {
	t.Helper()
	var got []string
	for _, v := range r.Verdicts {
		if !slices.Contains(got, v.Name) {
			got = append(got, v.Name)
		}
	}
	want = slices.Clone(want)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("verdicts %v, want %v", got, want)
	}
}

// captureOf makes a trace's capture at a place.
func captureOf(t *testing.T, path string, at lossypath.Place) (truth *lossypath.Truth, file string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	trace, err := lossypath.ReadTrace(f)
	if err != nil {
		t.Fatal(err)
	}
	file, write, end := pcap.Create(t, 96)
	truth = trace.Replay(at, func(now int64, frame []byte) { write(now, frame, len(frame)) })
	end()
	return truth, file
}
