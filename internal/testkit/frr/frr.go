// Package frr runs Debian's FRR in network namespaces, for live tests. It needs root and the package frr.
package frr

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Patience is how long a test waits for what FRR and the kernel have to do. Nothing depends on its length but how late a failure is noticed.
const Patience = 2 * time.Minute

// Await waits until a condition holds.
func Await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(Patience); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", Patience, what)
		}
	}
}

// Command runs a command that has to succeed, and returns its output.
func Command(t *testing.T, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// Router is FRR in a namespace of its own. Directory has the sockets of its daemons.
type Router struct{ Namespace, Directory string }

// New makes a namespace, and a directory with FRR's configuration. Both go when the test ends.
func New(t *testing.T, name, config string) *Router {
	t.Helper()
	owner, err := user.Lookup("frr")
	if err != nil {
		t.Fatalf("%v: this test needs Debian's package frr", err)
	}
	uid, _ := strconv.Atoi(owner.Uid)
	gid, _ := strconv.Atoi(owner.Gid)
	directory, err := os.MkdirTemp("", "frr-"+name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(directory) })
	r := &Router{fmt.Sprintf("frr%d%s", os.Getpid(), name), directory}
	if err := os.WriteFile(r.path("frr.conf"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{directory, r.path("frr.conf")} {
		if err := os.Chown(path, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	Command(t, "ip", "netns", "add", r.Namespace)
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", r.Namespace).Run() })
	Command(t, "ip", "-n", r.Namespace, "link", "set", "lo", "up")
	return r
}

// Connect connects two routers by interfaces of this name, which get no addresses but IPv6 link-local ones.
func Connect(t *testing.T, a, b *Router, name string) {
	t.Helper()
	Command(t, "ip", "-n", a.Namespace, "link", "add", name, "type", "veth", "peer", "name", name, "netns", b.Namespace)
	for _, r := range []*Router{a, b} {
		Command(t, "ip", "-n", r.Namespace, "link", "set", name, "up")
	}
}

func (r *Router) path(file string) string { return filepath.Join(r.Directory, file) }

// Start starts one of FRR's daemons, which ends with the test.
func (r *Router) Start(t *testing.T, daemon string, args ...string) {
	t.Helper()
	Command(t, "ip", append([]string{"netns", "exec", r.Namespace, "/usr/lib/frr/" + daemon, "-d", "-f", r.path("frr.conf"), "-z", r.path("zserv.api"),
		"--vty_socket", r.Directory, "-i", r.path(daemon + ".pid"), "--log", "file:" + r.path(daemon+".log"), "-P", "0"}, args...)...)
	t.Cleanup(func() { r.Kill(t, daemon) })
}

// Kill kills a daemon, if it runs, and waits until it is gone.
func (r *Router) Kill(t *testing.T, daemon string) {
	t.Helper()
	text, err := os.ReadFile(r.path(daemon + ".pid"))
	if err != nil {
		return
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	Await(t, daemon+" ends", func() bool { return ended(pid) })
	_ = os.Remove(r.path(daemon + ".pid"))
}

// ended reports whether a process has ended, with all its threads. It may stay a zombie for seconds, until init asks for its exit status; in a container
// without an init, for ever.
func ended(pid int) bool {
	folder := filepath.Join("/proc", strconv.Itoa(pid))
	stat, err := os.ReadFile(filepath.Join(folder, "stat"))
	if err != nil {
		return true
	}
	threads, _ := os.ReadDir(filepath.Join(folder, "task"))
	_, state, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(state, "Z") && len(threads) <= 1
}

// Show returns what vtysh answers to a command.
func (r *Router) Show(t *testing.T, command string) string {
	t.Helper()
	return Command(t, "vtysh", "--vty_socket", r.Directory, "-c", command)
}
