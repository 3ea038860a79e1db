package scenario_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/sim/scenario"
)

const right = `name: test
length: 1ms
topology:
  dumbbell:
    senders: 2
    spans:
      - {rate: 10Gbps, delay: 10us, gateway: west}
gateways:
  west: {}
traffic:
  - incast: {from: 0-1, to: 2, bytes: 10KB}
`

// TestMistakes: each has its line and says what was expected.
func TestMistakes(t *testing.T) {
	for _, c := range []struct{ name, old, new, says string }{
		{"an unknown key", "length:", "lengths:", "test.yaml:2:1: lengths: unknown key; did you mean length?"},
		{"no topology", "  dumbbell:\n    senders: 2\n    spans:\n      - {rate: 10Gbps, delay: 10us, gateway: west}", "  gateways: []", "expected one of dumbbell, two_dcs and file"},
		{"two topologies", "  dumbbell:", "  file: x\n  dumbbell:", "2 topologies; expected one of"},
		{"no spans", "      - {rate: 10Gbps, delay: 10us, gateway: west}", "      []", "expected a list of at least 1, found 0"},
		{"a file that isn't there", "  dumbbell:\n    senders: 2\n    spans:\n      - {rate: 10Gbps, delay: 10us, gateway: west}", "  file: nowhere.txt", "test.yaml:4:9: topology.file"},
		{"gateways between nodes without a file", "topology:", "topology:\n  gateways: [{gateway: west, fabric: 1, wan: 2}]", "gateways are listed without a topology file"},
		{"no such gateway", "gateway: west}", "gateway: wets}", `there is no gateway "wets"; did you mean west?`},
		{"a gateway's port faster than its link", "west: {}", "west: {config: {ports: [{}, {rate: 20Gbps}]}}", "port wan has 20000000000 bit/s, and its link 10000000000"},
		{"a mistake in a gateway's configuration", "west: {}", "west: {config: {flows: {aging: 1}}}", `test.yaml:9:34: gateways.west.config.flows.aging: "1" is not a duration`},
		{"no two ports", "west: {}", "west: {config: {ports: [{}, {}, {name: a, device: b, role: wan, peer: wan, rate: 1Gbps}]}}", "west.config"},
		{"a rate above the span's", "gateway: west}", "gateway: west, changes: [{at: 1ms, rate: 20Gbps}]}", "20000000000 bit/s; expected at most the span's rate, 10000000000"},
		{"more far receivers than receivers", "senders: 2", "senders: 2\n    far_receivers: 2", "2 far receivers; expected at most the 1 receivers"},
		{"bursts beyond a message", "bytes: 10KB", "bytes: 3GB, bursts: 2", "bursts of 3000000000 bytes; expected at most 2147483647"},
		{"too many QPs", "incast: {from: 0-1, to: 2, bytes: 10KB}", "incast: {from: 0-1, to: 2, qps: 4097}", "qps"},
		{"hosts that aren't there", "from: 0-1", "from: 0-7", `"0-7" names no hosts; expected all, or hosts such as 0-7,9, of 0 to 2`},
		{"hosts in words", "from: 0-1", "from: some", `"some" names no hosts`},
		{"to itself", "to: 2", "to: 1", "host 1 can't receive"},
		{"two kinds of traffic", "- incast:", "- file: x\n    incast:", "2 kinds of traffic; expected one of"},
		{"a file of flows that isn't there", "incast: {from: 0-1, to: 2, bytes: 10KB}", "file: nowhere.txt", "traffic[0].file"},
		{"one rank", "incast: {from: 0-1, to: 2, bytes: 10KB}", "ring: {ranks: 1}", "1 ranks; expected 2 to 1024"},
		{"a rank twice", "incast: {from: 0-1, to: 2, bytes: 10KB}", "tree: {ranks: '0,1,0'}", "a rank is named twice"},
		{"thresholds the wrong way round", "gateways:", "switches: {ecn: [{rate: 0bps, k_min: 2KB, k_max: 1KB}]}\ngateways:", "K_min is above K_max"},
		{"rates that go down", "gateways:", "switches: {ecn: [{rate: 2Gbps, k_min: 1KB, k_max: 1KB}, {rate: 1Gbps, k_min: 1KB, k_max: 1KB}]}\ngateways:", "not above the rate of the entry before"},
		{"a switch that isn't there", "gateways:", "switches: {overrides: [{switches: switch-2, buffer: 1MB}]}\ngateways:", `there is no switch "switch-2"; did you mean switch-`},
		{"legacy hosts that aren't there", "gateways:", "hosts: {legacy: 3}\ngateways:", "hosts.legacy"},
		{"an unknown response", "gateways:", "responses: [fast]\ngateways:", `"fast" is not known`},
		{"more hosts than can be simulated", "  dumbbell:\n    senders: 2\n    spans:\n      - {rate: 10Gbps, delay: 10us, gateway: west}",
			"  two_dcs: {tors: 256, hosts_per_tor: 256}", "test.yaml:4:3: topology: a network of 131"},
		{"more flows than can be simulated", "incast: {from: 0-1, to: 2, bytes: 10KB}", "poisson: {sizes: hadoop, load: 100, length: 1h}",
			"test.yaml:11:14: traffic[0].poisson: some "},
		{"more samples than are kept", "length: 1ms", "length: 1h\nsample: 1us", "test.yaml:3:9: sample: 3600000000 samples in 1h0m0s; expected at most 1048576"},
		{"a response twice", "gateways:", "responses: [ecn, ppfc, ecn]\ngateways:", "test.yaml:8:24: responses[2]: ecn is listed twice; expected each response once"},
		{"nothing", right, "", "expected at least the sections name, length, topology and traffic"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(right, c.old, c.new, 1)
			if text == right {
				t.Fatal("the mistake isn't in the text")
			}
			_, err := scenario.Parse("test.yaml", []byte(text), nil, noFiles)
			var mistakes *config.Error
			if !errors.As(err, &mistakes) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error is %v, want %q", err, c.says)
			}
		})
	}
	if _, err := scenario.Parse("test.yaml", []byte(right), nil, noFiles); err != nil {
		t.Error(err)
	}
}

