//go:build !nobgp

package bgp

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control/advertise"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/proxy"
)

// journal is a log and what the speaker has learned, which tests wait for.
type journal struct {
	changed chan struct{}
	lock    sync.Mutex
	senders []proxy.Sender
	log     bytes.Buffer
}

func newJournal() *journal { return &journal{changed: make(chan struct{}, 1)} }

func (j *journal) learned(senders []proxy.Sender) {
	j.lock.Lock()
	defer j.lock.Unlock()
	j.senders = senders
	select {
	case j.changed <- struct{}{}:
	default:
	}
}

func (j *journal) Write(b []byte) (int, error) {
	j.lock.Lock()
	defer j.lock.Unlock()
	return j.log.Write(b)
}

func (j *journal) text() string {
	j.lock.Lock()
	defer j.lock.Unlock()
	return j.log.String()
}

// has writes what was learned as "prefix proxy" pairs.
func (j *journal) has() string {
	j.lock.Lock()
	defer j.lock.Unlock()
	var all []string
	for _, s := range j.senders {
		all = append(all, fmt.Sprintf("%s=%s", s.Prefix, s.Proxy))
		if s.Origin != "bgp" {
			all = append(all, "origin "+s.Origin)
		}
	}
	return strings.Join(all, " ")
}

func (j *journal) await(t *testing.T, want string) {
	t.Helper()
	deadline := time.After(patience)
	for j.has() != want {
		select {
		case <-j.changed:
		case <-deadline:
			t.Fatalf("the speaker has learned %q, expected %q\n%s", j.has(), want, j.text())
		}
	}
}

// awaitStatus waits until the state is as a test wants it.
func awaitStatus(t *testing.T, x *Speaker, what string, is func(advertise.Status) bool) advertise.Status {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		s := x.Status()
		if is(s) {
			return s
		}
		if time.Now().After(deadline) {
			t.Fatalf("not %s: %+v", what, s)
		}
	}
}

// settings are those of a speaker at 127.0.0.1 with these peers.
func settings(peers ...*rawPeer) *config.BGP {
	c := &config.BGP{
		AS: 65001, RouterID: netip.MustParseAddr("192.0.2.9"), IPv4: netip.MustParseAddr("127.0.0.1"), Characteristic: 65400,
		NextHopIPv4: netip.MustParseAddr("192.0.2.9"), NextHopIPv6: netip.MustParseAddr("2001:db8::9"),
		ProxyIPv4: netip.MustParseAddr("203.0.113.99"), ProxyIPv6: netip.MustParseAddr("2001:db8:99::1"),
		Accept:   []config.BGPAccept{{Prefix: netip.MustParsePrefix("10.0.0.0/8"), MaxLength: 24}, {Prefix: netip.MustParsePrefix("2001:db8::/32"), MaxLength: 128}},
		HoldTime: 90 * time.Second, ConnectRetry: 2 * time.Second,
	}
	for _, p := range peers {
		c.Peers = append(c.Peers, config.BGPPeer{Address: p.address(), AS: uint32(p.as), Port: p.port(), MaxPrefixes: 1000})
	}
	return c
}

// start starts a speaker that ends with the test.
func start(t *testing.T, c *config.BGP, j *journal) *Speaker {
	t.Helper()
	s, err := Load(c)
	if err != nil {
		t.Fatal(err)
	}
	x, err := Start(s, zerolog.New(j), j.learned)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Stop)
	return x
}

