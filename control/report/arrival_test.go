package report

import (
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/notify"
	"github.com/cnpgate/cnpgate/dataplane/respond"
	"github.com/cnpgate/cnpgate/dataplane/trace"
	"github.com/cnpgate/cnpgate/internal/units"
	"pgregory.net/rapid"
)

// TestArrivalOfPort: nothing that is shown of a flow says that it arrives faster than its port receives, whatever a worker has measured after a pause; a
// lower rate is shown as it is.
func TestArrivalOfPort(t *testing.T) {
	c, err := config.Parse("gw.yaml", []byte(`gateway: {name: gw, ipv4: 192.0.2.1}
ports:
  - {name: dc, device: d0, role: fabric, peer: wan, rate: 1Gbps}
  - {name: wan, device: d1, role: wan, peer: dc, rate: 100Mbps}
`))
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		mbps := rapid.Uint64Range(1, 5000).Draw(t, "rate in Mbps")
		measured, want := units.Rate(mbps*1e6), units.Rate(min(mbps, 1000)*1e6)
		r := notify.NotificationRecord{Message: notify.Message{Out: 1, Cause: congestion.ByDepth, FlowRate: mbps * 125, FairRate: 12_500}}
		now := uint64(8_000_000)
		e := Explained{Config: c, Flow: &dataplane.FlowRecord{}, Standing: &respond.Standing{Law: true, Congested: true, Rate: mbps * 1e6}, Rate: &now}
		n := MakeNotification(c, 0, &r, false)
		for view, text := range map[string]string{
			"notification": n.Why, "share": e.share().Text, "since": e.since(&r),
			"packet": rates(c, &trace.PacketRecord{Fair: 0.0125, Rate: float64(mbps) / 8000}),
		} {
			if !strings.Contains(text, " "+want) || measured != want && strings.Contains(text, measured) {
				t.Errorf("%s: a flow of %d Mbps at a port of 1 Gbps: %s, want %s", view, mbps, text, want)
			}
		}
		if *n.FlowRate > 1e9 {
			t.Errorf("%d bit/s", *n.FlowRate)
		}
	})
}
