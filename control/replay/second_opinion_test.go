//go:build secondopinion

package replay_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/opinion"
)

// facts are what the oracle (testdata/oracle.py) needs besides the captures.
type facts struct {
	Config    map[string]any `json:"config"`
	Fabric    []string       `json:"fabric"`
	Endpoints []grant        `json:"endpoints"`
	Pairs     [][4]any       `json:"pairs"`          // source and destination address, destination QP and true source QP of flows
	Whole     bool           `json:"truth_is_whole"` // there are no other connections
	MayMiss   bool           `json:"may_miss"`       // the evidence may be insufficient
}

type grant struct {
	Prefix  string   `json:"prefix" yaml:"prefix"`
	Accepts []string `json:"accepts" yaml:"accepts"`
}

// TestSecondOpinion has a model of a gateway in Python, scapy and zlib judge scenarios, and every golden case.
func TestSecondOpinion(t *testing.T) {
	var dirs []string
	for _, s := range some(slices.Concat(uncongested(t), congested(t), ported(t))) {
		dirs = append(dirs, writeCase(t, s))
	}
	for _, name := range goldenCases(t) {
		dir := filepath.Join(goldenDir, name)
		dirs = append(dirs, writeCase(t, &scenario{
			name: "golden/" + name, path: filepath.Join(dir, "in.pcap"), fabric: fabricOf(t, dir),
			config: string(readFile(t, filepath.Join(dir, "config.yaml"))), pairs: everyPair(t),
		}))
	}
	out, err := oracle(t, dirs...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var seen map[string]int
	if err := json.Unmarshal(out, &seen); err != nil {
		t.Fatalf("the oracle says something else: %v\n%s", err, out)
	}
	t.Logf("checked: %v", seen)
	for _, what := range []string{"fast-cnp", "long-haul-cnp", "long-haul-cnp-icmpv6", "proxy-notification", "marked", "ICRCs of marked frames", "ICRCs by scapy", "true QPs",
		"true source QPs", "confirmed by static", "confirmed by deth", "confirmed by cm", "confirmed by port", "confirmed by psn"} {
		if seen[what] == 0 {
			t.Errorf("the oracle has seen no %s: %v", what, seen)
		}
	}
	if seen["cases"] != len(dirs) {
		t.Errorf("the oracle has seen %d cases of %d", seen["cases"], len(dirs))
	}
}

// ported are the captures as NICs would send them that choose their UDP source ports in other ways than Linux: the same one for all
// flows, or any one for each.
func ported(t *testing.T) (all []*scenario) {
	for _, c := range captures(t) {
		for _, ports := range []struct {
			name string
			of   func(qp uint32) uint16
		}{
			{"one-port", func(uint32) uint16 { return 0xc000 }},
			{"any-port", func(qp uint32) uint16 { return uint16(0xc000 + qp*7919%0x4000) }},
		} {
			all = append(all, &scenario{
				name: c.name + "/client/" + ports.name, path: withPorts(t, c.path, ports.of), fabric: sides[0].fabric, pairs: truePairs(c), mayMiss: true,
				config: gatewayAddresses + everyoneIsTold + `ports:
  - {name: dc, device: d0, role: fabric, peer: wan, rate: 100Gbps}
  - {name: wan, device: d1, role: wan, peer: dc, rate: 100Gbps}
`,
			})
		}
	}
	return all
}

// withPorts writes a capture with other UDP source ports, and with the ICRCs that go with them.
func withPorts(t *testing.T, path string, port func(qp uint32) uint16) string {
	t.Helper()
	const fileHeader, frameHeader = 24, 16
	b := readFile(t, path)
	for at := fileHeader; at < len(b); {
		n := int(binary.LittleEndian.Uint32(b[at+8:]))
		f := frame{octets: b[at+frameHeader:][:n], length: n}
		if p := f.parse(); p.Kind == packet.RoCEv2 {
			binary.BigEndian.PutUint16(f.octets[p.L4:], port(p.DestQP))
			packet.PutICRC(f.octets, int(p.L3), int(p.BTH), int(p.ICRC), true)
		}
		at += frameHeader + n
	}
	out := filepath.Join(t.TempDir(), filepath.Base(path))
	write(t, out, b)
	return out
}

// everyPair is the truth of every capture. The golden cases are made of them, or of connections that need no learning.
func everyPair(t *testing.T) (all [][4]any) {
	t.Helper()
	seen := map[string]any{}
	for _, c := range captures(t) {
		for _, p := range truePairs(c) {
			key := fmt.Sprint(p[:3])
			if was, ok := seen[key]; ok && was != p[3] {
				t.Fatalf("two captures have different source QPs for %s: %v and %v", key, was, p[3])
			}
			seen[key] = p[3]
			all = append(all, p)
		}
	}
	return all
}

// spoiled is a case with something wrong in it.
type spoiled struct {
	name string
	do   func(t *testing.T, dir string)
}

// TestOracleObjects: the oracle rejects outputs with mistakes. It judges all in one run: most of its time is for loading scapy.
func TestOracleObjects(t *testing.T) {
	all := congested(t)
	proxy := filepath.Join(goldenDir, "proxy")
	const first = 24 + 16 + 14 // the IP header of the first notification, which goes to a proxy
	var dirs, names []string
	for _, of := range []struct {
		*scenario
		spoiled []spoiled
	}{
		{find(t, all, "rc_send_v6/client/long-haul-cnp"), []spoiled{
			{"an octet of the last forwarded frame", flip("forwarded.pcap", -3)},
			{"a forwarded frame's time by a nanosecond", flip("forwarded.pcap", 24+4)},
			{"an octet of the last notification", flip("emitted.pcap", -3)},
			{"a notification is missing", func(t *testing.T, dir string) {
				b := readFile(t, filepath.Join(dir, "emitted.pcap"))
				write(t, filepath.Join(dir, "emitted.pcap"), b[:len(b)-16-110])
			}},
			{"a counter", replace("report.json", `"queue_ecn_marked_packets_total": 2`, `"queue_ecn_marked_packets_total": 3`)},
			{"a flow's source QP", replace("report.json", `"source_qp": 438`, `"source_qp": 439`)},
			{"the truth", replace("facts.json", `"fd00:18::1",78,438]`, `"fd00:18::1",78,437]`)},
			{"the rate", replace("facts.json", `"Rate":`, `"Rate":1`)},
			{"the grant", replace("facts.json", `"prefix":"::/0"`, `"prefix":"fd00:19::/64"`)},
		}},
		{&scenario{name: "golden/proxy", path: filepath.Join(proxy, "in.pcap"), fabric: fabricOf(t, proxy), config: string(readFile(t, filepath.Join(proxy, "config.yaml")))}, []spoiled{
			{"the proxy's address", flip("emitted.pcap", first+19)},
			{"the UDP checksum", flip("emitted.pcap", first+20+7)},
			{"the level", flip("emitted.pcap", first+20+8)},
			{"the five-tuple", flip("emitted.pcap", first+20+8+5)},
			{"the invoking packet", flip("emitted.pcap", first+20+8+16+30)},
			{"the map", replace("facts.json", `"Proxy":"10.1.255.1"`, `"Proxy":"10.1.255.2"`)},
			{"not enabled", replace("facts.json", `"Proxy":{"Enabled":true`, `"Proxy":{"Enabled":false`)},
			{"the limit", replace("facts.json", `"PerProxy":400`, `"PerProxy":500`)},
		}},
		{find(t, all, "rc_send_v6/client/long-haul-cnp-unmapped"), []spoiled{
			{"the truth", replace("facts.json", `"fd00:18::1",78,438]`, `"fd00:18::1",78,437]`)},
			{"no truth", replace("facts.json", `"fd00:18::1",78,438]`, `"fd00:18::1",79,438]`)},
			{"a packet too early", replace("report.json", `"qp_packets": 129`, `"qp_packets": 128`)},
			{"a packet too late", replace("report.json", `"qp_packets": 129`, `"qp_packets": 130`)},
			{"other evidence", replace("report.json", `"qp_evidence": "port"`, `"qp_evidence": "psn"`)},
			{"not confirmed", replace("report.json", `"qp_state": "confirmed"`, `"qp_state": "candidate"`)},
			{"how many were confirmed", replace("report.json", `"port": 2`, `"port": 4`)},
		}},
		{find(t, all, "cm_rping_v4/client/long-haul-cnp-unmapped"), []spoiled{
			{"the truth", replace("facts.json", `"198.18.0.1",120,480]`, `"198.18.0.1",120,481]`)},
			{"a packet too late", replace("report.json", `"qp_packets": 1,`, `"qp_packets": 2,`)},
			{"not released", replace("report.json", `"ended": "dreq"`, `"ended": ""`)},
			{"a message less", replace("report.json", `"cm": 5`, `"cm": 4`)},
			{"how many were confirmed", replace("report.json", `"cm": 2`, `"cm": 4`)},
		}},
	} {
		for _, spoil := range of.spoiled {
			dir, name := writeCase(t, of.scenario), fmt.Sprintf("case%d", len(dirs))
			spoil.do(t, dir)
			dirs, names = append(dirs, filepath.Join(t.TempDir(), name)), append(names, of.name+": "+spoil.name)
			if err := os.Rename(dir, dirs[len(dirs)-1]); err != nil {
				t.Fatal(err)
			}
		}
	}
	out, err := oracle(t, dirs...)
	if err == nil {
		t.Errorf("the oracle found nothing wrong:\n%s", out)
	}
	t.Logf("%s", out)
	for n, name := range names {
		if !bytes.Contains(out, fmt.Appendf(nil, "case%d: ", n)) {
			t.Errorf("%s: the oracle found nothing wrong", name)
		}
	}
}

func flip(name string, at int) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		path := filepath.Join(dir, name)
		b := readFile(t, path)
		b[(at+len(b))%len(b)] ^= 1
		write(t, path, b)
	}
}

