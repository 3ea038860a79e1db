//go:build live && !nodpdk && long

package guest

import (
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/agent"
	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/fleetlink"
	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
)

const (
	agentConfig = `gateway: {name: gw1, ipv4: 192.0.2.1}
dpdk: {hugepages: false, workers: [0], idle: backoff}
ports:
  - {name: fabric, device: "net_af_packet0,iface=tapa", role: fabric, peer: wan, rate: 10Gbps, mtu: 4200, queue_capacity: 32MB}
  - {name: wan, device: "net_af_packet1,iface=tapb", role: wan, peer: fabric, rate: 10Gbps, mtu: 4200, queue_capacity: 32MB}
flows: {capacity: 1Ki}
fleet:
  site: paris
  key: %[1]s/gw1.nk
  embedded: true
  listen: "198.18.9.1:4222"
  members: [{name: gw1, key: %[2]s}, {name: gw2, key: %[3]s}]
  hosts: [{name: a, key: %[4]s, addresses: [198.18.0.1/32]}]
management: {listen: "unix:%[1]s/gw.sock"}
`
	agentLifetime = 2 * time.Second
	agentRun      = `(cnpgate agent run --site paris --name a --server nats://198.18.9.1:4222 --key /agent.nk --lifetime 2s --log-level debug 2>/tmp/agent.log; echo $? >/tmp/agent.status) &`
)

// agentGateway is a gateway in a fleet, and its API.
type agentGateway struct {
	t      *testing.T
	client *api.Client
}

func (g *agentGateway) flows() []api.Flow {
	g.t.Helper()
	all, err := api.Get[api.FlowsBody](g.t.Context(), g.client, api.FlowsPath+"?source_ip=198.18.0.1")
	if err != nil {
		g.t.Error(err)
	}
	return all.Flows
}

func (g *agentGateway) hints() []api.HostHint {
	g.t.Helper()
	all, err := api.Get[api.HintsBody](g.t.Context(), g.client, api.HintsPath)
	if err != nil {
		g.t.Error(err)
	}
	return all.HostHints
}

// refused is the number of the host's hints that the gateway has refused.
func (g *agentGateway) refused() uint64 {
	g.t.Helper()
	s, err := api.Do[fleetlink.FleetStatus](g.t.Context(), g.client, http.MethodGet, api.FleetPath, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	return s.Refused["hints of a"]
}

// until waits until something is so, and returns when it first was.
func (g *agentGateway) until(what string, is func() bool) time.Time {
	g.t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			g.t.Errorf("never: %s; the hints are %+v, the flows %+v", what, g.hints(), g.flows())
			break
		}
	}
	return time.Now()
}

// hinted finds a flow that isn't known yet, and whether its QP is known by a hint.
func (g *agentGateway) hinted(known map[uint32]bool) (flow *api.Flow, byHint bool) {
	for _, f := range g.flows() {
		if f.Transport == "RC" && !known[f.DestinationQP] {
			return &f, f.QPEvidence != nil && *f.QPEvidence == "hint" && f.SourceQP != nil && f.QPState == "confirmed"
		}
	}
	return nil, false
}

