//go:build live && !nobgp

package bgp

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control/advertise"
	"github.com/cnpgate/cnpgate/control/advertise/nhc"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/proxy"
)

// These tests put a router that isn't ours between two speakers: Debian's FRR or BIRD, in a network namespace of its own. Each speaker is a process in
// its own namespace too. They need root.

// speakerEnv has the configuration file of a speaker's process.
const speakerEnv = "CNPGATE_TEST_SPEAKER"

// The process is a speaker if the environment says so; then TestMain runs no tests.
func init() {
	if file := os.Getenv(speakerEnv); file != "" {
		instead = func() error { return speak(file) }
	}
}

// printed is what a speaker's process prints: what it has learned, or its state.
type printed struct {
	Learned []string          `json:"learned"` // "prefix=proxy"
	Status  *advertise.Status `json:"status,omitempty"`
}

// speak runs a speaker with a configuration file until standard input ends. A line of the input is another file, or empty to ask for the state.
func speak(file string) error {
	var lock sync.Mutex
	write := func(p printed) {
		lock.Lock()
		defer lock.Unlock()
		_ = json.NewEncoder(os.Stdout).Encode(p)
	}
	load := func(file string) (*Settings, error) {
		c, err := config.Load(file)
		if err != nil {
			return nil, err
		}
		c.BGP.ConnectRetry = 2 * time.Second // so that the tests take less time
		return Load(c.BGP)
	}
	s, err := load(file)
	if err != nil {
		return err
	}
	x, err := Start(s, zerolog.New(os.Stderr), func(senders []proxy.Sender) {
		all := []string{}
		for _, s := range senders {
			all = append(all, fmt.Sprintf("%s=%s", s.Prefix, s.Proxy))
		}
		write(printed{Learned: all})
	})
	if err != nil {
		return err
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if lines.Text() == "" {
			status := x.Status()
			write(printed{Status: &status})
			continue
		}
		if s, err = load(lines.Text()); err == nil {
			err = x.Apply(s)
		}
		if err != nil {
			return err
		}
	}
	x.Stop()
	return nil
}

// network is a router's namespace between those of two speakers.
type network struct {
	t   *testing.T
	id  string // of the namespaces' names
	dir string
}

// ends has the addresses of docs/proxy.md, as prefixes.
var ends = map[string]struct{ speaker, router [2]string }{
	"west": {[2]string{"192.0.2.9/24", "2001:db8:a::9/64"}, [2]string{"192.0.2.10/24", "2001:db8:a::10/64"}},
	"east": {[2]string{"198.51.100.9/24", "2001:db8:b::9/64"}, [2]string{"198.51.100.10/24", "2001:db8:b::10/64"}},
}

// networks counts the networks made, which several tests use at once.
var networks atomic.Int32

// newNetwork makes the namespaces, which the test's end removes. It fails the test if that isn't possible, or a program is missing.
func newNetwork(t *testing.T, programs ...string) *network {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("needs root, to make network namespaces")
	}
	for _, program := range append(programs, "ip", "tcpdump", "tshark") {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("no %s; scripts/setup --test installs it", program)
		}
	}
	n := &network{t: t, id: fmt.Sprintf("cnpgate-bgp-%d-%d-", os.Getpid(), networks.Add(1)), dir: t.TempDir()}
	if out, err := exec.Command("ip", "netns", "add", n.id+"router").CombinedOutput(); err != nil {
		t.Fatalf("can't make a network namespace: %v: %s", err, out)
	}
	t.Cleanup(func() { n.run("ip", "netns", "del", n.id+"router") })
	n.run("ip", "-n", n.id+"router", "link", "set", "lo", "up")
	for side, addresses := range ends {
		n.run("ip", "netns", "add", n.id+side)
		t.Cleanup(func() { n.run("ip", "netns", "del", n.id+side) })
		n.run("ip", "-n", n.id+"router", "link", "add", side, "type", "veth", "peer", "name", "router", "netns", n.id+side)
		for i := range 2 {
			n.run("ip", "-n", n.id+side, "address", "add", addresses.speaker[i], "dev", "router", "nodad")
			n.run("ip", "-n", n.id+"router", "address", "add", addresses.router[i], "dev", side, "nodad")
		}
		n.run("ip", "-n", n.id+side, "link", "set", "router", "up")
		n.run("ip", "-n", n.id+"router", "link", "set", side, "up")
	}
	return n
}