func replace(name, from, to string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		path := filepath.Join(dir, name)
		b := readFile(t, path)
		if !bytes.Contains(b, []byte(from)) {
			t.Fatalf("%s has no %s", name, from)
		}
		write(t, path, bytes.ReplaceAll(b, []byte(from), []byte(to)))
	}
}

// oracle runs the Python script. Without it, Python or scapy there is no second opinion, which is an error like any.
func oracle(t *testing.T, dirs ...string) ([]byte, error) {
	t.Helper()
	for _, script := range []string{"oracle.py", "model.py", "pairing.py", "wire.py"} {
		readFile(t, filepath.Join("testdata", script)) // so that go test knows what the result depends on
	}
	return exec.Command("/usr/bin/python3", append([]string{"-W", "ignore", "testdata/oracle.py"}, dirs...)...).CombinedOutput()
}

// writeCase replays a scenario and lays all that the oracle wants into a directory.
func writeCase(t *testing.T, s *scenario) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), strings.ReplaceAll(s.name, "/", "."))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r := replayed(t, s)
	c := parseConfig(t, s.config)
	f := facts{Config: modelled(t, s.config, c), Endpoints: []grant{}, Pairs: s.pairs, Whole: s.truth != nil, MayMiss: s.mayMiss}
	for _, p := range s.fabric {
		f.Fabric = append(f.Fabric, p.String())
	}
	var said struct {
		Endpoints []grant `yaml:"endpoints"`
	}
	if err := yaml.Unmarshal([]byte(s.config), &said); err != nil {
		t.Fatal(err)
	}
	f.Endpoints = append(f.Endpoints, said.Endpoints...)
	b, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var report bytes.Buffer
	if err := r.report.Write(&report); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"facts.json": b, "report.json": report.Bytes(), "in.pcap": readFile(t, s.path),
		"forwarded.pcap": r.forwardedPcap, "emitted.pcap": r.emittedPcap,
	} {
		write(t, filepath.Join(dir, name), content)
	}
	return dir
}

