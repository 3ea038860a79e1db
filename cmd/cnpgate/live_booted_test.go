//go:build live && booted && !nodpdk

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
)

// bootTime is how long a machine may take to boot, or a unit to reach a state.
const bootTime = 2 * time.Minute

// shortOutage is the longest allowed time in which nothing is forwarded while a standby takes over (af_packet).
const shortOutage = 60 * time.Millisecond

// machine is a Debian that systemd has booted in a container, in the network namespace of the test.
type machine struct {
	t    *testing.T
	root string
	pid  int // of its systemd
}

// bootMachine boots the system in the folder that scripts/test-systemd has made. It ends with the test.
func bootMachine(t *testing.T) *machine {
	t.Helper()
	root := os.Getenv("CNPGATE_ROOT")
	if root == "" {
		t.Fatal("CNPGATE_ROOT names no system: run scripts/test-systemd")
	}
	log, err := os.Create(filepath.Join(t.TempDir(), "console"))
	if err != nil {
		t.Fatal(err)
	}
	nspawn := exec.Command("systemd-nspawn", "--quiet", "--directory", root, "--boot", "--register=no", "--keep-unit", "--capability=all",
		"--network-namespace-path", fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), syscall.Gettid()), "--console=read-only")
	nspawn.Env = append(os.Environ(), "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1")
	nspawn.Stdout, nspawn.Stderr = log, log
	if err := nspawn.Start(); err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, root: root}
	t.Cleanup(func() {
		if m.pid != 0 {
			_ = syscall.Kill(m.pid, syscall.SIGKILL) // its processes end with it
		}
		_ = nspawn.Process.Signal(syscall.SIGTERM)
		_ = nspawn.Wait()
	})
	for deadline := time.Now().Add(bootTime); m.pid == 0; time.Sleep(10 * time.Millisecond) {
		m.pid = systemdBelow(nspawn.Process.Pid)
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("no systemd: %s", text)
		}
	}
	m.until("systemctl is-system-running --wait | grep -E 'running|degraded'")
	return m
}

// systemdBelow is the process ID of the child that is a systemd, 0 if there is none.
func systemdBelow(pid int) int {
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for _, child := range strings.Fields(string(children)) {
		if name, _ := os.ReadFile("/proc/" + child + "/comm"); string(name) == "systemd\n" {
			var n int
			_, _ = fmt.Sscan(child, &n)
			return n
		}
	}
	return 0
}

// try runs a shell command in the machine.
func (m *machine) try(command string) (string, error) {
	out, err := exec.Command("nsenter", "--target", fmt.Sprint(m.pid), "--mount", "--uts", "--ipc", "--pid", "--cgroup", "--root", "--wd",
		"/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", "sh", "-c", command).CombinedOutput()
	return string(out), err
}

func (m *machine) run(command string) string {
	m.t.Helper()
	out, err := m.try(command)
	if err != nil {
		m.t.Fatalf("%s: %v\n%s\n%s", command, err, out, m.journal())
	}
	return strings.TrimSpace(out)
}

// until repeats a command until it succeeds.
func (m *machine) until(command string) {
	m.t.Helper()
	for deadline := time.Now().Add(bootTime); ; time.Sleep(50 * time.Millisecond) {
		out, err := m.try(command)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			m.t.Fatalf("never: %s: %v\n%s\n%s", command, err, out, m.journal())
		}
	}
}

func (m *machine) journal() string {
	out, _ := m.try("journalctl --no-pager --lines 60 --output cat --unit 'cnpgate*'")
	return out
}