func (n *network) run(command ...string) string {
	n.t.Helper()
	out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
	if err != nil {
		n.t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
	}
	return string(out)
}

// file writes a file into the test's directory.
func (n *network) file(name, text string) string {
	n.t.Helper()
	path := filepath.Join(n.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		n.t.Fatal(err)
	}
	return path
}

// process is a program in a namespace.
type process struct {
	command *exec.Cmd
	input   io.WriteCloser
	ended   chan struct{}
}

// start starts a program in a namespace, and passes on the lines that it prints on standard output. If the test fails, it shows those of standard error.
// Unless something else ends the program, the test's end kills it.
func (n *network) start(side string, lines func(string), env string, command ...string) *process {
	n.t.Helper()
	p := &process{command: exec.Command("ip", append([]string{"netns", "exec", n.id + side}, command...)...), ended: make(chan struct{})}
	p.command.Env = append(os.Environ(), env)
	errors, err := os.CreateTemp(n.dir, side+"-*.log")
	if err != nil {
		n.t.Fatal(err)
	}
	p.command.Stderr = errors
	if p.input, err = p.command.StdinPipe(); err != nil {
		n.t.Fatal(err)
	}
	out, err := p.command.StdoutPipe()
	if err == nil {
		err = p.command.Start()
	}
	if err != nil {
		n.t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			lines(scanner.Text())
		}
		_ = p.command.Wait()
	}()
	n.t.Cleanup(func() {
		p.kill()
		if text, err := os.ReadFile(errors.Name()); n.t.Failed() && err == nil {
			n.t.Logf("%s in %s:\n%s", command[0], side, text)
		}
		_ = errors.Close()
	})
	return p
}

// kill ends the process at once, and waits for it.
func (p *process) kill() {
	_ = p.command.Process.Kill()
	<-p.ended
}

// page returns the code blocks of docs/proxy.md in a language.
func page(t *testing.T, language string) []string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/proxy.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllSubmatch(text, -1) {
		blocks = append(blocks, string(m[1]))
	}
	return blocks
}

// speaker is a speaker's process.
type speaker struct {
	*process
	n       *network
	text    string // its configuration
	changed chan struct{}
	lock    sync.Mutex
	learned []string
	status  *advertise.Status
}

// speaker starts the speaker of a side with a configuration.
func (n *network) speaker(side, text string) *speaker {
	n.t.Helper()
	s := &speaker{n: n, text: text, changed: make(chan struct{}, 1)}
	line := func(line string) {
		var t printed
		if json.Unmarshal([]byte(line), &t) != nil {
			return
		}
		s.lock.Lock()
		if t.Status != nil {
			s.status = t.Status
		} else {
			s.learned = t.Learned
		}
		s.lock.Unlock()
		select {
		case s.changed <- struct{}{}:
		default:
		}
	}
	self, err := os.Executable()
	if err != nil {
		n.t.Fatal(err)
	}
	s.process = n.start(side, line, speakerEnv+"="+n.file(side+".yaml", text), self)
	return s
}

// await waits until the speaker has learned exactly this.
func (s *speaker) await(want ...string) {
	s.n.t.Helper()
	for deadline := time.After(patience); ; {
		s.lock.Lock()
		got := slices.Clone(s.learned)
		s.lock.Unlock()
		if slices.Equal(got, want) {
			return
		}
		select {
		case <-s.changed:
		case <-s.ended:
			s.n.t.Fatal("the speaker has ended")
		case <-deadline:
			s.n.t.Fatalf("learned %v, expected %v", got, want)
		}
	}
}

// awaitStatus waits until the state is as the test wants it.
func (s *speaker) awaitStatus(what string, is func(*advertise.Status) bool) {
	s.n.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if _, err := io.WriteString(s.input, "\n"); err != nil {
			s.n.t.Fatal(err)
		}
		select {
		case <-s.changed:
		case <-s.ended:
		case <-time.After(time.Second):
		}
		s.lock.Lock()
		status := s.status
		s.lock.Unlock()
		if status != nil && is(status) {
			return
		}
		if time.Now().After(deadline) {
			s.n.t.Fatalf("not %s: %+v", what, status)
		}
	}
}

