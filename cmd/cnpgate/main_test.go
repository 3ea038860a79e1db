package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// binary is the program under test, as it is built without DPDK.
var binary string

// linked makes the program part of the test binary too, so that go test doesn't use a cached result of an older program.
var linked = main

func TestMain(m *testing.M) {
	if linked == nil {
		panic("no program")
	}
	os.Exit(build(m))
}

// binaries names the folder with the programs for the processes that a test starts for its attempts (ontime.Again).
const binaries = "CNPGATE_TEST_BINARIES"

func build(m *testing.M) int {
	if dir := os.Getenv(binaries); dir != "" {
		binary = filepath.Join(dir, "cnpgate")
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "cnpgate")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "cnpgate")
	if out, err := exec.Command("go", "build", "-tags", "nodpdk", "-ldflags=-w", "-o", binary, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
		return 1
	}
	if err := os.Chmod(dir, 0o755); err != nil { // for a test that is nobody
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := os.Setenv(binaries, dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// ran is what a run of the program gave.
type ran struct {
	status         int
	stdout, stderr string
}

// cnpgate runs the program in a directory.
func cnpgate(t *testing.T, dir string, args ...string) ran {
	t.Helper()
	return finished(t, command(dir, args...))
}

// within runs a command line in this process, which spares a test of many of them the starts. There is no sandbox here, and there may be DPDK.
func within(t *testing.T, dir string, args ...string) ran {
	t.Helper()
	before, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	defer t.Chdir(before)
	var stdout, stderr bytes.Buffer
	c := root()
	c.SetArgs(args)
	c.SetOut(&stdout)
	c.SetErr(&stderr)
	status := execute(c)
	return ran{status, stdout.String(), stderr.String()}
}

func command(dir string, args ...string) *exec.Cmd {
	c := exec.Command(binary, args...)
	c.Dir = dir
	return c
}

func finished(t *testing.T, c *exec.Cmd) ran {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if c.Stdout == nil {
		c.Stdout = &stdout
	}
	c.Stderr = &stderr
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return ran{c.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

const goodConfig = `gateway: {name: gw, ipv4: 10.255.0.1, ipv6: "fd00:ffff::1"}
ports:
  - {name: dc, device: d0, role: fabric, peer: wan, rate: 1Gbps}
  - {name: wan, device: d1, role: wan, peer: dc, rate: 1Mbps}
profiles: {default: {mode: thresholds, k_base: 9.1KB}}
endpoints: [{prefix: "fd00:18::/64", accepts: [fast-cnp]}]
notifications: {fast_cnp: {enabled: true}}
`

// workspace has a configuration and a capture, and is the current directory of the program.
func workspace(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	capture, err := os.ReadFile("../../testdata/captures/rc_send_v6.pcap")
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, "in.pcap", capture)
	put(t, dir, "gw.yaml", []byte(goodConfig))
	return dir
}

func put(t *testing.T, dir, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// names lists a directory, without the workspace's own files.
func names(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "in.pcap" && e.Name() != "gw.yaml" {
			out = append(out, e.Name())
		}
	}
	return out
}

func TestCommands(t *testing.T) {
	dir := workspace(t)
	put(t, dir, "bad.yaml", []byte(strings.Replace(goodConfig, "rate: 1Mbps", "rate: fast", 1)))
	put(t, dir, "long.yaml", []byte(strings.Replace(goodConfig, "9.1KB", "125KB", 1)))
	put(t, dir, "warns.yaml", []byte(strings.Replace(goodConfig, "9.1KB", "200B", 1)))
	for _, c := range []struct {
		args           string
		status         int
		stdout, stderr string // parts; "" for nothing at all
	}{
		{"version", 0, "cnpgate ", ""},
		{"", 0, "replay", ""},
		{"--help", 0, "Usage:", ""},
		{"replay --help", 0, "--fabric PREFIX", ""},
		{"replya", 1, "", `unknown command "replya"`},
		{"replya --config gw.yaml", 1, "", `cnpgate: unknown`},
		{"check --config gw.yaml", 0, "gw.yaml is valid", "warning"},
		{"check --wide --config gw.yaml", 0, "wan   wan     dc    1Mbps  -    1       4.55KB       9.1KB           1.05MB    1024    8.39s   1ms\n", "warning"},
		{"check --config gw.yaml", 0, "PORT", "cnpgate: warning: port wan: a full queue takes 8.39s to drain (1.05MB at 1Mbps), but RC senders"},
		{"check --config gw.yaml --offline", 0, "gw.yaml is valid", "warning"},
		{"check --config gw.yaml --offline --devices", 1, "", "--devices and --offline exclude each other"},
		{"check --config gw.yaml", 0, "PORT", "within 537ms; lower ports[1].queue_capacity, or check ports[1].rate\n"},
		{"check --config long.yaml", 0, "PORT", "K_max alone takes 1s: lower the profile's k_base or alpha, or check ports[1].rate and rtt\n"},
		{"check --config gw.yaml -o json", 0, `"queueing_delay_ns": 8388608000,`, "cnpgate: warning: port wan"},
		{"check -o json -c warns.yaml", 0, `warns.yaml:`, "cnpgate: warning: warns.yaml:"},
		{"check -o json -c bad.yaml", 1, "", "bad.yaml:4:56: ports[1].rate: "},
		{"check -o xml -c gw.yaml", 1, "", `--output: "xml" is not known; expected text or json`},
		{"check -o json --config gw.yaml --devices", 1, "", "built without DPDK"},
		{"check -c warns.yaml", 0, "warns.yaml is valid", "cnpgate: warning: warns.yaml:"},
		{"check --config bad.yaml", 1, "", "bad.yaml:4:56: ports[1].rate: "},
		{"check --config none.yaml", 1, "", "none.yaml"},
		{"check", 1, "", "0 configuration files are given; expected one: cnpgate check FILE"},
		{"check --config gw.yaml more", 1, "", "2 configuration files are given"},
		{"check --verbose", 1, "", "unknown flag: --verbose"},
		{"run --config gw.yaml --report run.json", 1, "", "built without DPDK"},
		{"check --config gw.yaml --devices", 1, "gw.yaml is valid", "built without DPDK"},
	} {
		t.Run(c.args, func(t *testing.T) {
			got := cnpgate(t, dir, strings.Fields(c.args)...)
			if got.status != c.status || !tells(got.stdout, c.stdout) || !tells(got.stderr, c.stderr) {
				t.Errorf("exit status %d, want %d\nstdout: %s\nwant    %s\nstderr: %s\nwant    %s", got.status, c.status, got.stdout, c.stdout,
					got.stderr, c.stderr)
			}
			if left := names(t, dir); len(left) != 3 {
				t.Errorf("files left behind: %q", left)
			}
		})
	}
}

// TestCheckJSON: what check says as JSON, member by member.
func TestCheckJSON(t *testing.T) {
	dir := workspace(t)
	put(t, dir, "gw.yaml", []byte(strings.Replace(strings.Replace(goodConfig, "rate: 1Mbps", "rate: 10Gbps, rtt: 20ms", 1), "9.1KB", "1MB", 1)))
	const want = `{
  "file": "gw.yaml",
  "warnings": [],
  "ports": [
    {
      "name": "dc",
      "role": "fabric",
      "peer": "wan",
      "rate_bps": 1000000000,
      "rtt_ns": 0,
      "classes": [
        "default"
      ],
      "k_min_bytes": 500000,
      "k_max_bytes": 1000000,
      "queue_capacity_bytes": 2000000,
      "queue_capacity_frames": 1953,
      "queueing_delay_ns": 16000000,
      "per_flow_ns": 1000000
    },
    {
      "name": "wan",
      "role": "wan",
      "peer": "dc",
      "rate_bps": 10000000000,
      "rtt_ns": 20000000,
      "classes": [
        "default"
      ],
      "k_min_bytes": 12500000,
      "k_max_bytes": 25000000,
      "queue_capacity_bytes": 50000000,
      "queue_capacity_frames": 48828,
      "queueing_delay_ns": 40000000,
      "per_flow_ns": 20000000
    }
  ]
}
`
	if got := cnpgate(t, dir, "check", "-c", "gw.yaml", "-o", "json"); got != (ran{stdout: want}) {
		t.Errorf("exit status %d\nstdout: %s\nwant    %s\nstderr: %s", got.status, got.stdout, want, got.stderr)
	}
}

// TestUnreadableConfiguration: the error for an unreadable file says so, and what to do.
func TestUnreadableConfiguration(t *testing.T) {
	dir := workspace(t)
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "gw.yaml"), 0); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"gw.yaml":      "cnpgate: gw.yaml: this user may not read the configuration file; check owner and mode: permission denied\n",
		".":            "cnpgate: .: can't read the configuration file: is a directory; give the YAML file in this directory\n",
		"gw.yml":       "cnpgate: gw.yml: there is no such configuration file; check the path: no such file or directory\n",
		"gw.yaml/more": "cnpgate: gw.yaml/more: can't read the configuration file: not a directory\n",
	} {
		c := command(dir, "check", "--config", path)
		c.SysProcAttr = nobody()
		if got := finished(t, c); got.status != 1 || got.stdout != "" || got.stderr != want {
			t.Errorf("%s: exit status %d, stdout %q, stderr %q, want %q", path, got.status, got.stdout, got.stderr, want)
		}
	}
}

// reports whether a part is in the output; "" wants it to be empty.
func tells(output, part string) bool {
	if part == "" {
		return output == ""
	}
	return strings.Contains(output, part)
}

func nobody() *syscall.SysProcAttr {
	if os.Getuid() != 0 {
		return nil // is somebody without rights already
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
}
