package scenario_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/sim/scenario"
)

// TestGatewayYAML: a gateway with the YAML of a response, configured, does the same as the response.
func TestGatewayYAML(t *testing.T) {
	small := []string{"traffic[0].incast.bytes=1MB", "length=20ms"}
	for _, c := range []struct {
		name     string
		response scenario.Response
	}{
		{"incast-1ms", scenario.ECN}, {"incast-1ms", scenario.StandardCNP}, {"incast-1ms", scenario.LongHaulCNP}, {"legacy-mix", scenario.FastCNP},
		{"unresponsive", scenario.PPFC}, {"proxy", scenario.Proxy}, {"draft-tian-7", scenario.LongHaulCNP},
	} {
		s := builtIn(t, c.name, small...)
		want := run(t, s, c.response)
		gateways, err := s.Gateways(c.response)
		if err != nil {
			t.Fatal(err)
		}
		sections := map[string]any{}
		for _, g := range gateways {
			if _, err := config.Parse("gw.yaml", g.YAML); err != nil {
				t.Errorf("%s, %v: the configuration is refused: %v\n%s", c.name, c.response, err, g.YAML)
			}
			var node yaml.Node
			if err := yaml.Unmarshal(g.YAML, &node); err != nil {
				t.Fatal(err)
			}
			sections[g.Name] = map[string]any{"config": node.Content[0]}
		}
		var document map[string]any
		if err := yaml.Unmarshal(s.Text, &document); err != nil {
			t.Fatal(err)
		}
		document["gateways"], document["responses"] = sections, []string{"configured"}
		text, err := yaml.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		again, err := scenario.Parse(c.name, text, nil, nil)
		if err != nil {
			t.Fatalf("%s, %v: %v\n%s", c.name, c.response, err, text)
		}
		got := run(t, again, scenario.Configured)
		got.Response = want.Response
		if a, b := encoded(t, want), encoded(t, got); !bytes.Equal(a, b) {
			t.Errorf("%s, %v:\n%s\nas configured:\n%s", c.name, c.response, a, b)
		}
	}
}

func encoded(t *testing.T, o *scenario.Outcome) []byte {
	b, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestText: a scenario's text has its settings, and is the same scenario.
func TestText(t *testing.T) {
	s := builtIn(t, "incast-1ms", "traffic[0].incast.bytes=1MB", "hosts.nic=slow-measured")
	if !strings.Contains(string(s.Text), "bytes: 1MB") {
		t.Errorf("%s", s.Text)
	}
	again, err := scenario.Parse("again", s.Text, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := encoded(t, run(t, s, scenario.StandardCNP)), encoded(t, run(t, again, scenario.StandardCNP)); !bytes.Equal(a, b) {
		t.Errorf("%s\nand from its text:\n%s", a, b)
	}
}
