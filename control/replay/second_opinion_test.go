//go:build secondopinion

package replay_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/control/config"
)

// facts are what the oracle must know besides the captures: testdata/oracle.py.
type facts struct {
	Config    *config.Config `json:"config"`
	Fabric    []string       `json:"fabric"`
	Endpoints []grant        `json:"endpoints"`
	Truth     [][2]any       `json:"truth"`
}

type grant struct {
	Prefix  string   `json:"prefix"`
	Accepts []string `json:"accepts"`
}

// TestSecondOpinion has a model of a gateway in Python, scapy and zlib judge every scenario and every golden case.
func TestSecondOpinion(t *testing.T) {
	var dirs []string
	for _, s := range append(uncongested(t), congested(t)...) {
		dirs = append(dirs, writeCase(t, s))
	}
	for _, name := range goldenCases(t) {
		dir := filepath.Join(goldenDir, name)
		dirs = append(dirs, writeCase(t, &scenario{
			name: "golden/" + name, path: filepath.Join(dir, "in.pcap"), fabric: goldenFabric,
			config: string(readFile(t, filepath.Join(dir, "config.yaml"))),
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
	for _, what := range []string{"fast-cnp", "long-haul-cnp", "long-haul-cnp-icmpv6", "marked", "ICRCs of marked frames", "ICRCs by scapy", "true QPs"} {
		if seen[what] == 0 {
			t.Errorf("the oracle has seen no %s: %v", what, seen)
		}
	}
	if seen["cases"] != len(dirs) {
		t.Errorf("the oracle has seen %d cases of %d", seen["cases"], len(dirs))
	}
}

// TestOracleObjects: a judge that nods at everything proves nothing.
func TestOracleObjects(t *testing.T) {
	var s *scenario
	for _, c := range congested(t) {
		if c.name == "rc_send_v6/client/long-haul-cnp" {
			s = c
		}
	}
	for _, spoil := range []struct {
		name string
		do   func(t *testing.T, dir string)
	}{
		{"an octet of the last forwarded frame", flip("forwarded.pcap", -3)},
		{"a forwarded frame's time by a nanosecond", flip("forwarded.pcap", 24+4)},
		{"an octet of the last notification", flip("emitted.pcap", -3)},
		{"a notification is missing", func(t *testing.T, dir string) {
			b := readFile(t, filepath.Join(dir, "emitted.pcap"))
			write(t, filepath.Join(dir, "emitted.pcap"), b[:len(b)-16-110])
		}},
		{"a counter", replace("report.json", `"queue_ecn_marked_packets_total": 2`, `"queue_ecn_marked_packets_total": 3`)},
		{"a flow's source QP", replace("report.json", `"source_qp": 438`, `"source_qp": 439`)},
		{"the truth", replace("facts.json", `["fd00:18::2",438]`, `["fd00:18::2",437]`)},
		{"the rate", replace("facts.json", `"Role":1,"Peer":0,"Rate":`, `"Role":1,"Peer":0,"Rate":1`)},
		{"the grant", replace("facts.json", `"prefix":"::/0"`, `"prefix":"fd00:19::/64"`)},
	} {
		t.Run(spoil.name, func(t *testing.T) {
			dir := writeCase(t, s)
			spoil.do(t, dir)
			if out, err := oracle(t, dir); err == nil {
				t.Errorf("the oracle found nothing wrong:\n%s", out)
			}
		})
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
	for _, script := range []string{"oracle.py", "model.py", "wire.py"} {
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
	c.Warnings = nil
	f := facts{Config: c, Endpoints: []grant{}, Truth: s.truth}
	for _, p := range s.fabric {
		f.Fabric = append(f.Fabric, p.String())
	}
	for _, e := range c.Endpoints {
		g := grant{Prefix: e.Prefix.String(), Accepts: []string{}}
		for _, format := range e.Accepts {
			g.Accepts = append(g.Accepts, format.String())
		}
		f.Endpoints = append(f.Endpoints, g)
	}
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

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestTsharkUnderstandsNotifications: nothing malformed in Ethernet, IP, UDP or ICMPv6. tshark doesn't know opcode 0x81.
func TestTsharkUnderstandsNotifications(t *testing.T) {
	const fileHeader = 24
	var all []byte
	n := 0
	for _, s := range congested(t) {
		r := replayed(t, s)
		n += len(r.emitted)
		if all == nil {
			all = append(all, r.emittedPcap[:fileHeader]...)
		}
		all = append(all, r.emittedPcap[fileHeader:]...)
	}
	path := filepath.Join(t.TempDir(), "emitted.pcap")
	write(t, path, all)
	tshark := func(filter string) string {
		t.Helper()
		out, err := exec.Command("tshark", "-r", path, "-o", "ip.check_checksum:TRUE", "-Y", filter).Output()
		if err != nil {
			t.Fatalf("tshark -Y %q: %v", filter, err)
		}
		return string(out)
	}
	if out := tshark("_ws.malformed or ip.checksum.status == 0 or icmpv6.checksum.status == 0 or udp.length > 200"); out != "" {
		t.Errorf("tshark objects to:\n%s", out)
	}
	known := tshark("(udp.dstport == 4791 and infiniband.bth.opcode == 0x81 and udp.length in {36,40}) or (icmpv6.type == 200 and ipv6.plen == 16)")
	if lines := strings.Count(known, "\n"); n == 0 || lines != n {
		t.Errorf("tshark knows %d of %d notifications", lines, n)
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
