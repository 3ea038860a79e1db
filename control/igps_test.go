package control

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// ospfd is a server of ospfd's API that grants each request. Another router's LSA announces proxies. connected counts the clients.
type ospfd struct {
	listener  net.Listener
	connected atomic.Int32
	withdrawn atomic.Int32 // LSAs that clients have deleted
	holds     atomic.Bool  // it has an LSA of a client
}

func newOSPFd(t *testing.T) *ospfd {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	o := &ospfd{listener: l}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go o.serve(c)
		}
	}()
	return o
}

// Another router's LSA, which says that 10.0.0.9 is the proxy of 10.3.0.0/16, and of 10.4.0.0/16.
const (
	header    = "\x00\x00\x40\x0b\x07\x00\x00\x01\xc0\x00\x02\x01\x80\x00\x00\x01\x00\x00\x00\x4c"
	announced = header +
		"\x00\x01\x00\x18\x00\x10\x00\x00\x0a\x03\x00\x00\x00\x0b\x00\x04\x20\x00\x00\x00\x00\x05\x00\x04\x0a\x00\x00\x09" +
		"\x00\x01\x00\x18\x00\x10\x00\x00\x0a\x04\x00\x00\x00\x0b\x00\x04\x20\x00\x00\x00\x00\x05\x00\x04\x0a\x00\x00\x09"
)

func (o *ospfd) serve(c net.Conn) {
	defer c.Close()
	notices, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", c.RemoteAddr().(*net.TCPAddr).Port+1))
	if err != nil {
		return
	}
	defer notices.Close()
	o.connected.Add(1)
	defer o.connected.Add(-1)
	for {
		var head [8]byte
		if _, err := io.ReadFull(c, head[:]); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint16(head[2:]))
		if _, err := io.ReadFull(c, body); err != nil {
			return
		}
		switch head[1] {
		case 5: // originate: ospfd has the LSA
			say(notices, 12, "\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00"+string(body[8:]))
			o.holds.Store(true)
		case 6:
			o.holds.Store(false)
			o.withdrawn.Add(1)
		case 7:
			say(notices, 18, "\x00\x01\x00\x00\xc0\x00\x02\x01")
			say(notices, 12, "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"+announced)
		}
		if _, err := c.Write(append(append([]byte{1, 10, 0, 4}, head[4:]...), 0, 0, 0, 0)); err != nil {
			return
		}
	}
}

func say(c net.Conn, kind byte, body string) {
	_, _ = c.Write(append([]byte{1, kind, byte(len(body) >> 8), byte(len(body)), 0, 0, 0, 0}, body...))
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// TestOSPFFollowsReload: the gateway connects to ospfd when the configuration says so, uses what it learns and accepts, connects again with other
// settings, and withdraws what it announced when OSPF is removed, when proxies are disabled, and when it stops.
func TestOSPFFollowsReload(t *testing.T) {
	server := newOSPFd(t)
	with := func(accept string) string {
		return fmt.Sprintf("proxy: {enabled: true, ospf: {api: '%v', announce: [10.7.0.0/16], accept: [{prefix: %s}]}}\n", server.listener.Addr(), accept)
	}
	g, parse := mapped(t, enabledProxies)
	g.setForwarding(true)
	reload := func(lines string) {
		t.Helper()
		c := parse(lines)
		if err := g.apply(c); err != nil {
			t.Fatal(err)
		}
		g.follow(c)
	}
	inForce := func(want ...string) func() bool { return func() bool { return slices.Equal(g.inForce(), want) } }
	sessions := int32(0)
	for _, off := range []string{enabledProxies, disabledProxies} {
		for _, prefix := range []string{"10.3.0.0/16", "10.4.0.0/16"} {
			reload(with(prefix))
			eventually(t, "what is accepted is in force", inForce(prefix+" 10.0.0.9 ospf"))
			eventually(t, "the client has announced", server.holds.Load)
			sessions++
		}
		reload(off)
		eventually(t, "no client", func() bool { return server.connected.Load() == 0 })
		eventually(t, "nothing learned is in force", func() bool { return !slices.Contains(g.inForce(), "10.4.0.0/16 10.0.0.9 ospf") })
	}
	reload(with("10.3.0.0/16"))
	eventually(t, "in force again", inForce("10.3.0.0/16 10.0.0.9 ospf"))
	eventually(t, "the client has announced", server.holds.Load)
	g.setForwarding(false)
	if got := server.withdrawn.Load(); got != sessions+1 {
		t.Errorf("%d LSAs were withdrawn in %d sessions", got, sessions+1)
	}
}
