package ospfapi_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control/advertise"
	"github.com/cnpgate/cnpgate/control/advertise/ospfapi"
	"github.com/cnpgate/cnpgate/internal/igp/ospf"
	"github.com/cnpgate/cnpgate/proxy"
)

// deadline is how long a test waits for another goroutine. Nothing depends on its length but how late a failure is noticed.
const deadline = time.Minute

// server is an API server whose test says what it answers.
type server struct {
	t        *testing.T
	listener net.Listener
	requests net.Conn
	notices  net.Conn
}

func newServer(t *testing.T) *server {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return &server{t: t, listener: l}
}

// accept takes a client's connection, and opens the one for notices to the next port.
func (s *server) accept() {
	s.t.Helper()
	var err error
	if s.requests, err = s.listener.Accept(); err != nil {
		s.t.Fatal(err)
	}
	client := s.requests.RemoteAddr().(*net.TCPAddr)
	stranger := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	if c, err := stranger.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", client.Port+1)); err == nil {
		s.t.Cleanup(func() { c.Close() }) // the client must not take it for the server's
	}
	if s.notices, err = net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", client.Port+1)); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(s.close)
	if err := s.requests.SetDeadline(time.Now().Add(deadline)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *server) close() { s.requests.Close(); s.notices.Close() }

// answer reads a request of a kind and replies with a code.
func (s *server) answer(kind uint8, code int8) []byte {
	s.t.Helper()
	got, sequence, body, err := ospfapi.ReadMessage(s.requests)
	if err != nil || got != kind {
		s.t.Fatalf("request %d (%v), want %d", got, err, kind)
	}
	if _, err := s.requests.Write(ospfapi.Append(10, sequence, []byte{byte(code), 0, 0, 0})); err != nil {
		s.t.Fatal(err)
	}
	return body
}

// say sends a notice.
func (s *server) say(kind uint8, body string) {
	s.t.Helper()
	if _, err := s.notices.Write(ospfapi.Append(kind, 0, []byte(body))); err != nil {
		s.t.Fatal(err)
	}
}

// sayLSA sends an LSA as added or removed.
func (s *server) sayLSA(kind uint8, l ospf.LSA, own byte) {
	s.t.Helper()
	b, err := l.Append([]byte{0, 0, 0, 0, 0, 0, 0, 0, own, 0, 0, 0})
	if err != nil {
		s.t.Fatal(err)
	}
	s.say(kind, string(b))
}

// client runs a client; learned gets what it learns, as text.
func client(t *testing.T, s *server, announce string) (learned <-chan string, log *safeBuffer, stop func()) {
	t.Helper()
	got := make(chan string, 100)
	ctx, cancel := context.WithCancel(context.Background())
	log = &safeBuffer{said: make(chan string, 1000)}
	c := ospfapi.Client{Server: netip.MustParseAddrPort(s.listener.Addr().String()), Own: own, Log: zerolog.New(log), Note: log.note}
	if announce != "" {
		c.Announce = []netip.Prefix{netip.MustParsePrefix(announce)}
	}
	c.NeverAgain()
	c.Accepts = func(p netip.Prefix) bool { return !p.Overlaps(netip.MustParsePrefix("10.66.0.0/16")) }
	c.Learned = func(senders []proxy.Sender) error {
		var words []string
		for _, e := range senders {
			words = append(words, fmt.Sprintf("%v=%v", e.Prefix, e.Proxy))
		}
		got <- strings.Join(words, " ")
		return nil
	}
	done := make(chan error)
	go func() { done <- c.Run(ctx) }()
	stop = func() {
		t.Helper()
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(deadline):
			t.Fatal("the client doesn't stop")
		}
	}
	return got, log, stop
}

// note passes on why there is no connection.
func (b *safeBuffer) note(err error) {
	if err != nil {
		_, _ = b.Write([]byte(err.Error() + "\n"))
	}
}

// safeBuffer passes on each line of a log.
type safeBuffer struct{ said chan string }

func (b *safeBuffer) Write(line []byte) (int, error) {
	b.said <- string(bytes.Clone(line))
	return len(line), nil
}

// expect waits until a text comes.
func expect(t *testing.T, from <-chan string, want string) {
	t.Helper()
	end := time.After(deadline)
	for {
		select {
		case got := <-from:
			if got == want || strings.Contains(got, want) && want != "" {
				return
			}
		case <-end:
			t.Fatalf("%q has not come", want)
		}
	}
}