// TestAgent runs cnpgate agent in a host with the kernel's Soft-RoCE, behind a gateway with a broker. A new QP's flow is confirmed by the agent's hint
// within a second of its first packet, whether RDMA-CM set it up or not. The hint is gone within a second of the QP. Hints about an address that
// isn't the host's are refused and counted, and those about its own still taken. When the agent is killed, its hints die by their lifetime.
func TestAgent(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	binary := buildGateway(t)
	inGuest := filepath.Join(t.TempDir(), "cnpgate")
	build := exec.Command("go", "build", "-tags", "nodpdk,nobgp,noweb", "-ldflags=-s -w", "-o", inGuest, "github.com/cnpgate/cnpgate/cmd/cnpgate")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	makeTaps(t, "tapa", "tapb", "tapm")
	for _, line := range []string{"address add 198.18.9.1/24 dev tapm", "link set lo up"} {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	dir, err := os.MkdirTemp("", "cnpgate-agent")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	var public []any
	for _, name := range []string{"gw1", "gw2", "a"} {
		key, err := agent.CreateKey(filepath.Join(dir, name+".nk"))
		if err != nil {
			t.Fatal(err)
		}
		public = append(public, key)
	}
	config, log := filepath.Join(dir, "c.yaml"), &console{}
	if err := os.WriteFile(config, fmt.Appendf(nil, agentConfig, append([]any{dir}, public...)...), 0o600); err != nil {
		t.Fatal(err)
	}
	a := roceHost(t, hostConfig{
		taps: []string{"tapa", "tapm"}, address: "198.18.0.1", cpus: 2,
		files: []File{{Path: "/bin/cnpgate", From: inGuest, Mode: 0o755}, {Path: "/agent.nk", From: filepath.Join(dir, "a.nk"), Mode: 0o600}},
	})
	run(t, a, "ip link set eth1 up && ip address add 198.18.9.2/24 dev eth1")
	b := roceHost(t, hostConfig{taps: []string{"tapb"}, address: "198.18.0.2", cpus: 1})

	gateway := exec.Command(binary, "run", "--config", config)
	gateway.Stderr = log
	if err := gateway.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- gateway.Wait() }()
	t.Cleanup(func() {
		_ = gateway.Process.Signal(unix.SIGTERM)
		<-ended
		if t.Failed() {
			out, _ := a.Run("cat /tmp/agent.log")
			t.Logf("the gateway: %s\nthe agent: %s", log, out)
		}
	})
	for deadline := time.Now().Add(patience); strings.Count(log.String(), "link is up") < 2; time.Sleep(10 * time.Millisecond) {
		select {
		case err := <-ended:
			ended <- err
			t.Fatal("the gateway has ended: ", err)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatal("the gateway doesn't start")
		}
	}
	g := &agentGateway{t, api.NewClient(filepath.Join(dir, "gw.sock"))}
	run(t, a, agentRun)
	if err := a.Until("grep -q 'Connected to the broker' /tmp/agent.log"); err != nil {
		t.Fatal(err)
	}
	known := map[uint32]bool{}
	confirmed := func(name string, start func()) (qp uint32) {
		t.Helper()
		var began, at time.Time
		looked := make(chan struct{})
		go func() { // while start runs
			defer close(looked)
			g.until(name+": a flow", func() bool { f, _ := g.hinted(known); began = time.Now(); return f != nil })
			at = g.until(name+": a QP by hint", func() bool { _, ok := g.hinted(known); return ok })
		}()
		start()
		<-looked
		f, ok := g.hinted(known)
		if !ok {
			t.Fatalf("%s: no flow with a QP by a hint", name)
		}
		known[f.DestinationQP] = true
		t.Logf("%s: %s QP %d to QP %d, confirmed by hint %v after it was seen first", name, f.SourceIP, *f.SourceQP, f.DestinationQP, at.Sub(began))
		if late := at.Sub(began); late > time.Second {
			t.Errorf("%s: confirmed after %v", name, late)
		}
		return *f.SourceQP
	}
	has := func(qp uint32) bool {
		for _, h := range g.hints() {
			if h.SourceQP == qp && h.Host == "a" {
				return true
			}
		}
		return false
	}

	// Not by RDMA-CM: the kernel doesn't know the other host, and the hint has no destination.
	pingPong := confirmed("without RDMA-CM", func() {
		run(t, a, "(ibv_rc_pingpong -d rxe0 -g 1 -n 100000000 >/tmp/s 2>&1 &) ; sleep 2")
		run(t, b, "(ibv_rc_pingpong -d rxe0 -g 1 -n 100000000 198.18.0.1 >/tmp/c 2>&1 &) ; sleep 2; killall -STOP ibv_rc_pingpong") // a QP that rests keeps its hint
	})
	for _, h := range g.hints() {
		if h.Destination != nil || h.SourceQP != pingPong {
			t.Errorf("%+v: expected one of QP %d without a destination", h, pingPong)
		}
	}
	time.Sleep(agentLifetime + time.Second)
	if !has(pingPong) {
		t.Error("the hint isn't repeated")
	}

	// By RDMA-CM: the hint names the other host.
	rping := confirmed("by RDMA-CM", func() {
		run(t, a, "(rping -s -a 198.18.0.1 >/tmp/rs 2>&1 &) ; sleep 2")
		run(t, b, "(rping -c -a 198.18.0.1 -C 100000000 >/tmp/rc 2>&1 &) ; sleep 2; killall -STOP rping")
	})
	for _, h := range g.hints() {
		if h.SourceQP == rping && (h.Destination == nil || *h.Destination != netip.MustParseAddr("198.18.0.2")) {
			t.Errorf("%+v: expected 198.18.0.2 as its destination", h)
		}
	}
	if n := g.refused(); n != 0 {
		t.Errorf("%d hints were refused", n)
	}

	// The QP goes, and with it the hint.
	run(t, a, "killall -9 ibv_rc_pingpong")
	gone := time.Now()
	if late := g.until("the hint of a QP that is gone goes", func() bool { return !has(pingPong) }).Sub(gone); late > time.Second {
		t.Errorf("the hint is gone %v after its QP", late)
	} else {
		t.Logf("the hint is gone %v after its QP", late)
	}
	if !has(rping) {
		t.Error("so is the other QP's")
	}

	// The host takes an address of another one. Its hints about this address are refused; those about its own go on.
	run(t, a, "ip address add 198.18.0.77/24 dev eth0")
	run(t, a, "(ibv_rc_pingpong -d rxe0 -g 1 -p 18700 -n 100000000 >/tmp/s2 2>&1 &) ; sleep 2")
	run(t, b, "(ibv_rc_pingpong -d rxe0 -g 1 -p 18700 -n 100000000 198.18.0.1 >/tmp/c2 2>&1 &) ; sleep 2; killall -STOP ibv_rc_pingpong")
	g.until("hints about another host are refused", func() bool { return g.refused() > 0 })
	g.until("its own hint", func() bool { return len(g.hints()) == 2 })
	for _, h := range g.hints() {
		if h.Source != netip.MustParseAddr("198.18.0.1") {
			t.Errorf("a hint about another host was taken: %+v", h)
		}
	}

	// The agent is killed.
	run(t, a, "killall -9 cnpgate")
	killed := time.Now()
	late := g.until("the hints die", func() bool { return len(g.hints()) == 0 }).Sub(killed)
	t.Logf("%d hints refused; the others died %v after the agent, their lifetime is %v", g.refused(), late, agentLifetime)
	if late > agentLifetime+time.Second {
		t.Errorf("hints died %v after the agent, expected at most their lifetime of %v", late, agentLifetime)
	}
	for _, f := range g.flows() {
		if f.QPEvidence != nil && *f.QPEvidence == "hint" {
			t.Errorf("%+v still has its QP by a hint", f)
		}
	}
}