// reload changes the configuration.
func (s *speaker) reload(name, before, after string) {
	s.n.t.Helper()
	if !strings.Contains(s.text, before) {
		s.n.t.Fatalf("%q is not in the configuration", before)
	}
	s.text = strings.Replace(s.text, before, after, 1)
	if _, err := io.WriteString(s.input, s.n.file(name, s.text)+"\n"); err != nil {
		s.n.t.Fatal(err)
	}
}

// leave stops the speaker in an orderly way.
func (s *speaker) leave() {
	_ = s.input.Close()
	<-s.ended
}

// router starts FRR's bgpd or BIRD with a configuration. It writes no routes into the kernel.
func (n *network) router(program, text string) *process {
	n.t.Helper()
	file := n.file("router.conf", text)
	ignore := func(string) {}
	if program == bgpd {
		return n.start("router", ignore, "", bgpd, "--skip_runas", "--no_zebra", "--no_kernel", "--vty_port", "0", "--vty_socket", n.dir,
			"--pid_file", filepath.Join(n.dir, "bgpd.pid"), "--config_file", file, "--log", "file:/dev/stderr")
	}
	return n.start("router", ignore, "", bird, "-f", "-c", file, "-s", filepath.Join(n.dir, "bird.ctl"), "-P", filepath.Join(n.dir, "bird.pid"))
}

const (
	bgpd = "/usr/lib/frr/bgpd"
	bird = "/usr/sbin/bird"
)

// TestRouters: the maps of two gateways appear at the other one by way of FRR and BIRD, change, and go with the session. What the routers send is what
// the codec makes, but for the Partial flag.
func TestRouters(t *testing.T) {
	parallel(t)
	gateways := page(t, "yaml")
	if len(gateways) != 2 {
		t.Fatalf("docs/proxy.md has %d configurations of gateways", len(gateways))
	}
	for _, c := range []struct{ name, program, language string }{{"FRR", bgpd, "frr"}, {"BIRD", bird, "bird"}} {
		t.Run(c.name, func(t *testing.T) {
			parallel(t)
			n := newNetwork(t, c.program)
			text := page(t, c.language)[0]
			capture := n.capture("east")
			router := n.router(c.program, text)
			west, east := n.speaker("west", gateways[0]), n.speaker("east", gateways[1])
			fromWest := []string{"10.1.0.0/16=203.0.113.1", "2001:db8:1::/48=2001:db8:ffff::1"}
			fromEast := []string{"10.2.0.0/16=203.0.113.2", "2001:db8:2::/48=2001:db8:ffff::2"}
			east.await(fromWest...)
			west.await(fromEast...)
			capture.check(t)
			// A change of one prefix, and of an address.
			west.reload("west2.yaml", "announce: [10.1.0.0/16, ", "announce: [10.1.0.0/16, 10.3.0.0/16, ")
			east.await("10.1.0.0/16=203.0.113.1", "10.3.0.0/16=203.0.113.1", "2001:db8:1::/48=2001:db8:ffff::1")
			west.reload("west3.yaml", "announce: [10.1.0.0/16, 10.3.0.0/16, ", "announce: [10.3.0.0/16, ")
			east.await("10.3.0.0/16=203.0.113.1", "2001:db8:1::/48=2001:db8:ffff::1")
			// The proxy stops: its prefixes are withdrawn long before the hold time of 90 s.
			stopped := time.Now()
			west.leave()
			east.await()
			t.Logf("withdrawn after %v", time.Since(stopped))
			west = n.speaker("west", gateways[0])
			east.await(fromWest...)
			// The router is killed, and comes back.
			router.kill()
			n.router(c.program, text)
			west.awaitStatus("established again", func(s *advertise.Status) bool { return s.Peers[0].State == advertise.Established })
			east.awaitStatus("established again", func(s *advertise.Status) bool { return s.Peers[0].State == advertise.Established && !s.Peers[0].Stale })
			east.await(fromWest...)
			west.await(fromEast...)
		})
	}
}

