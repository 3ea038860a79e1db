//go:build live

package ospfapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control/advertise/ospfapi"
	"github.com/cnpgate/cnpgate/proxy"
)

// patience is how long a test waits for what FRR and the kernel have to do. Nothing depends on its length but how late a failure is noticed.
const patience = 2 * time.Minute

// await waits until a condition holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// command runs a command that has to succeed.
func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// router is FRR in a network namespace of its own.
type router struct{ namespace, directory, id string }

// newRouter makes a namespace and FRR's configuration.
func newRouter(t *testing.T, name, id string) *router {
	t.Helper()
	frr, err := user.Lookup("frr")
	if err != nil {
		t.Fatalf("%v: this test needs Debian's package frr", err)
	}
	uid, _ := strconv.Atoi(frr.Uid)
	gid, _ := strconv.Atoi(frr.Gid)
	directory, err := os.MkdirTemp("", "igp-"+name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(directory) })
	r := &router{fmt.Sprintf("igp%d%s", os.Getpid(), name), directory, id}
	config := fmt.Sprintf("interface ospf0\n ip ospf area 0\n ip ospf network point-to-point\n ip ospf hello-interval 1\n ip ospf dead-interval 10\n"+
		"router ospf\n ospf router-id %s\n capability opaque\n", id)
	if err := os.WriteFile(r.path("frr.conf"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{directory, r.path("frr.conf")} {
		if err := os.Chown(path, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	command(t, "ip", "netns", "add", r.namespace)
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", r.namespace).Run() })
	command(t, "ip", "-n", r.namespace, "link", "set", "lo", "up")
	return r
}

func (r *router) path(file string) string { return filepath.Join(r.directory, file) }

// start starts one of FRR's daemons.
func (r *router) start(t *testing.T, daemon string, args ...string) {
	t.Helper()
	command(t, "ip", append([]string{"netns", "exec", r.namespace, "/usr/lib/frr/" + daemon, "-d", "-f", r.path("frr.conf"), "-z", r.path("zserv.api"),
		"--vty_socket", r.directory, "-i", r.path(daemon + ".pid"), "--log", "file:" + r.path(daemon+".log"), "-P", "0"}, args...)...)
	t.Cleanup(func() { r.signal(t, daemon, syscall.SIGKILL) })
}

// signal sends a signal to a daemon, and waits until a killed one is gone.
func (r *router) signal(t *testing.T, daemon string, s syscall.Signal) {
	text, err := os.ReadFile(r.path(daemon + ".pid"))
	if err != nil {
		return
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	_ = syscall.Kill(pid, s)
	await(t, daemon+" ends", func() bool { return syscall.Kill(pid, 0) != nil })
	_ = os.Remove(r.path(daemon + ".pid"))
}

// opaque are the bodies of the opaque LSAs of AS scope that the router has and that aren't flushed, as FRR says.
func (r *router) opaque(t *testing.T) (bodies []string) {
	t.Helper()
	var database struct {
		LSAs []struct {
			Age  int    `json:"lsaAge"`
			Data string `json:"opaqueData"`
		} `json:"asExternalOpaqueLsa"`
	}
	out := command(t, "vtysh", "--vty_socket", r.directory, "-c", "show ip ospf database opaque-as json")
	if err := json.Unmarshal([]byte(out), &database); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	for _, l := range database.LSAs {
		if l.Age < 3600 {
			bodies = append(bodies, l.Data)
		}
	}
	return bodies
}

// gateway is a process with a client.
type gateway struct {
	process *exec.Cmd
	mutex   sync.Mutex
	learned string
}

// settings of a gateway, as its process gets them.
type settings struct {
	Own      netip.Addr
	Announce []netip.Prefix
}

const settingsVariable = "OSPFAPI_TEST_GATEWAY"

// newGateway starts a client beside a router.
func newGateway(t *testing.T, r *router, s settings) *gateway {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{process: exec.Command("ip", "netns", "exec", r.namespace, os.Args[0], "-test.run", "^TestGatewayProcess$")}
	g.process.Env = append(os.Environ(), settingsVariable+"="+string(text))
	g.process.Stderr = os.Stderr
	out, err := g.process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := g.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.stop(syscall.SIGKILL) })
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			g.mutex.Lock()
			g.learned = lines.Text()
			g.mutex.Unlock()
		}
	}()
	return g
}

