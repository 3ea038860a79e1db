package scenario_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/internal/testkit/effort"
	"github.com/cnpgate/cnpgate/sim/scenario"
)

// possible is the part of a line's rate that is payload at an MTU of 4096.
const possible = 0.9757

// flowTakes is usual, ms.
const flowTakes = 25*effort.Short + 25*effort.Race + 40*effort.Long

// network is one incast through a gateway with its defaults.
type network struct {
	name       string
	flows, wan int     // Gbps
	rtt        float64 // ms
	delay      float64 // us, of each short link: a quarter of the control loop
	loop       int     // us, between two polls
	workers    int
	least      float64 // of the possible goodput
	host       int     // Gbps
	fair       bool
	dcqcn      string
	takes      int // ms, until all flows have ended if the WAN is full; 0: flowTakes
}

// TestLaw: with its defaults, a gateway fills the WAN and loses nothing.
func TestLaw(t *testing.T) {
	const clamp, noClamp = "clamp_target: true", "clamp_target: false"
	for i, n := range []network{
		{name: "8 flows", flows: 8, wan: 100, rtt: 10, least: 0.95, fair: true},
		{name: "8 flows, clamp", flows: 8, wan: 100, rtt: 10, least: 0.95, fair: true, dcqcn: clamp},
		{name: "2 flows", flows: 2, wan: 10, rtt: 1, least: 0.95, fair: true},
		{name: "32 flows", flows: 32, wan: 100, rtt: 3, least: 0.92},
		{name: "64 flows of 25G", flows: 64, wan: 100, host: 25, rtt: 5, least: 0.92},
		{name: "400G", flows: 8, wan: 400, rtt: 2, least: 0.92},
		{name: "a loop of 100 us", flows: 8, wan: 100, rtt: 10, delay: 25, least: 0.92},
		{name: "a loop of 200 us", flows: 8, wan: 100, rtt: 10, delay: 50, least: 0.92},
		{name: "a loop of 200 us, no clamp", flows: 8, wan: 100, rtt: 10, delay: 50, least: 0.92, dcqcn: noClamp},
		{name: "polled each 100 us", flows: 8, wan: 100, rtt: 10, loop: 100, least: 0.92, dcqcn: clamp},
		{name: "slow NICs", flows: 8, wan: 100, rtt: 10, least: 0.95, dcqcn: "rate_timer: 300us, additive_increase: 5Mbps, hyper_increase: 50Mbps"},
		{name: "slow NICs, clamp", flows: 8, wan: 100, rtt: 10, least: 0.95, dcqcn: "rate_timer: 300us, additive_increase: 5Mbps, hyper_increase: 50Mbps, " + clamp},
	} {
		responses := []scenario.Response{scenario.StandardCNP, scenario.LongHaulCNP, scenario.PPFC}
		if n.delay > 0 || n.loop > 0 {
			responses = responses[:2] // pauses need a short loop
		}
		for _, r := range inTurn(i, responses) {
			t.Run(n.name+"/"+r.String(), func(t *testing.T) {
				t.Parallel()
				n.check(t, r)
			})
		}
	}
}

// TestLongLoop: with a control loop of 1 ms, which is too long for it, the law has the goodput of thresholds, whose queue is up to 23 ms long, loses no more, and is fair.
func TestLongLoop(t *testing.T) {
	for i, host := range []int{25, 100} {
		for _, r := range inTurn(i, []scenario.Response{scenario.StandardCNP, scenario.LongHaulCNP}) {
			t.Run(fmt.Sprintf("%dG/%s", host, r), func(t *testing.T) {
				t.Parallel()
				n := network{flows: 8, host: host, wan: 100, rtt: 10, delay: 250, takes: 40}
				law := run(t, parse(t, n.text()), r)
				old := run(t, parse(t, n.text(), "gateways.west.config.profiles.default.mode=thresholds"), r)
				if law.All.Goodput < 0.97*old.All.Goodput || law.Dropped > old.Dropped || law.Jain < 0.98 {
					t.Errorf("goodput is %.1f Gbps, with thresholds %.1f; %d packets were lost, and %d; Jain's index is %.3f",
						law.All.Goodput/1e9, old.All.Goodput/1e9, law.Dropped, old.Dropped, law.Jain)
				}
			})
		}
	}
}