// start answers the requests at the start of a session.
func (s *server) start(announces bool) {
	s.t.Helper()
	s.accept()
	if announces {
		if body := s.answer(1, 0); !bytes.Equal(body, []byte{11, 7, 0, 0}) {
			s.t.Errorf("it registers %x", body)
		}
	}
	for _, kind := range []uint8{3, 4} {
		if body := s.answer(kind, 0); !bytes.Equal(body, []byte{0x0e, 0, 2, 0}) {
			s.t.Errorf("request %d: the filter is %x, want LSAs of the types 9, 10 and 11 of any origin", kind, body)
		}
	}
	s.answer(7, 0)
}

const reachable = "\x00\x01\x00\x00\xc0\x00\x02\x01"

// TestLearn: a client passes on what it learns, forgets it when the connection is lost, connects again, and forgets it when it stops.
func TestLearn(t *testing.T) {
	s := newServer(t)
	learned, log, stop := client(t, s, "")
	s.start(false)
	l := lsa(t, "192.0.2.1", 11, 1, "10.1.0.0/16=192.0.2.9 10.66.1.0/24=192.0.2.9") // the second one isn't accepted
	s.say(18, reachable)
	s.say(14, "another notice")
	s.sayLSA(12, l, 0)
	expect(t, learned, "10.1.0.0/16=192.0.2.9")
	broken := lsa(t, "192.0.2.1", 11, 2, "10.1.0.0/16=192.0.2.9")
	broken.Body = broken.Body[:len(broken.Body)-5]
	s.sayLSA(12, broken, 0)
	expect(t, log.said, "LSA 7.0.0.2 of 192.0.2.1: extended prefix LSA")
	s.close()
	expect(t, learned, "")
	expect(t, log.said, "ospfd has closed the connection")
	s.start(false)
	s.say(18, reachable)
	s.sayLSA(12, l, 0)
	expect(t, learned, "10.1.0.0/16=192.0.2.9")
	s.sayLSA(13, l, 0)
	expect(t, learned, "")
	s.sayLSA(12, l, 0)
	expect(t, learned, "10.1.0.0/16=192.0.2.9")
	stop()
	expect(t, learned, "")
}

// TestLearnWhileChanging: what a client learns is used within a second although the LSDB never stops changing.
func TestLearnWhileChanging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := ospfapi.NewDatabase()
		d.Reach([]netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil)
		if _, err := d.Update(lsa(t, "192.0.2.1", 11, 1, "10.1.0.0/16=192.0.2.9"), false, true); err != nil {
			t.Fatal(err)
		}
		begin, learned := time.Now(), []time.Duration(nil)
		c := ospfapi.Client{Own: own, Accepts: func(netip.Prefix) bool { return true }, Log: zerolog.Nop()}
		c.Learned = func([]proxy.Sender) error {
			learned = append(learned, time.Since(begin))
			return nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		changed, done := make(chan struct{}, 1), make(chan error)
		go func() { done <- c.Work(ctx, d, changed) }()
		for range 50 {
			changed <- struct{}{}
			time.Sleep(advertise.Quiet / 2)
		}
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if len(learned) != 1 || learned[0] <= 0 || learned[0] > advertise.Longest {
			t.Errorf("learned at %v, expected once within %v", learned, advertise.Longest)
		}
	})
}

