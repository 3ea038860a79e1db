package scenario_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/sim/scenario"
	"github.com/cnpgate/cnpgate/sim/scenarios"
)

// parse reads a scenario that must be right.
func parse(t testing.TB, text string, set ...string) *scenario.Scenario {
	t.Helper()
	var settings []scenario.Setting
	for _, s := range set {
		o, err := scenario.ParseSetting(s)
		if err != nil {
			t.Fatal(err)
		}
		settings = append(settings, o)
	}
	s, err := scenario.Parse("test.yaml", []byte(text), settings, noFiles)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func noFiles(string) ([]byte, error) { return nil, os.ErrNotExist }

// builtIn reads a scenario of the binary.
func builtIn(t *testing.T, name string, set ...string) *scenario.Scenario {
	t.Helper()
	text, ok := scenarios.Find(name)
	if !ok {
		t.Fatalf("there is no scenario %s", name)
	}
	return parse(t, string(text), set...)
}

func run(t *testing.T, s *scenario.Scenario, r scenario.Response) *scenario.Outcome {
	t.Helper()
	o, err := s.Run(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestBuiltIn: the scenarios of the binary are right, and each has the name of its file.
func TestBuiltIn(t *testing.T) {
	if len(scenarios.Names()) < 10 {
		t.Fatalf("only %v", scenarios.Names())
	}
	for _, name := range scenarios.Names() {
		if s := builtIn(t, name); s.Name != name || s.Flows() == 0 || len(s.Warnings) != 0 {
			t.Errorf("%s: its name is %s, it has %d flows and the warnings %v", name, s.Name, s.Flows(), s.Warnings)
		}
	}
}

// TestIncast: with notifications of the gateway the first sender slows down at least ten times as early as with the receiver's, and little is lost.
func TestIncast(t *testing.T) {
	s := builtIn(t, "incast-10ms", "traffic[0].incast.bytes=12MB", shallow("west"))
	ecn := run(t, s, scenario.ECN)
	if ecn.Dropped == 0 || ecn.Sent != 0 || ecn.SlowDown < 5e6 {
		t.Fatalf("with marks alone: %d dropped, %d notifications, slowed down after %d ns", ecn.Dropped, ecn.Sent, ecn.SlowDown)
	}
	for _, r := range []scenario.Response{scenario.FastCNP, scenario.LongHaulCNP, scenario.StandardCNP, scenario.PPFC} {
		t.Run(r.String(), func(t *testing.T) {
			o := run(t, s, r)
			if o.SlowDown <= 0 || o.SlowDown*10 > ecn.SlowDown || o.Dropped*10 > ecn.Dropped {
				t.Errorf("slowed down after %d ns with %d dropped, with marks alone after %d ns with %d", o.SlowDown, o.Dropped, ecn.SlowDown, ecn.Dropped)
			}
			if o.Sent == 0 || o.ByKind[r.String()] != o.Sent {
				t.Errorf("%d notifications, of kinds %v", o.Sent, o.ByKind)
			}
			if o.All.Finished+o.All.Failed == 0 || o.Gateway.Peak <= o.KMin {
				t.Errorf("%d flows finished, the queue was %d bytes at most, K_max is %d", o.All.Finished, o.Gateway.Peak, o.KMax)
			}
		})
	}
}

// TestHPCC: the gateway's Fast CNPs carry the packets' traces, and these set the rates.
func TestHPCC(t *testing.T) {
	o := run(t, builtIn(t, "incast-1ms", "traffic[0].incast.bytes=10MB"), scenario.FastCNPHPCC)
	if o.Reactions["measured"] == 0 || o.Reactions["wrong-trace"] != 0 {
		t.Errorf("senders' reactions: %v", o.Reactions)
	}
}

// TestBurst: marking alone answers a burst that passes K_min and not K_max, in any response.
func TestBurst(t *testing.T) {
	s := builtIn(t, "burst")
	for _, r := range s.Responses {
		o := run(t, s, r)
		if o.Sent != 0 || o.Dropped != 0 || o.Marked == 0 || o.All.Finished != 4 || o.Gateway.Peak <= o.KMin || o.Gateway.Peak >= o.KMax {
			t.Errorf("%s: %d notifications, %d dropped, %d marked, queue %d of K_min %d and K_max %d", r, o.Sent, o.Dropped, o.Marked, o.Gateway.Peak, o.KMin, o.KMax)
		}
	}
}

// TestDraftExample: the numbers of draft-tian 7. The first sender is notified when the queue passes K_max, after 10 ms of twice the link
// rate.
func TestDraftExample(t *testing.T) {
	o := run(t, builtIn(t, "draft-tian-7", "length=15ms"), scenario.LongHaulCNP)
	if o.KMax != 125_000_000 || o.KMin != 62_500_000 {
		t.Errorf("K_min %d, K_max %d, want 62.5 and 125 MB", o.KMin, o.KMax)
	}
	if o.SlowDown < 10e6 || o.SlowDown > 11e6 || o.Reactions["reduced"] == 0 || o.Dropped != 0 {
		t.Errorf("slowed down after %d ns, senders' reactions %v, %d dropped", o.SlowDown, o.Reactions, o.Dropped)
	}
}

// TestLegacy: senders that support only standard CNPs get these, and the others the format that they support.
func TestLegacy(t *testing.T) {
	o := run(t, builtIn(t, "legacy-mix", "traffic[0].incast.bytes=20MB"), scenario.LongHaulCNP)
	if o.ByKind["long-haul-cnp"] == 0 || o.ByKind["standard-cnp"] == 0 || o.Reactions["reduced"] == 0 || o.Reactions["slowed-down"] == 0 {
		t.Errorf("notifications %v, reactions %v", o.ByKind, o.Reactions)
	}
}

const alone = `
name: alone
length: 50ms
topology: {dumbbell: {senders: 1, spans: [{rate: 40Gbps, delay: 1ms, gateway: near}, {rate: 40Gbps, delay: 1ms, gateway: far}]}}
gateways: {near: {loop: 2us}, far: {}}
traffic: [{incast: {from: 0, to: 1, bytes: 20MB}}]
`

// TestAlone: two gateways in series forward a single flow as a wire would; a sender faster than the WAN fills a queue.
func TestAlone(t *testing.T) {
	slow := run(t, parse(t, alone, "topology.dumbbell.rate=40Gbps"), scenario.FastCNP)
	if slow.All.Finished != 1 || slow.All.MeanSlowdown < 1 || slow.All.MeanSlowdown > 1.02 || slow.Dropped != 0 || slow.Marked != 0 || slow.Sent != 0 {
		t.Errorf("a sender as fast as the line: %+v", slow.Result)
	}
	fast := run(t, parse(t, alone), scenario.FastCNP)
	if fast.All.Finished != 1 || fast.Dropped != 0 || fast.Gateway.Peak < 2e6 {
		t.Errorf("a faster one: %+v", fast.Result)
	}
}

const incast = `
name: incast
length: 100ms
topology: {dumbbell: {senders: 4, rate: 25Gbps, spans: [{rate: 25Gbps, delay: 100us, gateway: west}]}}
gateways:
  west:
    config:
      ports:
        - flow_control: {cable: 300m}
        - queue_capacity: 2MB
          flow_control: {}
          traffic_classes:
            - {name: high, dscp: [48]}
            - {name: data, dscp: [26], priority: 3, lossless: false}
responses: [ecn]
traffic: [{incast: {from: 0-3, to: 4, bytes: 10MB}}]
`

// TestLossless: a gateway with a lossless class stops the switch before it, which stops the senders, and nothing is lost. Without the
// class, frames are lost.
func TestLossless(t *testing.T) {
	lossy := run(t, parse(t, incast), scenario.ECN)
	if lossy.Dropped == 0 || lossy.Paused != 0 {
		t.Errorf("without a lossless class, %d dropped, ports stopped for %d ns", lossy.Dropped, lossy.Paused)
	}
	o := run(t, parse(t, strings.Replace(incast, "lossless: false", "lossless: true", 1)), scenario.ECN)
	if o.Dropped != 0 || o.Paused == 0 || o.Retransmitted != 0 || o.All.Finished != 4 {
		t.Errorf("with one, %d dropped, ports stopped for %d ns, %d packets sent again, %d flows finished", o.Dropped, o.Paused, o.Retransmitted, o.All.Finished)
	}
}

const learning = `
name: learning
length: 20ms
topology: {dumbbell: {senders: 2, spans: [{rate: 100Gbps, delay: 100us, gateway: west}]}}
gateways: {west: {source_qps: learned}}
traffic: [{incast: {from: 0-1, to: 2, bytes: 30MB}}]
`

// TestLearned: a gateway without a map of QPs learns them from the traffic, and then sends standard CNPs to the right ones.
func TestLearned(t *testing.T) {
	o := run(t, parse(t, learning), scenario.StandardCNP)
	if o.ByKind["standard-cnp"] == 0 || o.Reactions["refused"] != 0 || o.Reactions["not-from-peer"] != 0 {
		t.Errorf("notifications %v, reactions %v", o.ByKind, o.Reactions)
	}
}

// sameBytes is the SHA-256 of what output gives for seed 1, on every platform. A change of the gateway or of the simulator may change it.
const sameBytes = "3b87d79f345b95d3fd5d8088bdb49e65285cb4f81f893aa0dce13ffb64542ba0"

// TestProxy: senders behind a proxy react as soon as those that the congested gateway notifies itself, a round trip of the far link earlier
// than to the receiver's CNPs, and nothing is lost.
func TestProxy(t *testing.T) {
	s := builtIn(t, "proxy", "traffic[0].incast.bytes=40MB", "length=40ms", shallow("far"))
	ecn, direct, through := run(t, s, scenario.ECN), run(t, s, scenario.StandardCNP), run(t, s, scenario.Proxy)
	if direct.SlowDown > 2e6 || through.SlowDown > direct.SlowDown+100_000 || ecn.SlowDown < 5e6 {
		t.Errorf("senders react after %d ns, directly %d, through the proxy %d", ecn.SlowDown, direct.SlowDown, through.SlowDown)
	}
	if ecn.Dropped == 0 || direct.Dropped != 0 || through.Dropped != 0 {
		t.Errorf("%d packets lost, directly %d, through the proxy %d", ecn.Dropped, direct.Dropped, through.Dropped)
	}
	if through.ByKind["proxy-notification"] == 0 || through.ByKind["standard-cnp"] == 0 || direct.ByKind["proxy-notification"] != 0 || direct.ByKind["standard-cnp"] == 0 {
		t.Errorf("notifications %v, directly %v", through.ByKind, direct.ByKind)
	}
}

// TestUnresponsive: the gateway next to senders that obey nothing carries out what a congested gateway asks, in each format, so that the
// latter loses nothing.
func TestUnresponsive(t *testing.T) {
	s := builtIn(t, "unresponsive", "traffic[0].incast.bytes=40MB", "length=60ms")
	alone := run(t, s, scenario.ECN)
	if alone.Dropped < 5000 || alone.SlowDown >= 0 {
		t.Fatalf("without notifications %d packets are lost, and senders react after %d ns: not what was to be tested", alone.Dropped, alone.SlowDown)
	}
	kinds := map[scenario.Response]string{
		scenario.StandardCNP: "standard-cnp", scenario.LongHaulCNP: "long-haul-cnp", scenario.PPFC: "ppfc", scenario.Proxy: "proxy-notification",
	}
	if testing.Short() {
		delete(kinds, scenario.StandardCNP)
		delete(kinds, scenario.PPFC)
	}
	for r, kind := range kinds {
		o := run(t, s, r)
		if o.ByKind[kind] == 0 {
			t.Errorf("%v: no notification of that kind was sent, but %v", r, o.ByKind)
		}
		if o.Dropped != 0 || o.SlowDown >= 0 || o.Gateway.Peak > alone.Gateway.Peak {
			t.Errorf("%v: %d packets lost of %d without, a queue of %d bytes, senders react after %d ns", r, o.Dropped, alone.Dropped, o.Gateway.Peak, o.SlowDown)
		}
	}
}

// TestConfiguredPPFC: hosts support the formats that the gateway's configuration lists for them.
func TestConfiguredPPFC(t *testing.T) {
	s := builtIn(t, "incast-1ms", "traffic[0].incast.bytes=4MB", "responses=[configured]",
		"gateways.west.config.notifications.ppfc.enabled=true", "gateways.west.config.endpoints=[{prefix: 'fd00::/64', accepts: [ppfc]}]")
	if o := run(t, s, scenario.Configured); o.ByKind["ppfc"] == 0 || o.Reactions["paused"] == 0 {
		t.Errorf("sent %v, which did %v", o.ByKind, o.Reactions)
	}
}

// TestManySenders: a gateway's link takes what all senders send, up to the highest rate that a port may have.
func TestManySenders(t *testing.T) {
	s := builtIn(t, "incast-1ms", "topology.dumbbell.senders=200", "traffic[0].incast.to=200")
	c, err := s.Config(scenario.ECN)
	if err != nil {
		t.Fatal(err)
	}
	highest := uint64(0)
	for _, l := range c.Network.Links {
		highest = max(highest, l.Rate)
	}
	if highest != 10e12 {
		t.Errorf("the fastest link has %d bit/s, want 10 Tbit/s", highest)
	}
}

// TestWindow: a window is the line rate times the longest round trip, however long that is.
func TestWindow(t *testing.T) {
	for _, c := range []struct {
		delay string
		rate  int64
		want  int64
	}{{"499998us", 400e9, 50_000_000_000}, {"498us", 100e9, 12_500_000}, {"0s", 8e6, 4}} {
		s := parse(t, "name: test\nlength: 1ms\ntopology: {dumbbell: {senders: 1, spans: [{rate: 10Gbps, delay: "+c.delay+"}]}}\n"+
			"hosts: {window: bdp}\ntraffic: [{incast: {from: 0, to: 1, bytes: 1KB}}]\n")
		config, err := s.Config(scenario.ECN)
		if err != nil {
			t.Fatal(err)
		}
		e := config.Host
		e.LineRate = c.rate
		config.EachHost(0, &e)
		if e.Window != c.want {
			t.Errorf("a delay of %s: %d bytes, want %d", c.delay, e.Window, c.want)
		}
	}
}

// TestSameBytes: the same scenario and seed give the same output, byte for byte, on every platform; another seed another one.
func TestSameBytes(t *testing.T) {
	first, again := output(t, "1"), output(t, "1")
	if !bytes.Equal(first, again) {
		t.Error("two runs with one seed differ")
	}
	if sum := fmt.Sprintf("%x", sha256.Sum256(first)); sum != sameBytes {
		t.Errorf("the output's SHA-256 is %s, expected %s; if that is meant, put it there", sum, sameBytes)
	}
	if bytes.Equal(first, output(t, "2")) {
		t.Error("two runs with two seeds are the same")
	}
}

// output is all that a run writes. Both random loss and a gateway take part.
func output(t *testing.T, seed string) []byte {
	s := builtIn(t, "incast-1ms", "seed="+seed, "traffic[0].incast.bytes=3MB", "traffic[0].incast.spread=100us", "topology.dumbbell.spans[0].loss=0.0001")
	o := run(t, s, scenario.LongHaulCNP)
	var b bytes.Buffer
	if err := o.WriteCSV(&b); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return append(b.Bytes(), text...)
}

// TestCSV: a row for each sample, and rates that add up to what was sent.
func TestCSV(t *testing.T) {
	s := parse(t, learning, "length=40ms")
	o := run(t, s, scenario.ECN)
	var b bytes.Buffer
	if err := o.WriteCSV(&b); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if lines[0] != "time_ns,gateway_queue_bytes,switch_queue_bytes,notifications,cnps,host_0_bps,host_1_bps,host_0_notifications,host_1_notifications,west_queue_bytes,west_fair_bps,lost_packets" || len(lines) != 1+len(o.Series.Gateway) {
		t.Errorf("%d lines for %d samples, the first is %q", len(lines), len(o.Series.Gateway), lines[0])
	}
	sent := int64(0)
	for _, rate := range o.Series.Rates[0] {
		sent += rate * o.Series.Every / 8e9
	}
	if sent < 30e6 || sent > 45e6 {
		t.Errorf("host 0 sent %d bytes by its rates, want the 30 MB of its flow with headers, and some again", sent)
	}
}
