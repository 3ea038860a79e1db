package scenario_test

import (
	"testing"

	"github.com/cnpgate/cnpgate/sim"
	"github.com/cnpgate/cnpgate/sim/scenario"
)

const series = `name: series
length: 100ms
topology:
  dumbbell:
    senders: 4
    receivers: 1
    rate: 25Gbps
    spans:
      - {rate: 50Gbps, delay: 100us, gateway: near}
      - {rate: 25Gbps, delay: 1ms, gateway: far}
gateways: {near: {}, far: {}}
traffic:
  - incast: {from: 0-3, to: 4, bytes: 30MB}
`

const lag = `name: lag
length: 30ms
topology: {dumbbell: {senders: 16, receivers: 16, rate: 25Gbps, spans: [{rate: %RATE%, delay: 500us, gateway: edge, paths: %PATHS%}]}}
gateways: {edge: {source_qps: known}}
traffic: [%TRAFFIC%]
`

// TestFleetInSeries: two gateways on one path that tell each other whom they have notified send fewer notifications, and no more is lost.
func TestFleetInSeries(t *testing.T) {
	for _, r := range []scenario.Response{scenario.StandardCNP, scenario.LongHaulCNP} {
		alone := run(t, parse(t, series), r)
		together := run(t, parse(t, series+"fleet: {delay: 200us}\n"), r)
		lossy := run(t, parse(t, series+"fleet: {delay: 5ms, jitter: 5ms, loss: 0.3}\n"), r)
		if r == scenario.LongHaulCNP && together.Sent > alone.Sent*4/5 {
			t.Errorf("%d notifications with the fleet, %d without", together.Sent, alone.Sent)
		}
		for _, o := range []struct {
			name string
			*sim.Result
		}{{"alone", alone.Result}, {"fleet", together.Result}, {"slow and lossy bus", lossy.Result}} {
			t.Logf("%v, %s: %d notifications, %d packets dropped, goodput %.2f Gbit/s, peak queue %d; %+v", r, o.name, o.Sent, o.Dropped, o.All.Goodput/1e9, o.Gateway.Peak, o.Fleet)
		}
		for _, o := range []*sim.Result{together.Result, lossy.Result} {
			if o.Dropped > alone.Dropped || o.All.Goodput < .99*alone.All.Goodput || o.Sent > alone.Sent+alone.Sent/50 {
				t.Errorf("%v: %d notifications, %d dropped, %.2f Gbit/s; alone %d, %d, %.2f", r, o.Sent, o.Dropped, o.All.Goodput/1e9, alone.Sent, alone.Dropped, alone.All.Goodput/1e9)
			}
		}
	}
}