func (m *machine) write(path, text string) {
	m.t.Helper()
	if err := os.MkdirAll(filepath.Join(m.root, filepath.Dir(path)), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(m.root, path), []byte(text), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

// property is a property of a unit.
func (m *machine) property(unit, name string) string {
	m.t.Helper()
	return m.run("systemctl show --value --property " + name + " " + unit)
}

// becomes waits until systemd's status line of a unit begins with a text.
func (m *machine) becomes(unit, text string) {
	m.t.Helper()
	m.until(fmt.Sprintf("systemctl show --value --property StatusText %s | grep '^%s'", unit, text))
}

// pairOfUnits writes the configuration, and makes two units that both stand by, as docs/operations.md says.
func (m *machine) pairOfUnits(config string) {
	m.t.Helper()
	m.write("/etc/cnpgate/cnpgate.yaml", config)
	unit, err := os.ReadFile(filepath.Join(m.root, "lib/systemd/system/cnpgate.service"))
	if err != nil {
		m.t.Fatal(err)
	}
	text := strings.Replace(string(unit), "cnpgate run ", "cnpgate run --standby ", 1)
	m.write("/etc/systemd/system/cnpgate.service", text)
	m.write("/etc/systemd/system/cnpgate-b.service", strings.Replace(text, "report.json", "report-b.json", 1))
	m.run("systemctl daemon-reload")
}

const bootedConfig = `gateway: {name: booted, ipv4: 10.255.0.1}
dpdk: {hugepages: false, workers: [0], idle: backoff}
ports:
  - {name: fabric, device: "net_af_packet0,iface=a0", role: fabric, peer: wan, rate: 10Gbps, mtu: 1500, queue_capacity: 4MB}
  - {name: wan, device: "net_af_packet1,iface=b0", role: wan, peer: fabric, rate: 10Gbps, mtu: 1500, queue_capacity: 4MB}
flows: {capacity: 1Ki}
management: {listen: "unix:/run/cnpgate/cnpgate.sock", metrics: "127.0.0.1:9820", web: {listen: "127.0.0.1:8420"}}
`

// TestBooted: the package in a booted Debian, with two units that stand by for each other: a NIC that appears late, 20 times the end of the active one by
// SIGKILL, reload, a refused reload, an upgrade, a refused configuration at a start, and the removal. Frames flow all the time.
func TestBooted(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	enterNamespace(t)
	ip(t, "link set lo up")
	m := bootMachine(t)
	if out, err := m.try("dpkg --purge cnpgate 2>&1; dpkg --install /cnpgate.deb"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	m.pairOfUnits(bootedConfig)

	ip(t, "link del b0")
	m.run("systemctl start --no-block cnpgate")
	m.until("test $(systemctl show --value --property NRestarts cnpgate) -ge 3")
	makeWire(t, "b")
	m.becomes("cnpgate", "forwarding")
	m.run("systemctl start cnpgate-b")
	m.becomes("cnpgate-b", "standing by")
	if out := m.run("cnpgate status --config /etc/cnpgate/cnpgate.yaml"); !strings.Contains(out, "booted") {
		t.Errorf("status: %s", out)
	}
	for groups, works := range map[string]bool{"--groups cnpgate": true, "": false} {
		if out, err := m.try(fmt.Sprintf("useradd --no-create-home %s tried && runuser -u tried -- cnpgate status --config /etc/cnpgate/cnpgate.yaml; s=$?; userdel tried; exit $s", groups)); (err == nil) != works {
			t.Errorf("status, as a user with %q: %v: %s", groups, err, out)
		}
	}

	a, b := newHost(t, "a1"), newHost(t, "b1")
	end := a.load(1000)
	defer end()
	flows(t, "at first", b, startTime)
	active, standby := "cnpgate", "cnpgate-b"
	for i := range 20 {
		m.short(b, fmt.Sprintf("SIGKILL %d", i+1), func() {
			m.run("kill -KILL " + m.property(active, "MainPID"))
			active, standby = standby, active
		}, func() {
			m.becomes(active, "forwarding")
			m.becomes(standby, "standing by")
		})
	}

	pid := m.property(active, "MainPID")
	m.write("/etc/cnpgate/cnpgate.yaml", strings.ReplaceAll(bootedConfig, "4MB", "3MB"))
	m.run("systemctl reload " + active)
	m.write("/etc/cnpgate/cnpgate.yaml", strings.ReplaceAll(bootedConfig, "4MB", "4MX"))
	if out, err := m.try("systemctl reload " + active); err == nil {
		t.Errorf("a configuration with a mistake was accepted: %s", out)
	}
	if !strings.Contains(m.journal(), "4MX") {
		t.Errorf("the journal doesn't name the mistake:\n%s", m.journal())
	}
	m.run("systemctl stop " + standby)
	_, _ = m.try("systemctl start " + standby)
	m.until("systemctl is-failed " + standby)
	time.Sleep(3 * time.Second) // more than RestartSec
	if n := m.property(standby, "NRestarts"); m.property(standby, "ActiveState") != "failed" || m.property(standby, "ExecMainStatus") != "78" {
		t.Errorf("a refused configuration: restarted %s times, %s, status %s", n, m.property(standby, "ActiveState"), m.property(standby, "ExecMainStatus"))
	}
	m.write("/etc/cnpgate/cnpgate.yaml", bootedConfig)
	m.run("systemctl start " + standby)

	m.run("dpkg --install /cnpgate-next.deb")
	if now := m.property(active, "MainPID"); now != pid {
		t.Errorf("the upgrade restarted the active gateway: process %s, then %s", pid, now)
	}
	m.run("systemctl restart " + standby)
	m.becomes(standby, "standing by")
	m.short(b, "restart for the upgrade", func() {
		m.run("systemctl restart " + active)
		active, standby = standby, active
	}, func() {
		m.becomes(active, "forwarding")
		m.becomes(standby, "standing by")
	})

	m.run("systemctl stop cnpgate-b cnpgate && dpkg --purge cnpgate && ! getent group cnpgate && ! test -e /var/lib/cnpgate")
}

// short tries an event at which the standby takes over, and fails the test if the outage is longer than allowed. If other work then kept the gateways,
// or what measures them, off a core, the outage says nothing: after restored, the event is tried again.
func (m *machine) short(b *host, name string, event, restored func()) {
	m.t.Helper()
	const tries = 5
	for try := 1; ; try++ {
		time.Sleep(time.Second) // the standby prepares
		cores := ontime.Watch(syscall.Getpgrp())
		took := pause(m.t, b, m.journal, event).Round(time.Millisecond)
		cores.End()
		restored()
		m.t.Logf("%s: nothing is forwarded for %v", name, took)
		if took <= shortOutage {
			return
		}
		if !cores.Busy() || try == tries {
			m.t.Errorf("%s: nothing is forwarded for %v, expected at most %v; try %d of %d. %v", name, took, shortOutage, try, tries, cores)
			return
		}
		m.t.Logf("inconclusive, tried again: %v", cores)
	}
}

// pause is the longest time without a frame at a host around an event, from the event until frames flow again.
func pause(t *testing.T, b *host, log func() string, event func()) time.Duration {
	t.Helper()
	over := make(chan struct{})
	longest := make(chan time.Duration)
	go func() {
		var most time.Duration
		last, at := b.received.Load(), time.Now()
		for {
			time.Sleep(500 * time.Microsecond)
			now := time.Now()
			if n := b.received.Load(); n != last {
				most = max(most, now.Sub(at))
				last, at = n, now
			}
			select {
			case <-over:
				if now.Sub(at) < 20*time.Millisecond || now.Sub(at) > takeoverTime {
					longest <- max(most, now.Sub(at))
					return
				}
			default:
			}
		}
	}()
	event()
	time.Sleep(200 * time.Millisecond)
	close(over)
	took := <-longest
	if took > takeoverTime {
		t.Fatalf("nothing is forwarded for %v:\n%s", took, log())
	}
	return took
}
