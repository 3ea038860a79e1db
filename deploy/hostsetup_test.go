//go:build live && !nodpdk

package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// fakeSS stands for ss(8) with one session that sshd serves, which a test can't have in a namespace of its own.
const fakeSS = `#!/bin/sh
echo '0 0 [::ffff:198.51.100.1]:22 [::ffff:198.51.100.9]:50000 users:(("sshd-session",pid=1,fd=4))'
echo '0 0 [fe80::77%eno1]:22 [fe80::99%eno1]:50000 users:(("sshd",pid=1,fd=4))'
echo '0 0 203.0.113.1:22 203.0.113.9:50000 users:(("other",pid=1,fd=4))'
`

// TestHostSetupKeepsOwnNetwork: an interface by which the machine is, or may be, reached is refused before anything is done.
func TestHostSetupKeepsOwnNetwork(t *testing.T) {
	script, err := filepath.Abs("../scripts/host-setup")
	if err != nil {
		t.Fatal(err)
	}
	const wire = "ip link add eno1 type veth peer name far; ip link set eno1 up; ip link set far up; "
	for _, c := range []struct {
		name, before, run, refusal string
	}{
		{"nothing", wire, "host-setup --dry-run --interface eno1", ""},
		{"a veth whose other end is here", wire, "host-setup --dry-run --interface far", ""},
		{"under a bridge", wire + "ip link add br0 type bridge; ip link set eno1 master br0; ip link set br0 up; ip address add 198.51.100.1/24 dev br0; ip route add default dev br0",
			"host-setup --dry-run --interface eno1", "eno1 carries the traffic of br0"},
		{"under a macvlan", wire + "ip link add link eno1 name eno1.5 type macvlan", "host-setup --dry-run --interface eno1", "eno1 carries the traffic of eno1.5"},
		{"a macvlan", wire + "ip link add link eno1 name eno1.5 type macvlan", "host-setup --dry-run --interface eno1.5", ""},
		{"a name like another's", wire + "ip link add eno1x type veth peer name farx; ip link set eno1x up; ip route add default dev eno1x", "host-setup --dry-run --interface eno1", ""},
		{"default route", wire + "ip route add default dev eno1", "host-setup --dry-run --interface eno1", "eno1 has a default route"},
		{"default route of IPv6", wire + "ip -6 route add default dev eno1", "host-setup --dry-run --interface eno1", "eno1 has a default route"},
		{"default route of another table", wire + "ip route add default dev eno1 table 100", "host-setup --dry-run --interface eno1", "eno1 has a default route"},
		{"default route over several", wire + "ip route add default nexthop dev far nexthop dev eno1", "host-setup --dry-run --interface eno1", "eno1 has a default route"},
		{"default route, by force", wire + "ip route add default dev eno1", "host-setup --dry-run --force --interface eno1", "eno1 has a default route"},
		{"an address", wire + "ip address add 203.0.113.1/24 dev eno1; ip -6 address add 2001:db8::1/64 dev eno1", "host-setup --dry-run --interface eno1",
			"eno1 has an address (203.0.113.1/24, 2001:db8::1/64)"},
		{"an address, by force", wire + "ip address add 203.0.113.1/24 dev eno1", "host-setup --dry-run --force --interface eno1", ""},
		{"an SSH session that sshd serves", wire + "ip address add 198.51.100.1/24 dev eno1", "host-setup --dry-run --force --interface eno1",
			"eno1 carries the SSH session from 198.51.100.9"},
		{"an SSH session by a link-local address", wire + "ip -6 address add fe80::77/64 dev eno1", "host-setup --dry-run --interface eno1",
			"eno1 carries the SSH session from fe80::99"},
		{"an SSH session by a route", wire + "ip route add 198.51.100.9/32 dev eno1", "host-setup --dry-run --interface eno1",
			"eno1 carries the SSH session from 198.51.100.9"},
		{"sudo in an SSH session", wire + "ip address add 192.0.2.1/24 dev eno1", "env SSH_CONNECTION='192.0.2.9 50000 192.0.2.1 22' sh -c 'env -i PATH=$PATH host-setup --dry-run --force --interface eno1; exit $?'",
			"eno1 carries the SSH session from 192.0.2.9"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "ss"), []byte(fakeSS), 0o755); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("bash", "-c", "set -e; "+c.before+"\n"+strings.ReplaceAll(c.run, "host-setup", script))
			cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
			out, err := cmd.CombinedOutput()
			refused := !strings.Contains(string(out), "address flush dev")
			if (err != nil) != (c.refusal != "") || refused != (c.refusal != "") || !strings.Contains(string(out), c.refusal) {
				t.Errorf("%v, expected a refusal with %q:\n%s", err, c.refusal, out)
			}
		})
	}
}

// TestHostSetupDryRun: a dry run doesn't report as done what it didn't do.
func TestHostSetupDryRun(t *testing.T) {
	cmd := exec.Command("../scripts/host-setup", "--dry-run", "--cores", "2,3")
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), "are kept free") || !strings.Contains(string(out), "isolcpus=2,3 ") {
		t.Errorf("%v:\n%s", err, out)
	}
}
