//go:build !nobgp

package bgp

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long a test waits for something that must come.
const patience = 2 * time.Minute

// The types of BGP messages (RFC 4271 4.1).
const (
	open         = 1
	update       = 2
	notification = 3
	keepalive    = 4
)

// message is a BGP message without its header.
type message struct {
	kind uint8
	body []byte
}

// rawPeer is a BGP router whose octets the tests write by hand: it shares no code with the speaker.
type rawPeer struct {
	t        *testing.T
	as       uint16
	listener net.Listener
	sessions chan *session
}

// session is an established session of a rawPeer.
type session struct {
	t        *testing.T
	conn     net.Conn
	open     []byte // that the speaker has sent
	received chan message
}

// newRawPeer listens at a loopback address. The password is that of TCP-MD5, "" for none. capabilities follow those for the two families and 4-octet AS
// numbers, in hexadecimal.
func newRawPeer(t *testing.T, address string, as uint16, password, capabilities string) *rawPeer {
	t.Helper()
	control := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		if password == "" {
			return nil
		}
		signature := unix.TCPMD5Sig{Keylen: uint16(len(password))}
		speaker := unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: [4]byte{127, 0, 0, 1}}
		signature.Addr.Family = unix.AF_INET
		copy(signature.Addr.Data[:], []byte{0, 0, speaker.Addr[0], speaker.Addr[1], speaker.Addr[2], speaker.Addr[3]})
		copy(signature.Key[:], password)
		e := c.Control(func(fd uintptr) {
			err = unix.SetsockoptTCPMD5Sig(int(fd), unix.IPPROTO_TCP, unix.TCP_MD5SIG, &signature)
		})
		if e != nil {
			return e
		}
		return err
	}}
	listener, err := control.Listen(t.Context(), "tcp4", address+":0")
	if err != nil && password != "" {
		t.Skipf("the kernel has no TCP-MD5: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	p := &rawPeer{t, as, listener, make(chan *session, 8)}
	t.Cleanup(func() { _ = listener.Close() })
	go p.accept(capabilities)
	return p
}

func (p *rawPeer) address() netip.Addr {
	return netip.MustParseAddrPort(p.listener.Addr().String()).Addr()
}

func (p *rawPeer) port() uint16 { return netip.MustParseAddrPort(p.listener.Addr().String()).Port() }

// accept opens a session with every connection, until the listener is closed.
func (p *rawPeer) accept(capabilities string) {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		s := &session{t: p.t, conn: conn, received: make(chan message, 1024)}
		// Capabilities: multiprotocol for IPv4 and IPv6 unicast, 4-octet AS number.
		all := "01 04 0001 00 01" + "01 04 0002 00 01" + fmt.Sprintf("41 04 %08x", p.as) + capabilities
		parameter := octets(all)
		body := octets(fmt.Sprintf("04 %04x 0000 0a000001 %02x 02 %02x", p.as, len(parameter)+2, len(parameter)))
		first, err := readMessage(conn)
		if err != nil || first.kind != open || s.write(open, append(body, parameter...)) != nil || s.write(keepalive, nil) != nil {
			_ = conn.Close()
			continue
		}
		if second, err := readMessage(conn); err != nil || second.kind != keepalive {
			_ = conn.Close()
			continue
		}
		s.open = first.body
		go s.read()
		p.sessions <- s
	}
}

// session waits for the next session.
func (p *rawPeer) session() *session {
	p.t.Helper()
	select {
	case s := <-p.sessions:
		p.t.Cleanup(func() { _ = s.conn.Close() })
		return s
	case <-time.After(patience):
		p.t.Fatal("the speaker opens no session")
		return nil
	}
}

func readMessage(conn io.Reader) (message, error) {
	header := make([]byte, 19)
	if _, err := io.ReadFull(conn, header); err != nil {
		return message{}, err
	}
	body := make([]byte, binary.BigEndian.Uint16(header[16:])-19)
	_, err := io.ReadFull(conn, body)
	return message{header[18], body}, err
}

// read puts what arrives into received, and closes it at the end.
func (s *session) read() {
	defer close(s.received)
	for {
		m, err := readMessage(s.conn)
		if err != nil {
			return
		}
		if m.kind != keepalive {
			s.received <- m
		}
	}
}

func (s *session) write(kind uint8, body []byte) error {
	frame := append(octets(strings.Repeat("ff", 16)), 0, 0, kind)
	binary.BigEndian.PutUint16(frame[16:], uint16(19+len(body)))
	_, err := s.conn.Write(append(frame, body...))
	return err
}

// next waits for the next message but keepalives; ok is false if the session has ended.
func (s *session) next() (m message, ok bool) {
	s.t.Helper()
	select {
	case m, ok := <-s.received:
		return m, ok
	case <-time.After(patience):
		s.t.Fatal("the speaker sends nothing")
		return m, false
	}
}

// nextRoutes waits for the next UPDATE that is not an End-of-RIB marker.
func (s *session) nextRoutes() []byte {
	s.t.Helper()
	for {
		m, ok := s.next()
		if !ok || m.kind != update {
			s.t.Fatalf("the speaker ended the session, or sent message type %d: % x", m.kind, m.body)
		}
		if len(m.body) > 4 && hex.EncodeToString(m.body) != "00000006800f03000201" {
			return m.body
		}
	}
}

// send sends an UPDATE: withdrawn routes, path attributes and routes, in hexadecimal.
func (s *session) send(withdrawn, attributes, routes string) {
	s.t.Helper()
	w, a := octets(withdrawn), octets(attributes)
	body := binary.BigEndian.AppendUint16(nil, uint16(len(w)))
	body = append(body, w...)
	body = binary.BigEndian.AppendUint16(body, uint16(len(a)))
	body = append(body, a...)
	if err := s.write(update, append(body, octets(routes)...)); err != nil {
		s.t.Fatal(err)
	}
}

// octets reads hexadecimal digits with spaces between them.
func octets(text string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		panic(err)
	}
	return b
}

// The attributes that each route has: ORIGIN IGP, AS_PATH 65002, and NEXT_HOP 192.0.2.10 for IPv4.
const (
	common  = "40 01 01 00" + "40 02 06 02 01 0000fdea"
	nextHop = "40 03 04 c000020a"
)

// nhcIPv4 is the attribute with a next hop of 192.0.2.10 and a proxy, 203.0.113.X.
func nhcIPv4(proxy int) string {
	return fmt.Sprintf("c0 27 10 0001 01 04 c000020a ff78 0004 cb0071%02x", proxy)
}