func apply(t *testing.T, x *Speaker, c *config.BGP) {
	t.Helper()
	s, err := Load(c)
	if err == nil {
		err = x.Apply(s)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestLearn: of the routes of a peer that writes its own octets, those lead to entries whose attribute is valid and about the route's next hop. No
// other route ends the session.
func TestLearn(t *testing.T) {
	parallel(t)
	peer, j := newRawPeer(t, "127.0.0.2", 65002, "", ""), newJournal()
	x := start(t, settings(peer), j)
	s := peer.session()
	route := func(prefix, attribute string) { s.send("", common+nextHop+attribute, prefix) }
	route("10 0a01", nhcIPv4(1))
	route("18 0a0102", "e0 27 10 0001 01 04 c000020a ff78 0004 cb007102")           // Partial, as routers set it that don't know the attribute
	route("18 0a0103", "d0 27 0010 0001 01 04 c000020a ff78 0004 cb007103")         // Extended Length
	route("18 0a0104", "c0 27 14 0001 01 04 c000020a ff79 0000 ff78 0004 cb007104") // an unknown characteristic, in descending order
	route("18 0a0105", "")                                                          // no attribute
	route("18 0a0106", "c0 27 0e 0001 01 04 c000020a ff78 0004 cb00")               // the value is cut
	route("18 0a0107", "c0 27 02 0001")                                             // the header is cut
	route("18 0a0108", "c0 27 00")                                                  // empty
	route("18 0a0109", "c0 27 11 0001 01 05 c000020a00 ff78 0004 cb007109")         // an impossible next hop
	route("18 0a010a", "80 27 10 0001 01 04 c000020a ff78 0004 cb00710a")           // not transitive
	route("18 0a010b", "c0 27 10 0001 01 04 c000020b ff78 0004 cb00710b")           // another next hop
	route("18 0a010c", "c0 27 10 0002 01 04 c000020a ff78 0004 cb00710c")           // another AFI
	route("18 0a010d", "c0 27 10 0001 02 04 c000020a ff78 0004 cb00710d")           // another SAFI
	route("18 0a010e", "c0 27 0f 0001 01 04 c000020a ff78 0003 cb0071")             // a proxy of three octets
	route("18 0a010f", "c0 27 10 0001 01 04 c000020a ff78 0004 e0000001")           // multicast
	route("18 0a0110", "c0 27 08 0001 01 04 c000020a")                              // no characteristic
	route("19 0a011180", nhcIPv4(17))                                               // longer than is accepted
	route("10 c633", nhcIPv4(18))                                                   // outside of what is accepted
	route("18 0a0112", nhcIPv4(99))                                                 // this gateway itself
	s.send("", common+
		"80 0e 1c 0002 01 10 20010db800000000000000000000000a 00 30 20010db80001"+
		"c0 27 1c 0002 01 10 20010db800000000000000000000000a ff78 0004 cb007101", "")
	s.send("", common+
		"80 0e 2c 0002 01 20 20010db800000000000000000000000a fe80000000000000000000000000000a 00 30 20010db80002"+
		"c0 27 28 0002 01 10 20010db800000000000000000000000a ff78 0010 20010db8007700000000000000000001", "")
	j.await(t, "10.1.0.0/16=203.0.113.1 10.1.2.0/24=203.0.113.2 10.1.3.0/24=203.0.113.3 10.1.4.0/24=203.0.113.4 "+
		"2001:db8:1::/48=203.0.113.1 2001:db8:2::/48=2001:db8:77::1")
	status := awaitStatus(t, x, "21 routes that are read", func(s advertise.Status) bool {
		read := s.Peers[0].Learned
		for _, n := range s.Peers[0].Ignored {
			read += n
		}
		return s.Peers[0].Received == 21 && read == 21
	})
	want := map[string]int{"no-attribute": 1, "malformed": 5, "other-next-hop": 1, "other-family": 2, "no-proxy": 3, "not-accepted": 2, "own-proxy": 1}
	if p := status.Peers[0]; !maps.Equal(p.Ignored, want) || p.Learned != 6 || p.State != "established" || status.PrefixesLearned != 6 {
		t.Errorf("%+v, expected %v", p, want)
	}
	// The session stands, and a route that was ignored is one that can be corrected.
	route("18 0a0106", nhcIPv4(6))
	s.send("18 0a0102 18 0a0103 18 0a0104", "", "")
	s.send("", "80 0f 11 0002 01 30 20010db80001 30 20010db80002", "")
	j.await(t, "10.1.0.0/16=203.0.113.1 10.1.6.0/24=203.0.113.6")
	if len(s.received) > 0 {
		for range len(s.received) {
			if m := <-s.received; m.kind == notification {
				t.Fatalf("the session was ended: % x", m.body)
			}
		}
	}
}

// TestSessionEnds: what was learned goes with the session, and comes again with the next one.
func TestSessionEnds(t *testing.T) {
	parallel(t)
	peer, j := newRawPeer(t, "127.0.0.2", 65002, "", ""), newJournal()
	x := start(t, settings(peer), j)
	s := peer.session()
	s.send("", common+nextHop+nhcIPv4(1), "10 0a01")
	j.await(t, "10.1.0.0/16=203.0.113.1")
	_ = s.conn.Close()
	j.await(t, "")
	s = peer.session()
	s.send("", common+nextHop+nhcIPv4(2), "10 0a01")
	j.await(t, "10.1.0.0/16=203.0.113.2")
	x.Stop()
	j.await(t, "")
	for { // RFC 4486: Cease, Peer De-configured
		m, ok := s.next()
		if !ok {
			t.Fatal("the session ended without a NOTIFICATION")
		}
		if m.kind == notification {
			if hex.EncodeToString(m.body[:2]) != "0603" {
				t.Errorf("NOTIFICATION % x", m.body)
			}
			break
		}
	}
	if log := j.text(); strings.Count(log, "The BGP session is established.") != 2 || !strings.Contains(log, "The BGP session has ended.") {
		t.Error(log)
	}
	apply(t, x, settings(peer)) // a reload while the gateway stops changes nothing
	if s := x.Status(); s.Running || len(s.Peers) > 0 {
		t.Errorf("after the end: %+v", s)
	}
}

// TestGracefulRestart: the routes of a peer that restarts stay, those that it doesn't announce again go with its End-of-RIB marker, and all go when its
// restart time has passed.
func TestGracefulRestart(t *testing.T) {
	parallel(t)
	const restart = "40 0a 0078 0001 01 80 0002 01 80" // 120 s, both families, forwarding preserved
	peer, j := newRawPeer(t, "127.0.0.2", 65002, "", restart), newJournal()
	x := start(t, settings(peer), j)
	s := peer.session()
	if !bytes.Contains(s.open, octets("40 02")) { // the speaker's own capability names no family: it helps only
		t.Errorf("no Graceful Restart capability in % x", s.open)
	}
	endOfRIB := func() {
		s.send("", "", "")
		s.send("", "80 0f 03 0002 01", "")
	}
	s.send("", common+nextHop+nhcIPv4(1), "10 0a01")
	s.send("", common+nextHop+nhcIPv4(2), "10 0a02")
	endOfRIB()
	j.await(t, "10.1.0.0/16=203.0.113.1 10.2.0.0/16=203.0.113.2")
	_ = s.conn.Close()
	awaitStatus(t, x, "stale", func(s advertise.Status) bool { return s.Peers[0].Stale })
	if has := j.has(); has != "10.1.0.0/16=203.0.113.1 10.2.0.0/16=203.0.113.2" {
		t.Errorf("while the peer restarts: %q", has)
	}
	s = peer.session()
	s.send("", common+nextHop+nhcIPv4(1), "10 0a01")
	endOfRIB()
	j.await(t, "10.1.0.0/16=203.0.113.1")
}

// TestRestartTime: what a restarting peer announced goes when it doesn't come back in time.
func TestRestartTime(t *testing.T) {
	parallel(t)
	peer, j := newRawPeer(t, "127.0.0.2", 65002, "", "40 0a 0001 0001 01 80 0002 01 80"), newJournal()
	start(t, settings(peer), j)
	s := peer.session()
	s.send("", common+nextHop+nhcIPv4(1), "10 0a01")
	j.await(t, "10.1.0.0/16=203.0.113.1")
	_ = peer.listener.Close()
	_ = s.conn.Close()
	j.await(t, "")
}

// TestAnnounce: the octets that a peer receives are those of the drafts, a reload changes only what differs, and no route of a peer is passed on to
// another.
func TestAnnounce(t *testing.T) {
	parallel(t)
	first, second, j := newRawPeer(t, "127.0.0.2", 65002, "", ""), newRawPeer(t, "127.0.0.3", 65003, "", ""), newJournal()
	c := settings(first, second)
	c.Announce = []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16")}
	x := start(t, c, j)
	a, b := first.session(), second.session()
	const (
		path = "40 01 01 00" + "40 02 06 02 01 0000fde9" // ORIGIN IGP, AS_PATH 65001
		ipv4 = "0000 0027" + path + "40 03 04 c0000209" + "c0 27 10 0001 01 04 c0000209 ff78 0004 cb007163"
	)
	for _, s := range []*session{a, b} {
		expectRoutes(t, s, ipv4+"10 0a09")
	}
	// A route of one peer must not reach the other: the next thing that it gets is the announcement of the reload.
	a.send("", common+nextHop+nhcIPv4(1), "10 0a01")
	j.await(t, "10.1.0.0/16=203.0.113.1")
	third := newRawPeer(t, "127.0.0.4", 65004, "", "")
	next := settings(first, second, third)
	next.Announce = []netip.Prefix{netip.MustParsePrefix("10.10.0.0/16"), netip.MustParsePrefix("2001:db8:9::/48")}
	apply(t, x, next)
	d := third.session()
	ipv6 := "0000 0057" + path + "80 0e 1c 0002 01 10 20010db8000000000000000000000009 00 30 20010db80009" +
		"c0 27 28 0002 01 10 20010db8000000000000000000000009 ff78 0010 20010db8009900000000000000000001"
	withdrawn := "0003 10 0a09 0000"
	for _, s := range []*session{a, b} {
		expectRoutes(t, s, withdrawn, ipv4+"10 0a0a", ipv6)
	}
	expectRoutes(t, d, ipv4+"10 0a0a", ipv6)
	// Another code changes the attributes; the peer that is gone gets a NOTIFICATION, the others keep their sessions.
	last := settings(first, third)
	last.Announce, last.Characteristic = []netip.Prefix{netip.MustParsePrefix("10.10.0.0/16")}, 7
	apply(t, x, last)
	for _, s := range []*session{a, d} {
		expectRoutes(t, s, "0000 000d 80 0f 0a 0002 01 30 20010db80009",
			strings.ReplaceAll(ipv4, "ff78", "0007")+"10 0a0a")
	}
	for {
		m, ok := b.next()
		if !ok || m.kind == notification {
			break
		}
	}
	status := awaitStatus(t, x, "two sessions", func(s advertise.Status) bool {
		return len(s.Peers) == 2 && s.Peers[0].State == "established" && s.Peers[1].State == "established" && s.Peers[0].Announced == 1
	})
	if status.AS != 65001 || status.RouterID != "192.0.2.9" || !slices.Equal(status.Announced, last.Announce) || status.Peers[0].Address != "127.0.0.2" ||
		status.Peers[1].AS != 65004 || status.Peers[0].Uptime <= 0 {
		t.Errorf("%+v", status)
	}
}

// expectRoutes waits for these UPDATEs, in any order.
func expectRoutes(t *testing.T, s *session, want ...string) {
	t.Helper()
	var wanted []string
	for _, w := range want {
		wanted = append(wanted, hex.EncodeToString(octets(w)))
	}
	for len(wanted) > 0 {
		got := hex.EncodeToString(s.nextRoutes())
		i := slices.Index(wanted, got)
		if i < 0 {
			t.Fatalf("received\n%s, expected one of\n%s", got, strings.Join(wanted, "\n"))
		}
		wanted = slices.Delete(wanted, i, i+1)
	}
}

// TestGlobalSettings: another AS number restarts all sessions.
func TestGlobalSettings(t *testing.T) {
	parallel(t)
	peer, j := newRawPeer(t, "127.0.0.2", 65002, "", ""), newJournal()
	c := settings(peer)
	x := start(t, c, j)
	s := peer.session()
	s.send("", common+nextHop+nhcIPv4(1), "10 0a01")
	j.await(t, "10.1.0.0/16=203.0.113.1")
	next := settings(peer)
	next.AS = 65011
	apply(t, x, next)
	s = peer.session()
	if as := s.open[1:3]; !bytes.Equal(as, octets("fdf3")) {
		t.Errorf("AS % x", as)
	}
	j.await(t, "")
}

// TestAcceptIsLive: what is accepted changes without a session's end, also for routes that are known already.
func TestAcceptIsLive(t *testing.T) {
	parallel(t)
	peer, j := newRawPeer(t, "127.0.0.2", 65002, "", ""), newJournal()
	c := settings(peer)
	c.Accept = nil
	x := start(t, c, j)
	s := peer.session()
	s.send("", common+nextHop+nhcIPv4(1), "10 0a01")
	awaitStatus(t, x, "ignored", func(s advertise.Status) bool { return s.Peers[0].Ignored["not-accepted"] == 1 })
	apply(t, x, settings(peer))
	j.await(t, "10.1.0.0/16=203.0.113.1")
	apply(t, x, c)
	j.await(t, "")
	if len(peer.sessions) > 0 {
		t.Error("a second session was opened")
	}
}

// TestMaxPrefixes: a peer that sends more prefixes than it may is disconnected until a reload.
func TestMaxPrefixes(t *testing.T) {
	parallel(t)
	peer, j := newRawPeer(t, "127.0.0.2", 65002, "", ""), newJournal()
	c := settings(peer)
	c.Peers[0].MaxPrefixes = 2
	x := start(t, c, j)
	s := peer.session()
	s.send("", common+nextHop+nhcIPv4(1), "10 0a01 10 0a02 10 0a03")
	for {
		m, ok := s.next()
		if !ok {
			t.Fatal("the session ended without a NOTIFICATION")
		}
		if m.kind == notification {
			if hex.EncodeToString(m.body[:2]) != "0601" { // RFC 4486: Cease, Maximum Number of Prefixes Reached
				t.Errorf("NOTIFICATION % x", m.body)
			}
			break
		}
	}
	awaitStatus(t, x, "disconnected", func(s advertise.Status) bool { return strings.Contains(s.Peers[0].Problem, "max_prefixes") })
	j.await(t, "")
	apply(t, x, c)
	s = peer.session()
	s.send("", common+nextHop+nhcIPv4(1), "10 0a01 10 0a02")
	j.await(t, "10.1.0.0/16=203.0.113.1 10.2.0.0/16=203.0.113.1")
}

// TestPassword: a session has the password of the file, and nothing logs it.
func TestPassword(t *testing.T) {
	parallel(t)
	const password = "correct horse"
	file := filepath.Join(t.TempDir(), "password")
	put := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("wrong one\n")
	peer, j := newRawPeer(t, "127.0.0.2", 65002, password, ""), newJournal()
	c := settings(peer)
	c.Peers[0].PasswordFile = file
	x := start(t, c, j)
	put(password + "\n")
	apply(t, x, c) // the file is read again
	s := peer.session()
	s.send("", common+nextHop+nhcIPv4(1), "10 0a01")
	j.await(t, "10.1.0.0/16=203.0.113.1")
	if log := j.text(); strings.Contains(log, password) || strings.Contains(log, "wrong one") {
		t.Errorf("the log has a password:\n%s", log)
	}
}

// TestPasswordFiles: files that can't be used are refused before a session changes.
func TestPasswordFiles(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct{ text, want string }{
		"none":      {"", "no such file or directory; expected a file that this user may read"},
		"empty":     {"\n", "is empty; expected a password of at most 80 bytes"},
		"long":      {strings.Repeat("x", 81), "has a password of 81 bytes; expected at most 80"},
		"very long": {strings.Repeat("x", 4000), "has a password of 4000 bytes; expected at most 80"},
		"two lines": {"secret\nsecret2\n", "has more than one line; expected the password alone"},
	} {
		path := filepath.Join(dir, name)
		if name != "none" {
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := Load(&config.BGP{Peers: []config.BGPPeer{{}, {PasswordFile: path}}})
		if err == nil || !strings.HasPrefix(err.Error(), "proxy.bgp.peers[1].password_file: ") || !strings.HasSuffix(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, expected %q", name, err, c.want)
		}
	}
	if _, err := Load(&config.BGP{Peers: []config.BGPPeer{{PasswordFile: dir}}}); err == nil || !strings.Contains(err.Error(), "is not a file") {
		t.Errorf("a directory: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "good"), []byte(strings.Repeat("x", 80)+"\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := Load(&config.BGP{Peers: []config.BGPPeer{{PasswordFile: filepath.Join(dir, "good")}}}); err != nil || s.passwords[netip.Addr{}] != strings.Repeat("x", 80) {
		t.Errorf("80 bytes: %v", err)
	}
	if s, err := Load(nil); s != nil || err != nil {
		t.Errorf("no BGP: %v, %v", s, err)
	}
}

// TestAddressInUse: an address that isn't this machine's is an error, and leaves nothing behind.
func TestAddressInUse(t *testing.T) {
	parallel(t)
	j := newJournal()
	c := settings()
	c.IPv4, c.Port = netip.MustParseAddr("192.0.2.9"), 1179
	s, err := Load(c)
	if err != nil {
		t.Fatal(err)
	}
	if x, err := Start(s, zerolog.New(j), j.learned); err == nil || x != nil || !strings.HasPrefix(err.Error(), "BGP: ") {
		t.Errorf("%v, %v", x, err)
	}
}