// TestSettings: what is set replaces the file's value, or adds a key; a wrong path is an error.
func TestSettings(t *testing.T) {
	s := parse(t, right, "length=2ms", "topology.dumbbell.senders=5", "traffic[0].incast.to=6", "topology.dumbbell.receivers=2")
	if s.Length() != 2e6 || s.Hosts() != 7 {
		t.Errorf("the length is %d ns, with %d hosts", s.Length(), s.Hosts())
	}
	for _, c := range []struct{ set, says string }{
		{"length.x=1", "length.x: there are no keys where x should be"},
		{"traffic[1].incast.to=1", `traffic has no entry "1"`},
		{"traffic[a].incast.to=1", `traffic has no entry "a"`},
		{"length={", "is not a YAML value"},
		{"lengths=1ms", "unknown key"},
	} {
		o, err := scenario.ParseSetting(c.set)
		if err == nil {
			_, err = scenario.Parse("test.yaml", []byte(right), []scenario.Setting{o}, noFiles)
		}
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: the error is %v, want %q", c.set, err, c.says)
		}
	}
	for _, text := range []string{"", "length", "=1", "length="} {
		if _, err := scenario.ParseSetting(text); err == nil {
			t.Errorf("%q is a setting", text)
		}
	}
}

const fromFiles = `name: files
length: 10ms
topology:
  file: topology.txt
  gateways: [{gateway: west, fabric: 3, wan: 4}]
gateways: {west: {}}
responses: [ecn]
traffic: [{file: flows.txt}]
`

// files are a topology with hosts 0, 1 and 2, of which 2 is far away, and flows.
func files(topology, flows string) scenario.Files {
	return func(path string) ([]byte, error) {
		switch path {
		case "topology.txt":
			return []byte(topology), nil
		case "flows.txt":
			return []byte(flows), nil
		}
		return nil, os.ErrNotExist
	}
}

const topology = "5 2 4\n3 4\n0 3 10Gbps 1us 0\n1 3 10Gbps 1us 0\n3 4 10Gbps 1ms 0\n4 2 10Gbps 1us 0\n"

// TestHPCCFiles: topology and flows of the HPCC simulator are simulated as they are.
func TestHPCCFiles(t *testing.T) {
	s, err := scenario.Parse("test.yaml", []byte(fromFiles), nil, files(topology, "2\n0 1 3 100 10000 2.0\n1 2 3 100 20000 2.000001\n"))
	if err != nil {
		t.Fatal(err)
	}
	o := run(t, s, scenario.ECN)
	if o.All.Finished != 2 || len(o.Groups) != 2 || o.Groups[0].Flows != 1 || o.Groups[1].MeanFCT < 2e6 || o.Groups[0].MeanFCT > 100e3 {
		t.Errorf("%+v", o.Result)
	}
	for _, c := range []struct{ name, topology, flows, says string }{
		{"flow to a switch", topology, "1\n0 3 3 100 10000 2.0\n", "flow 1 of flows.txt goes from node 0 to node 3; expected two hosts"},
		{"flow to nowhere", topology, "1\n0 9 3 100 10000 2.0\n", "expected two hosts"},
		{"no such link", strings.Replace(topology, "3 4 10Gbps", "1 4 10Gbps", 1), "1\n0 1 3 100 10000 2.0\n", "found no link between nodes 3 and 4 without a gateway next to 3"},
		{"not a topology", "x", "", `topology.txt:1: "x" can't be the number of nodes`},
		{"not flows", topology, "1\nx", `flows.txt:2: "x" can't be a flow's source`},
	} {
		_, err := scenario.Parse("test.yaml", []byte(fromFiles), nil, files(c.topology, c.flows))
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: the error is %v, want %q", c.name, err, c.says)
		}
	}
}
