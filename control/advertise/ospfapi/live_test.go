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
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control/advertise/ospfapi"
	"github.com/cnpgate/cnpgate/internal/testkit/frr"
	"github.com/cnpgate/cnpgate/proxy"
)

// newRouter makes a router whose only interface is ospf0. Its timers are shorter than the defaults: the tests depend on what happens, not on when.
func newRouter(t *testing.T, name, id string) *frr.Router {
	t.Helper()
	return frr.New(t, name, "interface ospf0\n ip ospf area 0\n ip ospf network point-to-point\n ip ospf hello-interval 1\n ip ospf dead-interval 5\n"+
		" ip ospf retransmit-interval 1\nrouter ospf\n ospf router-id "+id+"\n capability opaque\n"+
		" timers throttle lsa all 100\n timers lsa min-arrival 50\n timers throttle spf 0 50 500\n")
}

// opaque are the bodies of the opaque LSAs of AS scope that the router has and that aren't flushed, as FRR says.
func opaque(t *testing.T, r *frr.Router) (bodies []string) {
	t.Helper()
	var database struct {
		LSAs []struct {
			Age  int    `json:"lsaAge"`
			Data string `json:"opaqueData"`
		} `json:"asExternalOpaqueLsa"`
	}
	out := r.Show(t, "show ip ospf database opaque-as json")
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
func newGateway(t *testing.T, r *frr.Router, s settings) *gateway {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{process: exec.Command("ip", "netns", "exec", r.Namespace, os.Args[0])}
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

// TestMain is the process of a gateway if the environment says so, else it runs the tests.
func TestMain(m *testing.M) {
	text := os.Getenv(settingsVariable)
	if text == "" {
		os.Exit(m.Run())
	}
	if err := runGateway(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// runGateway prints what a gateway with these settings learns, a line each time, until SIGTERM.
func runGateway(text string) error {
	var s settings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	c := ospfapi.Client{Server: netip.MustParseAddrPort("127.0.0.1:2607"), Own: s.Own, Announce: s.Announce,
		Log: zerolog.New(os.Stderr).With().Stringer("gateway", s.Own).Logger()}
	c.Accepts = func(netip.Prefix) bool { return true }
	c.Note = func(err error) { c.Log.Info().Err(err).Msg("connection to ospfd") }
	c.Learned = func(senders []proxy.Sender) error {
		var words []string
		for _, e := range senders {
			words = append(words, fmt.Sprintf("%v by %v (%s)", e.Prefix, e.Proxy, e.Origin))
		}
		_, err := fmt.Println(strings.Join(words, ", "))
		return err
	}
	return c.Run(ctx)
}

// TestLiveOSPF: two of Debian's FRR routers, and a gateway beside each. What one announces, the other one learns; it goes when the gateway stops, when
// the gateway is killed, and when the router's ospfd is killed; it comes back by itself.
func TestLiveOSPF(t *testing.T) {
	a, b := newRouter(t, "a", "192.0.2.1"), newRouter(t, "b", "192.0.2.2")
	frr.Connect(t, a, b, "ospf0")
	for i, r := range []*frr.Router{a, b} {
		frr.Command(t, "ip", "-n", r.Namespace, "addr", "add", fmt.Sprintf("10.77.0.%d/24", i+1), "dev", "ospf0")
		r.Start(t, "zebra")
		r.Start(t, "ospfd", "-a")
	}
	announcer := settings{Own: netip.MustParseAddr("10.77.0.1"), Announce: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}}
	const (
		// The Extended Prefix TLV: 24 octets, route type 0, /24, IPv4, 198.51.100.0; flags 0x20000000; source router address 10.77.0.1.
		body    = "0001001800180000c6336400000b000420000000000500040a4d0001"
		learned = "198.51.100.0/24 by 10.77.0.1 (ospf)"
	)
	second := newGateway(t, b, settings{Own: netip.MustParseAddr("10.77.0.2")})
	// arrives awaits both together: after a restart of ospfd, the LSA of before is learned again, and flushed, before the new one comes.
	arrives := func(how string) {
		t.Helper()
		frr.Await(t, how+": the second gateway learns by the LSA "+body, func() bool {
			return second.has(learned) && slices.Equal(opaque(t, b), []string{body})
		})
	}
	first := newGateway(t, a, announcer)
	arrives("announced")

	first.stop(syscall.SIGTERM)
	frr.Await(t, "stopped: the second gateway forgets", func() bool { return second.has("") })
	frr.Await(t, "stopped: the LSA is flushed", func() bool { return len(opaque(t, b)) == 0 })

	first = newGateway(t, a, announcer)
	arrives("announced again")
	first.stop(syscall.SIGKILL)
	frr.Await(t, "killed: the second gateway forgets", func() bool { return second.has("") })

	newGateway(t, a, announcer)
	arrives("announced after the kill")
	a.Kill(t, "ospfd")
	frr.Await(t, "ospfd killed: the second gateway forgets", func() bool { return second.has("") })
	if len(opaque(t, b)) != 1 {
		t.Error("ospfd killed: the second router's LSDB has lost the LSA, so this says nothing about routers that can't be reached")
	}
	a.Start(t, "ospfd", "-a")
	arrives("ospfd restarted")
}
