package scenario_test

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/sim/scenario"
)

// TestNICs: each NIC can be run, and changes how hosts react.
func TestNICs(t *testing.T) {
	seen := map[endpoint.DCQCNConfig]string{}
	for _, name := range scenario.NICs() {
		s := builtIn(t, "incast-1ms", "hosts.nic="+name, "length=3ms")
		c, err := s.Config(scenario.ECN)
		if err != nil {
			t.Fatal(err)
		}
		if same := seen[c.Host.Reaction.DCQCN]; same != "" {
			t.Errorf("%s has the parameters of %s", name, same)
		}
		seen[c.Host.Reaction.DCQCN] = name
		run(t, s, scenario.StandardCNP)
	}
}

// TestNICFile: the operator's file of a NIC; the scenario's own values take precedence; what neither has is the paper's.
func TestNICFile(t *testing.T) {
	const nic = "name: mine\nsource: measured in a test\nobeys: [standard-cnp]\nreaction_delay: 1ms\ncnp_interval: 7us\ndcqcn: {cut: period, g: 0.5, min_rate: 1Gbps}\n"
	s, err := parseWith(nic, "{nic: mine.yaml, dcqcn: {min_rate: 2Gbps}}")
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Config(scenario.LongHaulCNP)
	if err != nil {
		t.Fatal(err)
	}
	h, d := &c.Host, &c.Host.Reaction.DCQCN
	if h.CNPInterval != 7000 || h.Reaction.ReactionDelay != 1e6 || h.Reaction.ReactionDelayMax != 1e6 || !d.AtPeriodEnd || d.G != 0.5 || d.MinRate != 2e9 || d.AlphaTimer != 55_000 || d.HoldTarget {
		t.Errorf("%+v", c.Host)
	}
	if o := run(t, s, scenario.LongHaulCNP); o.ByKind["standard-cnp"] == 0 || o.ByKind["long-haul-cnp"] != 0 {
		t.Errorf("notifications %v, want standard CNPs: the NIC obeys no others", o.ByKind)
	}
	if s, err = parseWith("name: deaf\nsource: a test\nobeys: []\n", "{nic: mine.yaml}"); err != nil {
		t.Fatal(err)
	}
	if o := run(t, s, scenario.StandardCNP); o.SlowDown >= 0 {
		t.Errorf("a NIC that obeys nothing reacts after %d ns: %v", o.SlowDown, o.Reactions)
	}
}

// TestNICMistakes: a mistake names the file that has it.
func TestNICMistakes(t *testing.T) {
	for _, c := range []struct{ nic, hosts, says string }{
		{"", "{nic: papre}", `hosts.nic: there is no NIC "papre"; expected ` + strings.Join(scenario.NICs(), ", ") + `, or a file`},
		{"", "{nic: other.yaml}", "hosts.nic: "},
		{"name: x\n", "{nic: mine.yaml}", "mine.yaml:1:1: source: missing"},
		{"name: x\nsource: y\ndcqcn: {gain: 1}\n", "{nic: mine.yaml}", "mine.yaml:3:9: dcqcn.gain: unknown key"},
		{"name: x\nsource: y\nmtu: 1000\n", "{nic: mine.yaml}", "mine.yaml:3:1: mtu: unknown key"},
		{"name: x\nsource: y\ndcqcn: {g: 2}\n", "{nic: mine.yaml}", "mine.yaml:3:12: dcqcn.g"},
	} {
		if _, err := parseWith(c.nic, c.hosts); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s with %q: %v, want %q", c.hosts, c.nic, err, c.says)
		}
	}
}

// parseWith reads a scenario with these hosts and a file mine.yaml.
func parseWith(nic, hosts string) (*scenario.Scenario, error) {
	text := strings.Replace(learning, "gateways:", "hosts: "+hosts+"\ngateways:", 1)
	return scenario.Parse("test.yaml", []byte(text), nil, func(path string) ([]byte, error) {
		if path == "mine.yaml" {
			return []byte(nic), nil
		}
		return nil, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
	})
}

// TestSwitchBuffers: single switches have buffers of their own.
func TestSwitchBuffers(t *testing.T) {
	s := builtIn(t, "two-dcs", "switches.overrides=[{switches: 'west-border,east-spine-3', buffer: 64MB}, {switches: west-border, alpha: 1}]")
	c, err := s.Config(scenario.ECN)
	if err != nil {
		t.Fatal(err)
	}
	changed := 0
	for _, n := range c.Network.Nodes {
		if n.Switch == nil {
			continue
		}
		changed++
		alpha := 0.125
		if n.Name == "west-border" {
			alpha = 1
		}
		if n.Switch.Buffer != 64e6 || n.Switch.Alpha != alpha || n.Switch.EgressAlpha != 1 || len(n.Switch.ECN) != 3 {
			t.Errorf("%s: %+v", n.Name, n.Switch)
		}
	}
	if changed != 2 {
		t.Errorf("%d switches have values of their own, want 2", changed)
	}
}