// TestChangedNextHop: FRR between autonomous systems sets itself as the next hop and leaves the attribute, which is then ignored. If it keeps the next
// hop, the map appears.
func TestChangedNextHop(t *testing.T) {
	parallel(t)
	n := newNetwork(t, bgpd)
	const external = `router bgp 65002
 bgp router-id 192.0.2.10
 no bgp ebgp-requires-policy
 neighbor 192.0.2.9 remote-as 65001
 neighbor 192.0.2.9 passive
 neighbor 198.51.100.9 remote-as 65003
 neighbor 198.51.100.9 passive
 !
 address-family ipv4 unicast
  neighbor 198.51.100.9 attribute-unchanged med
 exit-address-family
`
	gateways := page(t, "yaml")
	as := func(text, own string) string {
		return strings.NewReplacer("    as: 65000", "    as: "+own, ", as: 65000}", ", as: 65002}").Replace(text)
	}
	router := n.router(bgpd, external)
	n.speaker("west", as(gateways[0], "65001"))
	east := n.speaker("east", as(gateways[1], "65003"))
	east.awaitStatus("ignoring", func(s *advertise.Status) bool {
		return s.Peers[0].Ignored["other-next-hop"] == 1 && s.Peers[0].Learned == 0
	})
	router.kill()
	n.router(bgpd, strings.ReplaceAll(external, "attribute-unchanged med", "attribute-unchanged next-hop"))
	east.await("10.1.0.0/16=203.0.113.1")
}

// capture records what the router sends to and receives from a side.
type capture struct {
	*process
	file string
}

func (n *network) capture(side string) *capture {
	n.t.Helper()
	c := &capture{file: filepath.Join(n.dir, side+".pcap")}
	c.process = n.start("router", func(string) {}, "", "tcpdump", "-Z", "root", "-i", side, "--immediate-mode", "-U", "-w", c.file, "tcp", "port", "179")
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if info, err := os.Stat(c.file); err == nil && info.Size() >= 24 { // its header: it captures
			return c
		}
		if time.Now().After(deadline) {
			n.t.Fatal("tcpdump doesn't start")
		}
	}
}

// check compares the octets of the attributes with what the codec makes: from the speaker as originated, from the router with Partial.
func (c *capture) check(t *testing.T) {
	t.Helper()
	want := map[string]bool{} // attribute, found
	for _, r := range []struct {
		flags                byte
		prefix, hop, address string
	}{
		{nhc.Flags, "10.2.0.0/16", "198.51.100.9", "203.0.113.2"},
		{nhc.Flags, "2001:db8:2::/48", "2001:db8:b::9", "2001:db8:ffff::2"},
		{nhc.Flags | nhc.Partial, "10.1.0.0/16", "192.0.2.9", "203.0.113.1"},
		{nhc.Flags | nhc.Partial, "2001:db8:1::/48", "2001:db8:a::9", "2001:db8:ffff::1"},
	} {
		a := nhc.Attribute{
			Family: nhc.FamilyOf(netip.MustParsePrefix(r.prefix)), NextHop: netip.MustParseAddr(r.hop),
			Characteristics: []nhc.Characteristic{nhc.PNC(65400, netip.MustParseAddr(r.address))},
		}
		value, err := a.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		want[hex.EncodeToString(append([]byte{r.flags, nhc.Type, byte(len(value))}, value...))] = false
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		attributes := c.attributes(t)
		missing := false
		for a := range want {
			want[a] = want[a] || slices.Contains(attributes, a)
			missing = missing || !want[a]
		}
		if !missing {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("tshark finds the attributes\n%s\nexpected\n%v", strings.Join(attributes, "\n"), want)
		}
	}
}

// pathAttribute has the octets of a path attribute in tshark's JSON.
var pathAttribute = regexp.MustCompile(`"bgp\.update\.path_attribute_raw": \[\s*"([0-9a-f]+)"`)

// attributes are the path attributes of type 39 that tshark finds, in hexadecimal.
func (c *capture) attributes(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("tshark", "-r", c.file, "-Y", "bgp.update.path_attribute.type_code == 39", "-T", "json", "-x").Output()
	if err != nil && len(out) == 0 {
		t.Fatalf("tshark: %v", err)
	}
	var all []string
	for _, m := range pathAttribute.FindAllSubmatch(out, -1) {
		if a := string(m[1]); len(a) > 4 && a[2:4] == "27" {
			all = append(all, a)
		}
	}
	return all
}