// inTurn are all responses in the longer mode; else it is one of them, another one for the next network.
func inTurn(i int, responses []scenario.Response) []scenario.Response {
	if thorough {
		return responses
	}
	return responses[i%len(responses):][:1]
}

// flowMB is the size of a flow.
func (n *network) flowMB() int {
	return max(1, int(float64(n.wan)*possible*1e6*float64(cmp.Or(n.takes, flowTakes))/8/float64(n.flows)/1e6))
}

// ideal is the goodput if the WAN is always full, bit/s.
func (n *network) ideal() float64 {
	bits := float64(n.flowMB()) * 8e6 * float64(n.flows)
	return bits / (bits/(float64(n.wan)*1e9*possible) + n.rtt*1e-3)
}

// text is the scenario.
func (n *network) text() string {
	traffic := ""
	for i := range n.flows {
		traffic += fmt.Sprintf("  - incast: {from: %d, to: %d, bytes: %dMB}\n", i, n.flows+i, n.flowMB())
	}
	return fmt.Sprintf(`name: law
length: 300ms
topology: {dumbbell: {senders: %d, receivers: %d, rate: %dGbps, delay: %gus, spans: [{rate: %dGbps, delay: %gms, gateway: west}]}}
hosts: {dcqcn: {%s}}
gateways: {west: {loop: %dus, workers: %d}}
traffic:
%s`, n.flows, n.flows, cmp.Or(n.host, 100), cmp.Or(n.delay, 1), n.wan, n.rtt/2, n.dcqcn, max(n.loop, 1), max(n.workers, 1), traffic)
}

func (n *network) check(t *testing.T, r scenario.Response) {
	o := run(t, parse(t, n.text()), r)
	if ideal := n.ideal(); o.Dropped != 0 || o.All.Goodput < n.least*ideal {
		t.Errorf("goodput is %.3f of the possible one, want %.2f; %d packets were lost; the queue's peak was %d", o.All.Goodput/ideal, n.least, o.Dropped, o.Gateway.Peak)
	}
	if n.fair && o.Jain < 0.98 {
		t.Errorf("Jain's index is %.3f", o.Jain)
	}
}

// TestLawBuiltIn: the built-in scenarios with a bottleneck of 100 Gbps in which gateways have their defaults.
func TestLawBuiltIn(t *testing.T) {
	type least = map[scenario.Response]float64
	const cnp, fast, longHaul, ppfc = scenario.StandardCNP, scenario.FastCNP, scenario.LongHaulCNP, scenario.PPFC
	const longest = 16e6 // bytes of the queue in 99 of 100 samples, where the senders are near
	for i, c := range []struct {
		name   string
		rtt    float64 // s
		bits   float64
		equals bool // flows are equal
		least  least
	}{
		{"incast-1ms", 1e-3, 6.4e9, true, least{cnp: 0.95, fast: 0.95, longHaul: 0.97, ppfc: 0.95}},
		{"incast-10ms", 10e-3, 6.4e9, true, least{cnp: 0.95, fast: 0.95, longHaul: 0.97, ppfc: 0.95}},
		{"incast-40ms", 40e-3, 6.4e9, true, least{cnp: 0.95, fast: 0.95, longHaul: 0.97, ppfc: 0.95}},
		{"legacy-mix", 10e-3, 6.4e9, true, least{cnp: 0.95, longHaul: 0.97}},
		{"two-gateways", 5e-3, 6.4e9, true, least{cnp: 0.85, fast: 0.85, longHaul: 0.95}},
		{"many-hosts", 5e-3, 4.096e9, true, least{cnp: 0.95, fast: 0.95, longHaul: 0.97, ppfc: 0.95}},
		{"slow-nics", 10e-3, 6.4e9, true, least{cnp: 0.95, longHaul: 0.97}},
		{"start-and-end", 10e-3, 5.728e9, false, least{cnp: 0.88, fast: 0.88, longHaul: 0.95}},
	} {
		if !thorough && slices.Contains([]string{"incast-1ms", "incast-10ms", "slow-nics"}, c.name) {
			continue // TestLaw has such networks
		}
		for _, r := range inTurn(i, slices.Sorted(maps.Keys(c.least))) {
			t.Run(c.name+"/"+r.String(), func(t *testing.T) {
				t.Parallel()
				o := run(t, builtIn(t, c.name), r)
				ideal := c.bits / (c.bits/(100e9*possible) + c.rtt)
				if o.Dropped != 0 || o.All.Goodput < c.least[r]*ideal || c.equals && o.Jain < 0.98 {
					t.Errorf("goodput is %.3f of the possible one, want %.2f; %d packets were lost; Jain's index is %.3f", o.All.Goodput/ideal, c.least[r], o.Dropped, o.Jain)
				}
				if o.Gateway.P99 > longest && c.name != "two-gateways" {
					t.Errorf("the queue's 99th percentile is %d", o.Gateway.P99)
				}
			})
		}
	}
}

