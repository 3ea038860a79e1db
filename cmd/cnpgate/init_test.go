package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestInitRefuses: what is wrong is said before anything is listened to, and an existing file stays as it is.
func TestInitRefuses(t *testing.T) {
	dir := workspace(t)
	for _, c := range []struct{ args, says string }{
		{"--fabric a", "--wan is missing; expected the interface on the WAN's side"},
		{"--fabric a --tap", "--wan is missing; expected the second mirror port, or --hosts PREFIX,..."},
		{"--fabric a --wan b --tap --hosts 10.1.0.0/16", "leave out --wan, or --hosts"},
		{"--fabric a --tap --hosts 10.1.0.1/16", "--hosts: "},
		{"--fabric a --wan a", "--fabric and --wan are both a; expected two interfaces"},
		{"--fabric a --wan b --listen -1s", "--listen is -1s; expected 0s to 24h0m0s"},
		{"--fabric a --wan b --rate 10", "--rate"},
		{"--fabric a,b --wan b", "has a comma in its name"},
		{"--fabric none-such --wan b", "--fabric: interface none-such: there is none of that name"},
		{"--fabric lo --wan b", "--fabric: interface lo isn't an Ethernet interface"},
		{"--fabric a-name-that-is-too-long --wan b", "expected a name of 1 to 15 characters"},
	} {
		r := within(t, dir, append(strings.Fields("init -o gw.yaml --force"), strings.Fields(c.args)...)...)
		if r.status != 1 || r.stdout != "" || !strings.Contains(r.stderr, c.says) {
			t.Errorf("init %s: exit status %d, expected 1 and %q:\n%s%s", c.args, r.status, c.says, r.stdout, r.stderr)
		}
	}
	if b, err := os.ReadFile(filepath.Join(dir, "gw.yaml")); err != nil || string(b) != goodConfig {
		t.Errorf("gw.yaml has changed: %v\n%s", err, b)
	}
}

// TestInitPCI: the answer to a PCI address names the device's interface.
func TestInitPCI(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "0000:3b:00.1", "net", "eth7"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"eth0": "", "0000:3b:00.1": "expected its interface, eth7", "3b:00.1": "0000:3b:00.1 is a PCI address; expected its interface, eth7", "3b:00.0": "of no interface of the kernel's",
	} {
		if err := refusePCI(dir, name); (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// TestIsVirtual: what kernels say of a hypervisor.
func TestIsVirtual(t *testing.T) {
	for name, c := range map[string]struct {
		path, text string
		want       bool
	}{
		"x86":            {"proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu hypervisor lahf_lm\n", true},
		"x86, last flag": {"proc/cpuinfo", "flags\t\t: fpu hypervisor\n", true},
		"x86, of iron":   {"proc/cpuinfo", "model name\t: hypervisor\nflags\t\t: fpu lahf_lm\n", false},
		"Arm":            {"proc/device-tree/hypervisor", "", true},
		"Xen":            {"sys/hypervisor/type", "xen\n", true},
		"unknown":        {"proc/version", "Linux", false},
	} {
		root := t.TempDir()
		if err := errors.Join(os.MkdirAll(filepath.Join(root, filepath.Dir(c.path)), 0o700), os.WriteFile(filepath.Join(root, c.path), []byte(c.text), 0o600)); err != nil {
			t.Fatal(err)
		}
		if got := isVirtual(root); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