// stop ends the process by a signal.
func (g *gateway) stop(s syscall.Signal) {
	_ = g.process.Process.Signal(s)
	_ = g.process.Wait()
}

// has reports whether the gateway has learned exactly this; "" is nothing.
func (g *gateway) has(learned string) bool {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return g.learned == learned
}

// TestGatewayProcess is no test, but the process of a gateway. It prints what it learns, a line each time.
func TestGatewayProcess(t *testing.T) {
	var s settings
	text := os.Getenv(settingsVariable)
	if text == "" {
		t.Skip("it runs within TestLiveOSPF")
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	c := ospfapi.Client{Server: netip.MustParseAddrPort("127.0.0.1:2607"), Own: s.Own, Announce: s.Announce,
		Log: zerolog.New(os.Stderr).With().Stringer("gateway", s.Own).Logger()}
	c.Accepts = func(netip.Prefix) bool { return true }
	c.Learned = func(senders []proxy.Sender) error {
		var words []string
		for _, e := range senders {
			words = append(words, fmt.Sprintf("%v by %v (%s)", e.Prefix, e.Proxy, e.Origin))
		}
		_, err := fmt.Println(strings.Join(words, ", "))
		return err
	}
	if err := c.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

// TestLiveOSPF: two of Debian's FRR routers, and a gateway beside each. What one announces, the other one learns; it goes when the gateway stops, when
// the gateway is killed, and when the router's ospfd is killed; it comes back by itself.
func TestLiveOSPF(t *testing.T) {
	a, b := newRouter(t, "a", "192.0.2.1"), newRouter(t, "b", "192.0.2.2")
	command(t, "ip", "-n", a.namespace, "link", "add", "ospf0", "type", "veth", "peer", "name", "ospf0", "netns", b.namespace)
	for i, r := range []*router{a, b} {
		command(t, "ip", "-n", r.namespace, "addr", "add", fmt.Sprintf("10.77.0.%d/24", i+1), "dev", "ospf0")
		command(t, "ip", "-n", r.namespace, "link", "set", "ospf0", "up")
		r.start(t, "zebra")
		r.start(t, "ospfd", "-a")
	}
	announcer := settings{Own: netip.MustParseAddr("10.77.0.1"), Announce: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}}
	const (
		// The Extended Prefix TLV: 24 octets, route type 0, /24, IPv4, 198.51.100.0; flags 0x20000000; source router address 10.77.0.1.
		body    = "0001001800180000c6336400000b000420000000000500040a4d0001"
		learned = "198.51.100.0/24 by 10.77.0.1 (ospf)"
	)
	second := newGateway(t, b, settings{Own: netip.MustParseAddr("10.77.0.2")})
	arrives := func(how string) {
		t.Helper()
		await(t, how+": the second gateway learns", func() bool { return second.has(learned) })
		if got := b.opaque(t); len(got) != 1 || got[0] != body {
			t.Errorf("%s: the second router's LSDB has %q, want %q", how, got, body)
		}
	}
	first := newGateway(t, a, announcer)
	arrives("announced")

	first.stop(syscall.SIGTERM)
	await(t, "stopped: the second gateway forgets", func() bool { return second.has("") })
	await(t, "stopped: the LSA is flushed", func() bool { return len(b.opaque(t)) == 0 })

	first = newGateway(t, a, announcer)
	arrives("announced again")
	first.stop(syscall.SIGKILL)
	await(t, "killed: the second gateway forgets", func() bool { return second.has("") })

	newGateway(t, a, announcer)
	arrives("announced after the kill")
	a.signal(t, "ospfd", syscall.SIGKILL)
	await(t, "ospfd killed: the second gateway forgets", func() bool { return second.has("") })
	if len(b.opaque(t)) != 1 {
		t.Error("ospfd killed: the second router's LSDB has lost the LSA, so this says nothing about routers that can't be reached")
	}
	a.start(t, "ospfd", "-a")
	arrives("ospfd restarted")
}
