package config

import (
	"strings"
	"testing"
)

// TestEffective: what is in force is read to the same configuration, and names the defaults and what is calculated.
func TestEffective(t *testing.T) {
	for _, name := range files(t, "testdata/good/*.yaml") {
		cfg, err := Parse("gw.yaml", read(t, name))
		if err != nil {
			t.Fatal(err)
		}
		text := cfg.Effective()
		again, err := Parse("gw.yaml", []byte(text))
		if err != nil {
			t.Errorf("%s: %v in\n%s", name, err, text)
			continue
		}
		if changes := again.Changes(cfg); len(changes) > 0 || again.Effective() != text {
			t.Errorf("%s: %v differ in\n%s", name, changes, text)
		}
	}
}

func TestEffectiveText(t *testing.T) {
	cfg, err := Parse("gw.yaml", []byte(`gateway: {name: "gw 1", ipv4: 10.0.0.1}
ports:
  - {name: dc, device: "net_tap0,iface=a", role: fabric, peer: wan, rate: 100Gbps}
  - {name: wan, device: net_tap1, profile: mine, role: wan, peer: dc, rate: 10Gbps, queue_capacity: 40MB}
endpoints: [{prefix: 10.1.0.0/16, accepts: [standard-cnp]}]
notifications: {standard_cnp: {enabled: true}}
management: {}
profiles: {mine: {}, old: {mode: thresholds}}
`))
	if err != nil {
		t.Fatal(err)
	}
	text := cfg.Effective()
	for _, want := range []string{
		"gateway:\n  name: \"gw 1\"\n  ipv4: 10.0.0.1\n",
		"# dpdk:\n#   hugepages: true\n#   in_memory: false\n#   workers: [1]\n",
		"ports:\n  - name: dc\n    device: \"net_tap0,iface=a\"\n",
		"    rate: 10Gbps\n#     rtt: 0s\n#     rtt_sources: [configured]\n#     mtu: 9000\n    queue_capacity: 40MB\n",
		"#     calculated: each queue holds 40MB in 39062 frames, 32ms at the rate; q_ref is 4MB, senders are notified above 2MB\n",
		"notifications:\n#   mode: send\n#   dscp: 48\n",
		"management: {}\n#   log_level: info\n", "profiles:\n  mine: {}\n#     mode: law\n#     fair_between: senders\n#     ce_on_arrival: false\n#     clear_ce: false\n  old:\n    mode: thresholds\n#     k_base: 64KB\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, unwanted := range []string{"bgp", "fleet", "domain", "reduce_percent", "bypass", "web"} {
		if strings.Contains(text, unwanted) {
			t.Errorf("%q in\n%s", unwanted, text)
		}
	}
}

// TestChangedValues: each with both values.
func TestChangedValues(t *testing.T) {
	const text = "gateway: {name: a}\nports:\n- {name: dc, device: x, role: fabric, peer: wan, rate: 100Gbps}\n- {name: wan, device: y, role: wan, peer: dc, rate: 10Gbps}\n"
	before, err := Parse("gw.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	after, err := Parse("gw.yaml", []byte(strings.Replace(text, "rate: 10Gbps", "rate: 40Gbps, rtt_sources: [configured, passive], mtu: 1500", 1)+
		"endpoints: [{prefix: 10.1.0.0/16, accepts: [standard-cnp]}]\nnotifications: {dscp: 0x30}\nprofiles: {a: {target_delay: 1ms}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, c := range after.ChangedValues(before) {
		lines = append(lines, c.Key+": "+c.Before+" -> "+c.After)
	}
	const want = `ports[1].rate: 10Gbps -> 40Gbps
ports[1].rtt_sources: [configured] (default) -> [configured, passive]
ports[1].mtu: 9000 (default) -> 1500
profiles: none -> 2 lines
endpoints: none -> 2 lines`
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
