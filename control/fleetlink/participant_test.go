//go:build !nofleet

package fleetlink

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/fleet"
	"github.com/cnpgate/cnpgate/fleet/wire"
	"github.com/cnpgate/cnpgate/internal/testkit/effort"
)

// team is the configurations of gateways of one site, at ports of the loopback.
type team struct {
	configs []*config.Fleet
	keys    []nkeys.KeyPair
}

// newKey makes an nkey: the seed, and the public key for the configuration.
func newKey(t testing.TB) (seed []byte, public string) {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	if public, err = pair.PublicKey(); err != nil {
		t.Fatal(err)
	}
	if seed, err = pair.Seed(); err != nil {
		t.Fatal(err)
	}
	return seed, public
}

// freePort is a port that nothing listens at.
func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String()
}

func newTeam(t testing.TB, n int, servers ...string) *team {
	t.Helper()
	dir := t.TempDir()
	all := &team{}
	var members []config.FleetMember
	for i := range n {
		seed, public := newKey(t)
		c := &config.Fleet{
			Site: "dc", Name: fmt.Sprintf("gw%d", i+1), Key: filepath.Join(dir, fmt.Sprintf("gw%d.nk", i+1)), Embedded: len(servers) == 0,
			Listen: freePort(t), Servers: servers, Flows: 1024, Pairs: 1024,
			Episodes: config.FleetEpisodes{Store: filepath.Join(dir, fmt.Sprintf("store%d", i)), Keep: time.Hour, MaxBytes: 1 << 20},
		}
		if err := os.WriteFile(c.Key, seed, 0o600); err != nil {
			t.Fatal(err)
		}
		members = append(members, config.FleetMember{Name: c.Name, Key: public})
		key, err := nkeys.FromSeed(seed)
		if err != nil {
			t.Fatal(err)
		}
		all.configs, all.keys = append(all.configs, c), append(all.keys, key)
	}
	for i, c := range all.configs {
		c.Members = members
		for j, o := range all.configs {
			if i != j && c.Embedded {
				c.Peers = append(c.Peers, "nats://"+o.Listen)
			}
		}
	}
	return all
}

