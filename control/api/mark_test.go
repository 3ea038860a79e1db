package api

import (
	"net/http"
	"testing"

	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/telemetry"
)

// TestMark: counters since a mark are those of the frames since, and gauges are present values.
func TestMark(t *testing.T) {
	g := newGate(t, 1)
	frame := testkit.RoCE{Src: "10.1.0.1", Dst: "10.9.0.9", DestQP: 100}
	g.see(t, 0, 0, frame, frame, frame)
	g.want(t, http.MethodGet, CountersSinceMark, "", 409, "no counters are marked since the gateway started; mark them: cnpgate show counters --mark, or POST /v1/mark")
	g.want(t, http.MethodGet, CountersPath+"?since=boot", "", 400, `since is \"boot\"; expected mark`)
	client := NewClient(g.path)
	m, err := Do[Mark](t.Context(), client, http.MethodPost, MarkPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, more := range []int{0, 2} {
		for range more {
			g.see(t, 0, 0, frame)
		}
		c, err := Get[report.Counters](t.Context(), client, CountersSinceMark)
		if err != nil || c.Mark == nil || !c.Mark.Equal(m.Time) {
			t.Fatalf("%+v, %v", c, err)
		}
		for _, values := range []telemetry.Values{c.Counters, c.Ports[0].Counters} {
			if got := values.Sum(telemetry.ReceivedPackets); got != uint64(more) {
				t.Errorf("%d packets since the mark, want %d", got, more)
			}
		}
		if got := c.Counters.Sum(telemetry.FlowsKnown); got != 1 {
			t.Errorf("%d flows, want 1", got)
		}
	}
	if c, err := Get[report.Counters](t.Context(), client, CountersPath); err != nil || c.Mark != nil || c.Counters.Sum(telemetry.ReceivedPackets) != 5 {
		t.Errorf("without a mark: %+v, %v", c, err)
	}
}