// TestManyQPs: senders with eight QPs each fill the WAN as those with one do. Each QP has a small part of its sender's rate, which grows and falls while the others' do the
// opposite, and shows late whether the sender reacts.
func TestManyQPs(t *testing.T) {
	traffic := strings.Repeat("{incast: {from: 0-7, to: 8, bytes: 12500KB}},", 8)
	o := run(t, builtIn(t, "incast-10ms", "traffic=["+traffic+"]"), scenario.StandardCNP)
	if o.Dropped != 0 || o.All.Goodput < 0.95*o.Possible {
		t.Errorf("goodput is %.1f of %.1f Gbps; %d packets were lost", o.All.Goodput/1e9, o.Possible/1e9, o.Dropped)
	}
}

// TestUnequalQPs: three senders that obey, with one QP, 64 and many, have equal rates, unless standard CNPs can't slow down so many QPs (endpoint.TestCNPForEachPacket).
func TestUnequalQPs(t *testing.T) {
	for i, c := range []struct {
		qps   int
		least float64 // of Jain's index of senders with standard CNPs
	}{{100, 0.95}, {1000, 0.9}} {
		for _, r := range inTurn(i, []scenario.Response{scenario.StandardCNP, scenario.LongHaulCNP}) {
			t.Run(fmt.Sprintf("%d/%v", c.qps, r), func(t *testing.T) {
				t.Parallel()
				if r == scenario.LongHaulCNP {
					c.least = 0.97
				}
				o := run(t, parse(t, fmt.Sprintf(`name: qps
length: 300ms
topology: {dumbbell: {senders: 3, receivers: 3, rate: 100Gbps, spans: [{rate: 100Gbps, delay: 500us, gateway: west}]}}
gateways: {west: {}}
responses: [standard-cnp, long-haul-cnp]
traffic: [{incast: {from: 0, to: 3, bytes: 256MiB}}, {incast: {from: 1, to: 4, bytes: 256MiB, qps: 64}}, {incast: {from: 2, to: 5, bytes: 256MiB, qps: %d}}]
`, c.qps)), r)
				if o.Dropped > 0 || o.Senders < c.least || o.All.Finished < o.All.Flows {
					t.Errorf("Jain's index of senders is %.3f, expected %g; %d packets were lost; %d of %d flows ended", o.Senders, c.least, o.Dropped, o.All.Finished, o.All.Flows)
				}
			})
		}
	}
}