// run runs a gateway's participant until the test ends, or stop is called.
func (a *team) run(t testing.TB, i int) (p *Participant, stop func()) {
	t.Helper()
	p, err := Open(Options{Config: a.configs[i], Version: "v1", Log: zerolog.Nop(), Note: func(error) {}, Answer: func(path string) []byte { return []byte(fmt.Sprintf(`{"of":%d,"path":%q}`, i, path)) }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { p.Run(ctx); close(done) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return p, stop
}

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	end := time.Now().Add(20 * time.Second)
	for pause := time.NewTicker(20 * time.Millisecond); !holds(); <-pause.C {
		if time.Now().After(end) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

func state(p *Participant, name string) string {
	for _, m := range p.Status().Members {
		if m.Name == name {
			return m.State
		}
	}
	return ""
}

// TestEmbedded: two gateways with embedded servers hear each other, answer questions, and keep all episodes in a stream; one that stops is
// silent, and heard again once it runs.
func TestEmbedded(t *testing.T) {
	all := newTeam(t, 2)
	one, _ := all.run(t, 0)
	two, stop := all.run(t, 1)
	eventually(t, "both are active", func() bool { return state(one, "gw2") == "active" && state(two, "gw1") == "active" })
	if got := string(one.Question("/v1/flows")["gw2"]); got != `{"of":1,"path":"/v1/flows"}` {
		t.Errorf("answer: %s", got)
	}
	one.Publish([]byte(`{"id":1}`))
	two.Publish([]byte(`{"id":2}`))
	var episodes []Episode
	eventually(t, "both episodes are in the streams of both", func() bool {
		again, _ := two.Episodes()
		episodes, _ = one.Episodes()
		return len(episodes) == 2 && len(again) == 2
	})
	by := map[string]string{}
	for _, e := range episodes {
		by[e.Gateway] = string(e.Episode)
	}
	if by["gw1"] != `{"id":1}` || by["gw2"] != `{"id":2}` {
		t.Errorf("episodes: %v", by)
	}
	stop()
	eventually(t, "gw2 is silent", func() bool { return state(one, "gw2") == "silent" })
	all.run(t, 1)
	eventually(t, "gw2 is heard again", func() bool { return state(one, "gw2") == "active" })
}

// TestPermissions: the server lets a gateway publish below its own name only, a host subscribe to nothing, and a stranger do nothing. What a
// gateway sends in another's name past the server is refused, too.
func TestPermissions(t *testing.T) {
	all := newTeam(t, 2)
	seed, public := newKey(t)
	host, err := nkeys.FromSeed(seed)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all.configs {
		c.Hosts = []config.FleetHost{{Name: "h1", Key: public}}
	}
	one, _ := all.run(t, 0)
	eventually(t, "gw1 is connected", func() bool { c := one.Status().Connections; return len(c) == 2 && c[0].Connected })
	url := "nats://" + all.configs[0].Listen
	connect := func(key nkeys.KeyPair) (*nats.Conn, chan string, error) {
		public, err := key.PublicKey()
		if err != nil {
			t.Fatal(err)
		}
		errs := make(chan string, 16)
		c, err := nats.Connect(url, nats.Nkey(public, key.Sign), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { errs <- err.Error() }))
		if err == nil {
			t.Cleanup(c.Close)
		}
		return c, errs, err
	}
	refused := func(what string, errs chan string) {
		t.Helper()
		select {
		case e := <-errs:
			if !strings.Contains(strings.ToLower(e), "permissions violation") {
				t.Errorf("%s: %s", what, e)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("%s: not refused", what)
		}
	}
	gateway, errs, err := connect(all.keys[1])
	if err != nil {
		t.Fatal(err)
	}
	_ = gateway.Publish("cnpgate.dc.gw1.status", []byte("x"))
	refused("another's name", errs)
	_ = gateway.Publish("$JS.API.STREAM.DELETE.cnpgate-episodes-dc", nil)
	refused("the stream of another", errs)
	client, errs, err := connect(host)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = client.Subscribe("cnpgate.dc.>", func(*nats.Msg) {})
	refused("a host that subscribes", errs)
	stranger, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := connect(stranger); err == nil {
		t.Error("a stranger is connected")
	}
	if _, err := nats.Connect(url); err == nil {
		t.Error("someone without a key is connected")
	}
	forged, err := wire.Seal("dc", wire.Header{Kind: wire.Status, Sender: "gw1", Sequence: 1 << 62}, []byte("{}"), all.keys[1].Sign)
	if err != nil {
		t.Fatal(err)
	}
	_ = gateway.Publish("cnpgate.dc.gw2.status", forged)
	eventually(t, "the forged message is refused", func() bool { return one.Status().Refused["subject"] == 1 })
}

// cluster is an external cluster of nats-servers.
type cluster struct {
	t       testing.TB
	options []*server.Options
	of      []*server.Server
}

func newCluster(t testing.TB, n int, members []config.FleetMember) *cluster {
	c := &cluster{t: t, of: make([]*server.Server, n)}
	routes := ""
	var ports, routePorts []int
	port := func() int {
		a, err := netip.ParseAddrPort(freePort(t))
		if err != nil {
			t.Fatal(err)
		}
		return int(a.Port())
	}
	for range n {
		ports, routePorts = append(ports, port()), append(routePorts, port())
		routes += fmt.Sprintf(",nats://127.0.0.1:%d", routePorts[len(routePorts)-1])
	}
	dir := t.TempDir()
	for i := range n {
		o := &server.Options{
			ServerName: fmt.Sprintf("n%d", i), Host: "127.0.0.1", Port: ports[i], NoSigs: true, NoLog: true, JetStream: true, StoreDir: filepath.Join(dir, fmt.Sprint(i)),
			Cluster: server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: routePorts[i]}, Routes: server.RoutesFromStr(routes[1:]),
		}
		for _, m := range members {
			o.Nkeys = append(o.Nkeys, user(m.Key, []string{fleet.MayPublish("dc", m.Name), "$JS.API.>"}, []string{fleet.MaySubscribe("dc"), "_INBOX.>"}))
		}
		c.options = append(c.options, o)
		c.start(i)
	}
	t.Cleanup(func() {
		for i := range c.of {
			c.kill(i)
		}
	})
	return c
}

func (c *cluster) start(i int) {
	s, err := server.NewServer(c.options[i])
	if err != nil {
		c.t.Fatal(err)
	}
	s.Start()
	c.of[i] = s
}

func (c *cluster) kill(i int) {
	if c.of[i] != nil {
		c.of[i].Shutdown()
		c.of[i].WaitForShutdown()
		c.of[i] = nil
	}
}

// TestCluster: with an external cluster of three servers, one may fail at a time: the gateways go on, and no episode is lost. The long test lets
// each fail.
func TestCluster(t *testing.T) {
	all := newTeam(t, 2, "placeholder")
	c := newCluster(t, 3, all.configs[0].Members)
	var urls []string
	for _, o := range c.options {
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", o.Port))
	}
	for _, f := range all.configs {
		f.Servers = urls
	}
	eventually(t, "the cluster has a leader", func() bool {
		for _, s := range c.of {
			if s.JetStreamIsLeader() {
				return true
			}
		}
		return false
	})
	one, _ := all.run(t, 0)
	two, _ := all.run(t, 1)
	active := func() bool { return state(one, "gw2") == "active" && state(two, "gw1") == "active" }
	eventually(t, "both are active", active)
	eventually(t, "the stream is there", func() bool { _, err := one.Episodes(); return err == nil })
	sent := 0
	publish := func() {
		sent++
		one.Publish([]byte(fmt.Sprintf(`{"id":%d}`, sent)))
		eventually(t, "the episode is in the stream", func() bool { e, _ := two.Episodes(); return len(e) == sent })
	}
	publish()
	for i := range effort.Short + effort.Race + 3*effort.Long {
		c.kill(i)
		eventually(t, fmt.Sprintf("server %d is killed: both are active", i), active)
		before := two.Status().Counters["received_status"]
		eventually(t, "messages arrive", func() bool { return two.Status().Counters["received_status"] > before+1 })
		publish()
		c.start(i)
		eventually(t, "the server is back", func() bool { return c.of[i].NumRoutes() > 0 })
		publish()
	}
}

// TestQueue: a full queue drops the oldest message, and counts it.
func TestQueue(t *testing.T) {
	q := newQueue()
	for i := range queueMessages + 10 {
		q.put(message{data: []byte{byte(i), byte(i >> 8)}})
	}
	if n, _, dropped := q.state(); n != queueMessages || dropped != 10 {
		t.Errorf("%d messages, %d dropped", n, dropped)
	}
	if m, _ := q.take(); m.data[0] != 10 || m.data[1] != 0 {
		t.Errorf("the oldest is %v", m.data)
	}
	big := make([]byte, wire.MaxMessage)
	for range 2 * queueBytes / len(big) {
		q.put(message{data: big})
	}
	if n, bytes, _ := q.state(); bytes > queueBytes || n != queueBytes/len(big) {
		t.Errorf("%d messages of %d bytes", n, bytes)
	}
	for _, ok := q.take(); ok; _, ok = q.take() {
	}
	if n, bytes, _ := q.state(); n != 0 || bytes != 0 {
		t.Errorf("empty: %d messages, %d bytes", n, bytes)
	}
}

// TestBrokerGone: without any server a gateway goes on, with bounded queues, and its link ends when it should.
func TestBrokerGone(t *testing.T) {
	all := newTeam(t, 2, "nats://"+freePort(t))
	one, stop := all.run(t, 0)
	for i := range 3 * queueMessages {
		one.out.put(message{"cnpgate.dc.gw1.status", []byte(fmt.Sprint(i))})
	}
	eventually(t, "the status says so", func() bool { c := one.Status().Connections; return len(c) == 1 && !c[0].Connected })
	if n, _, _ := one.out.state(); n > queueMessages {
		t.Errorf("%d messages wait", n)
	}
	stop()
}

// TestOpen: mistakes in keys are refused with the key's name.
func TestOpen(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(*config.Fleet)
	}{
		{"fleet.key: ", func(f *config.Fleet) { f.Key = "/nowhere" }},
		{"has mode 0644", func(f *config.Fleet) { f.Key = "/etc/passwd" }},
		{"has no nkey seed", func(f *config.Fleet) { // a file without one
			f.Key = filepath.Join(t.TempDir(), "key")
			if err := os.WriteFile(f.Key, []byte("no seed"), 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		{"fleet.members[0].key: is ", func(f *config.Fleet) { f.Members[0].Key = f.Members[1].Key }},
		{"wrong checksum", func(f *config.Fleet) { f.Members[1].Key = "U" + strings.Repeat("A", 55) }},
		{"fleet.tls.ca", func(f *config.Fleet) { f.TLS = &config.FleetTLS{CA: "/nowhere"} }},
	} {
		f := newTeam(t, 2).configs[0]
		c.change(f)
		if _, err := Open(Options{Config: f}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, expected %q", err, c.want)
		}
	}
}
