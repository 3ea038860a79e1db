package scenario_test

import (
	"flag"
	"fmt"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/internal/testkit/effort"
	"github.com/cnpgate/cnpgate/sim"
	"github.com/cnpgate/cnpgate/sim/scenario"
)

var updateFleet = flag.Bool("update-fleet", false, "write the table of docs/fleet.md")

// tabled compares the row of the table in docs/fleet.md that begins with a network's name: notifications, lost packets and goodput without the fleet, and with it.
func tabled(t *testing.T, network string, alone, together *sim.Result) {
	t.Helper()
	const page = "../../docs/fleet.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	row := fmt.Sprintf("| %s | %d, %d | %d, %d | %.2f, %.2f |", network, alone.Sent, together.Sent, alone.Dropped, together.Dropped, alone.All.Goodput/1e9, together.All.Goodput/1e9)
	old := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(network) + ` \|.*$`).Find(text)
	if *updateFleet && old != nil {
		err = os.WriteFile(page, []byte(strings.Replace(string(text), string(old), row, 1)), 0o600)
	}
	if err != nil || old == nil || string(old) != row && !*updateFleet {
		t.Errorf("%s has %q, expected (%v; scripts/figures writes it) %s", page, old, err, row)
	}
}

const series = `name: series
length: 100ms
topology:
  dumbbell:
    senders: 4
    receivers: 1
    rate: 25Gbps
    spans:
      - {rate: %NEAR%, delay: 100us, gateway: near}
      - {rate: 25Gbps, delay: 1ms, gateway: far}
gateways: {near: {}, far: {}}
traffic:
  - incast: {from: 0-3, to: 4, bytes: 30MB}
`

const lag = `name: lag
length: 60ms
topology: {dumbbell: {senders: 16, receivers: 16, rate: 25Gbps, spans: [{rate: %RATE%, delay: 500us, gateway: edge, paths: %PATHS%}]}}
gateways: {edge: {source_qps: known}}
traffic: [%TRAFFIC%]
`

// TestFleetSame: a simulated fleet of four gateways does the same in each run, to the last message.
func TestFleetSame(t *testing.T) {
	s := builtIn(t, "four-gateways", "length=30ms")
	first, again := run(t, s, scenario.StandardCNP), run(t, s, scenario.StandardCNP)
	if first.Fleet == nil || first.Fleet.Messages == 0 || *first.Fleet != *again.Fleet || first.All != again.All {
		t.Errorf("%+v, %+v; then %+v, %+v", first.Fleet, first.All, again.Fleet, again.All)
	}
}

// TestFleetInSeries: two gateways on one path that tell each other whom they have notified lose no more than without that, and send about as many notifications: over several seeds, the mean is
// within 7 %, and that of one seed within a fifth. The second bottleneck has half of the rate of the first, or little less.
func TestFleetInSeries(t *testing.T) {
	const most = 1.2
	for _, c := range []struct {
		near string
		r    scenario.Response
	}{
		{"50Gbps", scenario.StandardCNP}, {"50Gbps", scenario.LongHaulCNP}, {"30Gbps", scenario.StandardCNP}, {"30Gbps", scenario.LongHaulCNP},
	} {
		text := strings.Replace(series, "%NEAR%", c.near, 1)
		alone := run(t, parse(t, text), c.r)
		together := run(t, parse(t, text+"fleet: {delay: 200us}\n"), c.r)
		tabled(t, fmt.Sprintf("two in series, the first of %s, %v", c.near, c.r), alone.Result, together.Result)
		lossy := run(t, parse(t, text+"fleet: {delay: 5ms, jitter: 5ms, loss: 0.3}\n"), c.r)
		for _, o := range []struct {
			name string
			*sim.Result
		}{{"alone", alone.Result}, {"fleet", together.Result}, {"slow and lossy bus", lossy.Result}} {
			t.Logf("%s, %v, %s: %d notifications, %d packets dropped, goodput %.2f Gbit/s, peak queue %d; %+v",
				c.near, c.r, o.name, o.Sent, o.Dropped, o.All.Goodput/1e9, o.Gateway.Peak, o.Fleet)
			if o.Dropped > alone.Dropped || o.All.Goodput < .99*alone.All.Goodput || float64(o.Sent) > most*float64(alone.Sent) {
				t.Errorf("%s, %v, %s: %d notifications, %d dropped, %.2f Gbit/s; alone %d, %d, %.2f", c.near, c.r, o.name,
					o.Sent, o.Dropped, o.All.Goodput/1e9, alone.Sent, alone.Dropped, alone.All.Goodput/1e9)
			}
		}
	}
}

// TestFleetLAG: four gateways, each in front of one link of a LAG, have together the fair rate of one gateway in front of all of it.
func TestFleetLAG(t *testing.T) {
	var traffic []string
	for from, to := range []int{2, 8, 12, 3, 15, 13, 1, 7, 9, 5, 6, 11, 14, 10, 0, 4} { // the hash gives each link four of them
		traffic = append(traffic, fmt.Sprintf("{incast: {from: %d, to: %d, bytes: 1GB}}", from, 16+to))
	}
	fair := func(rate, paths, fleet string) (all []float64) {
		text := strings.NewReplacer("%RATE%", rate, "%PATHS%", paths, "%TRAFFIC%", strings.Join(traffic, ", ")).Replace(lag)
		o := run(t, parse(t, text+fleet), scenario.LongHaulCNP)
		for _, p := range o.Series.Ports {
			sum, settled := 0.0, p.Fair[len(p.Fair)/2:]
			for _, f := range settled {
				sum += float64(f)
			}
			all = append(all, sum/float64(len(settled)))
		}
		t.Logf("%s paths of %s, %q: F %.3g, %d notifications, %d dropped, %.2f Gbit/s", paths, rate, fleet, all, o.Sent, o.Dropped, o.All.Goodput/1e9)
		return all
	}
	one, buses := fair("100Gbps", "1", "")[0], map[string]float64{"{bottleneck: true}": .035}
	if thorough {
		buses["{bottleneck: true, delay: 1ms, jitter: 1ms, loss: 0.1}"] = .05
	}
	for bus, most := range buses {
		for i, f := range fair("25Gbps", "4", "fleet: "+bus+"\n") {
			if math.Abs(f/one-1) > most {
				t.Errorf("%s: F of gateway %d is %.3f Gbit/s, that of one box %.3f", bus, i, f/1e9, one/1e9)
			}
		}
	}
}

// TestFleetECMP: four gateways, few of which see both directions of a connection, lose nothing if they share what they see, because they learn
// whom to notify before a queue is full.
func TestFleetECMP(t *testing.T) {
	length := fmt.Sprintf("length=%dms", 500*effort.Short+500*effort.Race+3000*effort.Long)
	together := run(t, builtIn(t, "four-gateways", length), scenario.LongHaulCNP)
	alone := run(t, builtIn(t, "four-gateways", length, "fleet.loss=1"), scenario.LongHaulCNP)
	if !thorough {
		tabled(t, "four that learn QPs, on paths of ECMP, long-haul-cnp", alone.Result, together.Result)
	}
	for name, o := range map[string]*scenario.Outcome{"shared": together, "not shared": alone} {
		t.Logf("%s: %d notifications, %d packets dropped, goodput %.2f Gbit/s, %d of %d flows finished, %d failed",
			name, o.Sent, o.Dropped, o.All.Goodput/1e9, o.All.Finished, o.All.Flows, o.All.Failed)
	}
	if together.Dropped > 0 || together.All.Failed > 0 || alone.Dropped == 0 {
		t.Error("what the gateways share makes too little difference")
	}
}
