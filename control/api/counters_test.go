package api

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/telemetry"
)

// TestCounters: what a running gateway has counted, and what its devices have where somebody reads them, also through the client.
func TestCounters(t *testing.T) {
	g := scene(t)
	_, _, text := g.ask(t, http.MethodGet, CountersPath, "")
	var c report.Counters
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	received := c.Counters.Sum(telemetry.ReceivedPackets)
	if len(c.Ports) != 2 || received == 0 || c.Ports[0].Counters.Sum(telemetry.ReceivedPackets)+c.Ports[1].Counters.Sum(telemetry.ReceivedPackets) != received {
		t.Errorf("%s", text)
	}
	g.want(t, http.MethodGet, CountersPath+"?port=dc", "", 400, "no parameter")
	read, err := Get[report.Counters](context.Background(), NewClient(g.path), CountersPath)
	if err != nil || read.Gateway != c.Gateway || read.Counters.Sum(telemetry.ReceivedPackets) != received {
		t.Errorf("%+v, %v", read, err)
	}
}