// TestAnnounce: a client originates its LSA when ospfd is ready, deletes one that a gateway before it has left, originates it again when ospfd has lost
// it, and deletes it when it stops.
func TestAnnounce(t *testing.T) {
	s := newServer(t)
	_, _, stop := client(t, s, "10.1.0.0/16")
	s.start(true)
	s.answer(5, -7)
	s.sayLSA(12, lsa(t, "192.0.2.2", 11, 5, "10.9.0.0/16=192.0.2.99"), 1)
	s.say(11, "\x0b\x07\x00\x00\x00\x00\x00\x00")
	// 8 octets for interface and area, the LSA's header, the Extended Prefix TLV.
	want := "\x00\x00\x00\x00\x00\x00\x00\x00" + "\x00\x00\x00\x0b\x07\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00" + "##" + "\x00\x30" +
		"\x00\x01\x00\x18\x00\x10\x00\x00\x0a\x01\x00\x00\x00\x0b\x00\x04\x20\x00\x00\x00\x00\x05\x00\x04\xc0\x00\x02\x63"
	body := s.answer(5, 0)
	if copy(body[24:], "##"); string(body) != want {
		t.Errorf("it originates\n%x, want\n%x", body, want)
	}
	if body := s.answer(6, -3); binary.BigEndian.Uint32(body[8:]) != 5 || body[4] != 11 || body[5] != 7 {
		t.Errorf("it deletes %x", body)
	}
	mine := lsa(t, "192.0.2.2", 11, 1, "10.1.0.0/16=192.0.2.99")
	s.sayLSA(13, lsa(t, "192.0.2.2", 11, 5, "10.9.0.0/16=192.0.2.99"), 1)
	s.answer(5, 0) // ospfd hasn't said that it has the LSA
	s.sayLSA(12, mine, 1)
	s.sayLSA(13, mine, 1)
	s.answer(5, 0)
	s.sayLSA(12, mine, 1)
	s.sayLSA(12, lsa(t, "192.0.2.1", 11, 1, "10.2.0.0/16=192.0.2.9"), 0)
	stopped := make(chan struct{})
	go func() {
		stop()
		close(stopped)
	}()
	if body := s.answer(6, 0); binary.BigEndian.Uint32(body[8:]) != 1 {
		t.Errorf("it deletes %x", body)
	}
	<-stopped
	if _, _, _, err := ospfapi.ReadMessage(s.requests); err == nil {
		t.Error("it asks for more than it has to when it stops")
	}
}

// TestRefused: the log says why nothing is announced or learned, and what to do.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name, announce, want string
		serve                func(*server)
	}{
		{"type in use", "10.1.0.0/16", "another client of its API has registered", func(s *server) { s.answer(1, -5) }},
		{"unknown code", "", "register event: error -42", func(s *server) { s.answer(3, -42) }},
		{"closed", "", "register event: ospfd has closed the connection", func(s *server) { _, _, _, _ = ospfapi.ReadMessage(s.requests); s.close() }},
		{"version", "", "ospfd speaks version 2 of its API; expected 1", func(s *server) { _, _ = s.requests.Write([]byte{2, 10, 0, 4, 0, 0, 0, 1}) }},
		{"no reply", "", "ospfd sent message 11 with 4 octets instead of a reply", func(s *server) { _, _ = s.requests.Write(ospfapi.Append(11, 1, make([]byte, 4))) }},
		{"sequence", "", "ospfd replied to request 7 instead of 1", func(s *server) { _, _ = s.requests.Write(ospfapi.Append(10, 7, make([]byte, 4))) }},
		{"cut notice", "", "ospfd's message 12 ends early", func(s *server) {
			for _, kind := range []uint8{3, 4, 7} {
				s.answer(kind, 0)
			}
			_, _ = s.notices.Write(ospfapi.Append(12, 0, make([]byte, 40))[:20])
			s.notices.Close()
		}},
		{"LSA without a header", "", "ospfd sent an LSA that can't be read: 3 octets are left", func(s *server) {
			for _, kind := range []uint8{3, 4, 7} {
				s.answer(kind, 0)
			}
			s.say(12, "............abc")
		}},
		{"routers that aren't there", "", "ospfd announced 65535 reachable and 65535 unreachable routers in 0 octets", func(s *server) {
			for _, kind := range []uint8{3, 4, 7} {
				s.answer(kind, 0)
			}
			s.say(18, "\xff\xff\xff\xff")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t)
			_, log, stop := client(t, s, c.announce)
			s.accept()
			c.serve(s)
			expect(t, log.said, c.want)
			s.listener.Close()
			s.close()
			stop()
		})
	}
	s := newServer(t)
	s.listener.Close()
	_, log, stop := client(t, s, "")
	expect(t, log.said, "start ospfd with -a")
	stop()
}

// TestSettings: what can't be announced is an error at once.
func TestSettings(t *testing.T) {
	v4 := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}
	for want, c := range map[string]ospfapi.Client{
		"the gateway has no address":          {Announce: v4},
		"announce: 2001:db8::/32 is no IPv4 ": {Own: own, Announce: []netip.Prefix{netip.MustParsePrefix("2001:db8::/32")}},
	} {
		c.Learned = func([]proxy.Sender) error { return nil }
		if err := c.Run(context.Background()); err == nil || !strings.Contains(err.Error(), strings.TrimSpace(want)) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}
