package ospfapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/cnpgate/cnpgate/internal/igp/ospfv2"
)

// answerTime is how long ospfd may take for a reply or to connect.
const answerTime = 5 * time.Second

// session is a connection to the API: requests and their replies go over one TCP connection, which the client opens. ospfd opens the other one to
// the next port, for what it says unasked.
type session struct {
	requests, notices net.Conn
	sequence          uint32
	originated        map[uint32]bool // opaque IDs of the LSAs that the client has originated

	// The goroutine that reads notices fills these. It has to read at once whatever happens elsewhere: ospfd does nothing else while it
	// writes.
	mutex    sync.Mutex
	database *database
	ignored  error // why the latest LSA was ignored, which the log hasn't said yet

	changed, ready chan struct{} // senders may have changed; LSAs can, or have to, be originated
	ended          chan error    // gets why reading notices ended
}

// dial connects to ospfd. Only accepted prefixes are kept.
func dial(ctx context.Context, server netip.AddrPort, accepts func(netip.Prefix) bool) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	local, err := localAddress(server)
	if err != nil {
		return nil, err
	}
	const attempts = 16 // a port may be in use, or still be closing
	for range attempts {
		var s *session
		if s, err = dialPorts(ctx, local, server, accepts); !errors.Is(err, syscall.EADDRINUSE) && !errors.Is(err, syscall.EADDRNOTAVAIL) {
			return s, err
		}
	}
	return nil, err
}

// localAddress is this host's address towards the server. It sends nothing.
func localAddress(server netip.AddrPort) (netip.Addr, error) {
	c, err := net.Dial("udp4", server.String())
	if err != nil {
		return netip.Addr{}, fmt.Errorf("no route to ospfd's API at %v: %w", server, err)
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Addr(), nil
}

// dialPorts listens at a free port, and connects from the one before it.
func dialPorts(ctx context.Context, local netip.Addr, server netip.AddrPort, accepts func(netip.Prefix) bool) (*session, error) {
	listener, err := net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(netip.AddrPortFrom(local, 0)))
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).AddrPort().Port()
	dialer := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(local, port-1))}
	requests, err := dialer.DialContext(ctx, "tcp4", server.String())
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("nothing listens at ospfd's API, %v; start ospfd with -a: %w", server, err)
	}
	if err != nil {
		return nil, fmt.Errorf("ospfd's API: %w", err)
	}
	notices, err := accept(ctx, listener, server.Addr())
	if err != nil {
		requests.Close()
		return nil, err
	}
	s := &session{requests: requests, notices: notices, originated: map[uint32]bool{}, database: newDatabase(accepts),
		changed: make(chan struct{}, 1), ready: make(chan struct{}, 1), ended: make(chan error, 1)}
	go func() { s.ended <- s.read() }()
	return s, nil
}

// accept takes ospfd's connection and refuses others.
func accept(ctx context.Context, listener *net.TCPListener, server netip.Addr) (net.Conn, error) {
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer stop()
	for {
		c, err := listener.AcceptTCP()
		if err != nil {
			return nil, fmt.Errorf("ospfd has not opened its connection for notices within %v: %w", answerTime, cmp.Or(ctx.Err(), err))
		}
		if c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap() == server {
			return c, nil
		}
		c.Close()
	}
}

// close ends the session, after which ospfd withdraws what the client has originated, too.
func (s *session) close() {
	s.requests.Close()
	s.notices.Close()
}

// request sends a request and waits for the reply. After any error but a refusal, the session can't be used any more.
func (s *session) request(kind uint8, body []byte) error {
	s.sequence++
	m := message{kind: kind, sequence: s.sequence, body: body}
	err := s.requests.SetDeadline(time.Now().Add(answerTime))
	if err == nil {
		_, err = s.requests.Write(m.append(nil))
	}
	var answer message
	if err == nil {
		answer, err = readMessage(s.requests)
	}
	if err == nil {
		err = checkReply(&answer, s.sequence)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded) && kind == syncReachable:
		return fmt.Errorf("ospfd doesn't answer request %d, %s; FRR 8.4 does", kind, requestNames[kind])
	case errors.Is(err, io.EOF):
		err = errors.New("ospfd has closed the connection")
	}
	return fmt.Errorf("%s: %w", requestNames[kind], err)
}

// start subscribes to what the client learns, and asks for what ospfd has already. If the client originates LSAs, it registers them: ospfd lets only one
// client do so. ospfd sends all it has before its replies to the last two requests, though over the other connection.
func (s *session) start(ctx context.Context, originates bool) error {
	all := filter(ospfv2.LinkScope, ospfv2.AreaScope, ospfv2.ASScope)
	requests := []message{
		{kind: registerOpaqueType, body: []byte{ospfv2.ASScope, ospfv2.OpaqueType, 0, 0}},
		{kind: registerEvent, body: all},
		{kind: syncLSDB, body: all},
		{kind: syncReachable, body: make([]byte, 4)},
	}
	if !originates {
		requests = requests[1:]
	}
	for _, r := range requests {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := s.request(r.kind, r.body); err != nil {
			return err
		}
	}
	return nil
}

// read reads notices until the connection ends.
func (s *session) read() error {
	for {
		m, err := readMessage(s.notices)
		if err != nil {
			if errors.Is(err, io.EOF) {
				return errors.New("ospfd has closed the connection")
			}
			return err
		}
		if err := s.notice(&m); err != nil {
			return err
		}
	}
}

// notice handles what ospfd says. An error means that the client and ospfd don't understand each other.
func (s *session) notice(m *message) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	switch m.kind {
	case readyNotify:
		signal(s.ready)
	case lsaUpdate, lsaDelete:
		c, err := decodeChange(m.body)
		if err != nil {
			return err
		}
		s.apply(&c, m.kind == lsaUpdate)
	case reachableChange:
		added, removed, err := decodeReachable(m.body)
		if err != nil {
			return err
		}
		s.database.reach(added, removed)
		signal(s.changed)
	}
	return nil // other notices are about interfaces and neighbours
}

// apply applies a change of the LSDB.
func (s *session) apply(c *change, present bool) {
	effect, err := s.database.update(c, present)
	switch effect {
	case changed:
		signal(s.changed)
	case lost:
		signal(s.ready)
	case full:
		signal(s.changed)
		err = fmt.Errorf("there are %d prefixes already, the most that can be learned", s.database.prefixes)
	}
	if err != nil {
		s.ignored = fmt.Errorf("LSA %s of %v: %w", ospfv2.IDString(c.lsa.ID), c.lsa.Router, err)
	}
}

// signal wakes the client; signals that it hasn't taken yet combine.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