// TestSeries: the samples of a gateway's port have the law's fair rate, which is an equal share once flows have settled, and its reference; each
// notification is one to a sender.
func TestSeries(t *testing.T) {
	o := run(t, builtIn(t, "incast-1ms", "length=20ms"), scenario.LongHaulCNP)
	s := o.Series
	if len(s.Ports) != 1 || s.Ports[0].Gateway != "west" || s.Ports[0].Reference != 4e6 {
		t.Fatalf("ports %+v", s.Ports)
	}
	fair, n := 0.0, 0
	for _, f := range s.Ports[0].Fair[len(s.Ports[0].Fair)/2:] {
		fair, n = fair+float64(f), n+1
	}
	if fair /= float64(n); fair < 11e9 || fair > 17e9 {
		t.Errorf("F is %.1f Gbps, for 8 flows over 100 Gbps", fair/1e9)
	}
	asked := int64(0)
	for _, sender := range s.Asked {
		for _, n := range sender {
			asked += n
		}
	}
	if last := s.Notified[len(s.Notified)-1]; asked != last || last == 0 {
		t.Errorf("senders were notified %d times, gateways sent %d notifications", asked, last)
	}
}

// TestLawDrawn: whatever the number of flows, the rates, the round-trip time and the control loop, a gateway with its defaults fills the WAN, loses nothing and is fair.
func TestLawDrawn(t *testing.T) {
	r := rand.New(rand.NewPCG(25, 1))
	for i := range drawnNetworks {
		n := drawNetwork(r)
		for _, response := range inTurn(i, []scenario.Response{scenario.StandardCNP, scenario.LongHaulCNP}) {
			t.Run(n.name+"/"+response.String(), func(t *testing.T) {
				t.Parallel()
				n.check(t, response)
			})
		}
	}
}

// drawNetwork draws an incast that a gateway can handle: what comes until senders can have reacted, and a little longer, fits into half of the queue.
func drawNetwork(r *rand.Rand) network {
	between := func(least, most float64) float64 { return least * math.Pow(most/least, r.Float64()) }
	hosts := []int{10, 25, 40, 50, 100, 200, 400} // Gbps
	for {
		n := network{
			flows: int(between(2, 64)), host: hosts[r.IntN(len(hosts))], wan: int(between(10, 400)), rtt: math.Round(between(1, 100)), delay: math.Round(between(2.5, 50)),
			least: 0.92, fair: true,
		}
		queue := min(max(float64(n.wan)*5e-3, 0.256), 2.048)               // Gbit: a gateway's default
		excess := float64(n.flows*n.host-n.wan) * (4*n.delay + 100) * 1e-6 // Gbit
		if n.flows*n.host < n.wan*11/10 || excess > queue/2 {
			continue
		}
		n.name = fmt.Sprintf("%d flows of %dG, %dG, %g ms, a loop of %g us", n.flows, n.host, n.wan, n.rtt, 4*n.delay)
		return n
	}
}

// TestLawWorkers: with several workers, which share the flows evenly or not, the fair rate is the same, and so is the result.
func TestLawWorkers(t *testing.T) {
	workers := []int{2, 4}
	if !thorough {
		workers = workers[1:]
	}
	for i, n := range []network{
		{name: "9 flows: 6 and 3, or 5, 2, 1 and 1", flows: 9, wan: 100, rtt: 5},
		{name: "64 flows of 25G", flows: 64, wan: 100, host: 25, rtt: 5},
	} {
		for _, r := range inTurn(i, []scenario.Response{scenario.StandardCNP, scenario.LongHaulCNP}) {
			t.Run(n.name+"/"+r.String(), func(t *testing.T) {
				t.Parallel()
				one := run(t, parse(t, n.text()), r)
				for _, n.workers = range workers {
					o := run(t, parse(t, n.text()), r)
					if ratio := o.All.Goodput / one.All.Goodput; math.Abs(ratio-1) > 0.03 || o.Dropped != 0 || math.Abs(o.Jain-one.Jain) > 0.03 {
						t.Errorf("%d workers have %.3f of the goodput of one, lost %d packets, and Jain's index is %.3f, with one %.3f",
							n.workers, ratio, o.Dropped, o.Jain, one.Jain)
					}
				}
			})
		}
	}
}
