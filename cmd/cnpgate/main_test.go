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

// linked makes the program a part of the test binary too, for go test not to take an earlier result for the present program's.
var linked = main

func TestMain(m *testing.M) {
	if linked == nil {
		panic("no program")
	}
	os.Exit(build(m))
}

func build(m *testing.M) int {
	dir, err := os.MkdirTemp("", "cnpgate")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "cnpgate")
	c := exec.Command("go", "build", "-tags", "nodpdk", "-o", binary, ".")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
		return 1
	}
	if err := os.Chmod(dir, 0o755); err != nil { // for a test that is nobody
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

const goodConfig = `gateway: {name: gw, ipv4: 192.0.2.1, ipv6: "fd00:ffff::1"}
ports:
  - {name: dc, device: d0, role: fabric, peer: wan, rate: 1Gbps}
  - {name: wan, device: d1, role: wan, peer: dc, rate: 1Mbps}
profiles: {default: {k_base: 9.1KB}}
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

// names lists a directory, without what the workspace came with.
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
		{"check --config gw.yaml", 0, "gw.yaml is valid", ""},
		{"check --config gw.yaml", 0, "port wan (wan, peer dc): 1000000 bit/s, K_min 4550, K_max 9100", ""},
		{"check -c warns.yaml", 0, "warns.yaml is valid", "cnpgate: warning: warns.yaml:"},
		{"check --config bad.yaml", 1, "", "bad.yaml:4:56: ports[1].rate: "},
		{"check --config none.yaml", 1, "", "none.yaml"},
		{"check", 1, "", `"config" not set`},
		{"check --config gw.yaml more", 1, "", `"more"`},
		{"check --verbose", 1, "", "unknown flag: --verbose"},
		{"run --config gw.yaml --report run.json", 1, "", "built without DPDK"},
		{"check --config gw.yaml --devices", 1, "gw.yaml is valid", "built without DPDK"},
		{"run --config gw.yaml --report no/run.json", 1, "", "--report: open no/run.json"},
	} {
		t.Run(c.args, func(t *testing.T) {
			got := cnpgate(t, dir, strings.Fields(c.args)...)
			if got.status != c.status || !tells(got.stdout, c.stdout) || !tells(got.stderr, c.stderr) {
				t.Errorf("exit status %d, want %d\nstdout: %s\nwant    %s\nstderr: %s\nwant    %s", got.status, c.status, got.stdout, c.stdout,
					got.stderr, c.stderr)
			}
			if left := names(t, dir); len(left) != 2 {
				t.Errorf("files left behind: %q", left)
			}
		})
	}
}

// tells whether a part is in the output; "" wants it to be empty.
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
