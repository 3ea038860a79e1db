package config

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// running is the configuration that the reloads of these tests begin with.
const running = `gateway: {name: gw, ipv4: 192.0.2.1}
flows: {capacity: 1024}
ports:
  - name: fabric
    device: a
    role: fabric
    peer: wan
    rate: 100Gbps
    pacing: {enabled: true, capacity: 1MB}
    flow_control: {speed: 100Gbps}
  - name: wan
    device: b
    role: wan
    peer: fabric
    rate: 10Gbps
    queue_capacity: 16MB
    traffic_classes:
      - {name: first, dscp: [46], priority: 5}
      - {name: rest, priority: 3, lossless: true}
profiles:
  default: {k_base: 100KB}
endpoints:
  - {prefix: 198.51.100.0/24, accepts: [long-haul-cnp]}
notifications: {long_haul_cnp: {enabled: true}}
`

func parsed(t *testing.T, changes ...string) *Config {
	t.Helper()
	text := running
	for i := 0; i < len(changes); i += 2 {
		if !strings.Contains(text, changes[i]) {
			t.Fatalf("%q is not in the configuration", changes[i])
		}
		text = strings.Replace(text, changes[i], changes[i+1], 1)
	}
	c, err := Parse("gw.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestReloadable: these changes are found, and nothing stands against them.
func TestReloadable(t *testing.T) {
	for name, c := range map[string]struct {
		change []string
		keys   []string
	}{
		"none":                 {nil, nil},
		"a comment, and order": {[]string{"gateway: {name: gw, ipv4: 192.0.2.1}", "# mine\ngateway: {ipv4: 192.0.2.1, name: gw}"}, nil},
		"a default given":      {[]string{"k_base: 100KB", "k_base: 100KB, alpha: 1.0"}, nil},
		"rate":                 {[]string{"rate: 10Gbps", "rate: 9Gbps"}, []string{"ports[1].rate"}},
		"smaller pacing":       {[]string{"capacity: 1MB", "capacity: 900KB"}, []string{"ports[0].pacing.capacity"}},
		"no pacing":            {[]string{"enabled: true, capacity", "enabled: false, capacity"}, []string{"ports[0].pacing.enabled"}},
		"DSCP":                 {[]string{"dscp: [46]", "dscp: [46, 47]"}, []string{"ports[1].traffic_classes[0].dscp"}},
		"another DSCP":         {[]string{"dscp: [46]", "dscp: [44]"}, []string{"ports[1].traffic_classes[0].dscp[0]"}},
		"profile":              {[]string{"k_base: 100KB", "k_base: 99KB, clear_ce: true, ce_on_arrival: true"}, []string{"profiles.default.k_base", "profiles.default.ce_on_arrival", "profiles.default.clear_ce"}},
		"endpoints":            {[]string{"endpoints:", "endpoints:\n  - {prefix: 203.0.113.0/24, accepts: []}"}, []string{"endpoints"}},
		"what one accepts":     {[]string{"198.51.100.0/24", "198.51.100.0/25"}, []string{"endpoints[0].prefix"}},
		"mode and address":     {[]string{"192.0.2.1", "192.0.2.2", "notifications: {", "notifications: {mode: observe, "}, []string{"gateway.ipv4", "notifications.mode"}},
		"proxies": {[]string{"flows:", "proxy: {enabled: observe, port: 1021, listen: 192.0.2.1, senders: [{prefix: 10.1.0.0/16, proxy: 10.1.0.1}], sources: [10.9.0.0/16], limits: {per_proxy: 0, per_source: 5/s, received: 0}}\nflows:"},
			[]string{"proxy.enabled", "proxy.listen", "proxy.port", "proxy.senders", "proxy.sources", "proxy.limits.per_proxy", "proxy.limits.per_source", "proxy.limits.received"}},
		"OSPF": {[]string{"flows:", "proxy: {enabled: true, ospf: {api: 127.0.0.2:2607, announce: [10.1.0.0/16], accept: [{prefix: 10.0.0.0/8}]}}\nflows:"},
			[]string{"proxy.enabled", "proxy.ospf.api", "proxy.ospf.announce", "proxy.ospf.accept"}},
		"OSPFv3": {[]string{"flows:", "proxy: {enabled: true, ospf6: {socket: /v, accept: [{prefix: 10.0.0.0/8}]}}\nflows:"},
			[]string{"proxy.enabled", "proxy.ospf6.socket", "proxy.ospf6.accept"}},
		"management": {[]string{"flows:", "management: {listen: \"unix:/run/gw.sock\", metrics: \"127.0.0.1:1\"}\nflows:"}, []string{"management.listen", "management.metrics"}},
		"page":       {[]string{"flows:", "management: {web: {listen: \"127.0.0.1:8420\", token_file: /etc/token}}\nflows:"}, []string{"management.web.listen", "management.web.token_file"}},
		"bypass":     {[]string{"flows:", "bypass: {file: /dev/watchdog1}\nflows:"}, []string{"bypass.file"}},
		"domain":     {[]string{"flows:", "domain: {members: [198.51.100.0/24], notification_sources: []}\nflows:"}, []string{"domain.members", "domain.notification_sources"}},
	} {
		t.Run(name, func(t *testing.T) {
			before, now := parsed(t), parsed(t, c.change...)
			if keys := now.Changes(before); !slices.Equal(keys, c.keys) {
				t.Errorf("changes %q, want %q", keys, c.keys)
			}
			if err := now.CheckReload(before); err != nil {
				t.Error(err)
			}
			if same := now.File.Hash() == before.File.Hash(); same != (c.change == nil) {
				t.Errorf("hashes %s and %s", now.File.Hash(), before.File.Hash())
			}
		})
	}
}

// TestNeedsRestart: each change is refused, with its key and position.
func TestNeedsRestart(t *testing.T) {
	for name, c := range map[string]struct {
		change []string
		want   []string // parts of the lines
	}{
		"a device and the MTU":       {[]string{"device: a", "device: c\n    mtu: 1500"}, []string{"gw.yaml:5:13: ports[0].device: differs from its value when the gateway was started, and a reload can't change it; restart the gateway, or undo the change: devices, their peers", "gw.yaml:6:10: ports[0].mtu: differs"}},
		"capacity of the flow table": {[]string{"capacity: 1024", "capacity: 2048"}, []string{"gw.yaml:2:19: flows.capacity: differs"}},
		"workers":                    {[]string{"flows:", "dpdk: {workers: [1, 2]}\nflows:"}, []string{"gw.yaml:2:17: dpdk.workers: differs"}},
		"a class more":               {[]string{"      - {name: rest", "      - {name: second, dscp: [1]}\n      - {name: rest"}, []string{"gw.yaml:18:7: ports[1].traffic_classes: differs"}},
		"priority taken away":        {[]string{"dscp: [46], priority: 5", "dscp: [46]"}, []string{"ports[1].traffic_classes[0].priority: differs"}},
		"priority 0":                 {[]string{"priority: 5", "priority: 0"}, []string{"gw.yaml:18:45: ports[1].traffic_classes[0].priority: differs"}},
		"flow control":               {[]string{"    flow_control: {speed: 100Gbps}\n", "    flow_control: {}\n"}, []string{"ports[0].flow_control.speed: differs"}},
		"a larger queue":             {[]string{"queue_capacity: 16MB", "queue_capacity: 400MB"}, []string{"gw.yaml:16:21: ports[1].queue_capacity: 400MB needs memory for 390625 frames, and it was reserved for 31310 at the start; expected at most 31310KiB", "ports[1].queue_capacity: 400MB would change XOff of the lossless class rest"}},
		"a smaller lossless queue":   {[]string{"queue_capacity: 16MB", "queue_capacity: 15MB"}, []string{"gw.yaml:16:21: ports[1].queue_capacity: 15MB would change XOff of the lossless class rest"}},
		"more held back":             {[]string{"capacity: 1MB", "capacity: 2MB"}, []string{"gw.yaml:9:39: ports[0].pacing.capacity: 2MB is more than the 1MB"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := parsed(t, c.change...).CheckReload(parsed(t))
			var mistakes *Error
			if !errors.As(err, &mistakes) {
				t.Fatalf("%v, want an error with positions", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got:\n%v\nwant a line with %q", err, want)
				}
			}
			if len(mistakes.Problems) != len(c.want) {
				t.Errorf("%d problems, want %d:\n%v", len(mistakes.Problems), len(c.want), err)
			}
		})
	}
	off := parsed(t, "enabled: true, capacity", "enabled: false, capacity")
	if err := parsed(t).CheckReload(off); err == nil || !strings.Contains(err.Error(), "gw.yaml:9:23: ports[0].pacing.enabled: pacing was off at the start") {
		t.Errorf("pacing turned on: %v", err)
	}
}

// TestRefused: an error about this host has the position of the key, or of the section that the key is missing in.
func TestRefused(t *testing.T) {
	c, err := Parse("c.yaml", []byte(twoPorts+"dpdk:\n  workers: [3, 4]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Refused(nil); err != nil {
		t.Errorf("no faults: %v", err)
	}
	no := errors.New("dpdk: no")
	err = c.Refused([]Fault{{"dpdk.workers[1]", no}, {"ports[1].device", no}, {"dpdk.eal_args", no}, {"flows.nothing", no}})
	const want = "c.yaml:1:1: flows.nothing: no\nc.yaml:4:26: ports[1].device: no\nc.yaml:6:3: dpdk.eal_args: no\nc.yaml:6:16: dpdk.workers[1]: no"
	if err == nil || err.Error() != want {
		t.Errorf("%v\nexpected\n%s", err, want)
	}
}