// modelled is a configuration in the terms of the model (testdata/model.py). Limits and prefixes are those of the text: the gateway has them as tables.
func modelled(t *testing.T, text string, c *config.Config) map[string]any {
	t.Helper()
	var said struct {
		Domain *struct {
			Members []string `yaml:"members"`
			Sources []string `yaml:"notification_sources"`
		} `yaml:"domain"`
		Notifications struct {
			Limits map[string]string `yaml:"limits"`
		} `yaml:"notifications"`
		Proxy struct {
			Limits map[string]string `yaml:"limits"`
		} `yaml:"proxy"`
	}
	if err := yaml.Unmarshal([]byte(text), &said); err != nil {
		t.Fatal(err)
	}
	limit := func(limits map[string]string, key string, otherwise int) int {
		if limits[key] == "" {
			return otherwise
		}
		n, err := strconv.Atoi(strings.TrimSuffix(limits[key], "/s"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	type object = map[string]any
	var ports []object
	for i := range c.Ports {
		p := &c.Ports[i]
		masks := make([]object, p.Classes)
		for class := range masks {
			mask := uint64(0)
			for dscp, of := range p.ClassOf {
				if int(of) == class {
					mask |= 1 << dscp
				}
			}
			masks[class] = object{"DSCP": mask}
		}
		ports = append(ports, object{
			"Role": p.Role, "Peer": p.Peer, "Rate": p.Rate, "QueueCapacity": p.Capacity, "QueueFrames": p.Frames, "PerFlow": p.Policy.PerFlow,
			"Classes": masks, "KMin": p.Policy.KMin, "KMax": p.Policy.KMax, "Response": p.Policy.Response,
		})
	}
	var domain object
	if said.Domain != nil {
		domain = object{"Members": said.Domain.Members, "NotificationSources": said.Domain.Sources}
	}
	address := func(has bool, a packet.Addr) string {
		if !has {
			return ""
		}
		return a.Netip().String()
	}
	p := c.Dataplane.Policy
	b, enabled := &p.Build, &p.Who.Enabled
	return object{
		"DPDK": c.DPDK, "Ports": ports, "Gateway": object{"IPv4": address(b.HasIPv4, b.IPv4), "IPv6": address(b.HasIPv6, b.IPv6)},
		"Notifications": object{
			"DSCP":     b.DSCP,
			"FastCNP":  object{"Enabled": enabled[packet.FastCNP], "OptionType": b.Code.FastCNPOption, "TraceOptionType": b.Code.FastCNPTraceOption, "ICRCExtensionHeaders": b.ICRCExtensionHeaders},
			"LongHaul": object{"Enabled": enabled[packet.LongHaulCNP], "ICMPv6Type": b.Code.LongHaulICMPv6Type},
			"Limits": object{
				"PerDestination": limit(said.Notifications.Limits, "per_destination", 1_000_000), "PerPort": limit(said.Notifications.Limits, "per_port", 10_000_000),
			},
		},
		"Proxy": object{
			"Enabled": enabled[packet.ProxyNotification], "Port": b.Code.ProxyPort, "Senders": c.Senders, "PerProxy": limit(said.Proxy.Limits, "per_proxy", 100_000),
		},
		"Domain": domain, "QPMap": c.QPMap,
	}
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestTsharkUnderstandsNotifications: nothing malformed in Ethernet, IP, UDP or ICMPv6. tshark doesn't know opcode 0x81.
func TestTsharkUnderstandsNotifications(t *testing.T) {
	var all [][]byte
	for _, s := range some(congested(t)) {
		for _, n := range replayed(t, s).emitted {
			all = append(all, n.octets)
		}
	}
	const bad = "_ws.malformed or ip.checksum.status == 0 or icmpv6.checksum.status == 0 or udp.length > 200"
	const known = "(udp.dstport == 4791 and infiniband.bth.opcode == 0x81 and udp.length in {36,40}) or (icmpv6.type == 200 and ipv6.plen == 16)"
	out := opinion.Tshark(t, all, "-o", "ip.check_checksum:TRUE", "-Y", "("+known+") and not ("+bad+")")
	if lines := strings.Count(out, "\n"); len(all) < 100 || lines != len(all) {
		t.Errorf("tshark knows %d of %d notifications, and finds nothing wrong with them:\n%s", lines, len(all), out)
	}
}

// TestGoldenInputs: the inputs of the golden cases are what the script makes.
func TestGoldenInputs(t *testing.T) {
	dir, script := t.TempDir(), filepath.Join(goldenDir, "make_inputs.py")
	readFile(t, script)
	if out, err := exec.Command("/usr/bin/python3", "-W", "ignore", script, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range goldenCases(t) {
		got, want := readFile(t, filepath.Join(goldenDir, name, "in.pcap")), readFile(t, filepath.Join(dir, name, "in.pcap"))
		if !bytes.Equal(got, want) {
			t.Errorf("%s/in.pcap is not what make_inputs.py makes", name)
		}
	}
}
