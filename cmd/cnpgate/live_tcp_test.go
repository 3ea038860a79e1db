//go:build live && !nodpdk

package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
)

// station is a thread in a network namespace of its own, and does there what it is given.
type station struct{ calls chan func() }

func newStation(t *testing.T) (s *station, namespace string) {
	t.Helper()
	s = &station{make(chan func())}
	entered := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked
		err := unix.Unshare(unix.CLONE_NEWNET)
		namespace = fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), unix.Gettid())
		entered <- err
		for call := range s.calls {
			call()
		}
	}()
	if err := <-entered; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { close(s.calls) })
	return s, namespace
}

// do runs f in the namespace and waits for it.
func (s *station) do(t *testing.T, f func() error) {
	t.Helper()
	result := make(chan error)
	s.calls <- func() { result <- f() }
	if err := <-result; err != nil {
		t.Fatal(err)
	}
}

func (s *station) ip(t *testing.T, lines ...string) {
	t.Helper()
	s.do(t, func() error {
		for _, line := range lines {
			if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
				return fmt.Errorf("ip %s: %w: %s", line, err, out)
			}
		}
		return nil
	})
}

// socket makes a socket in the namespace.
func (s *station) socket(t *testing.T, address netip.Addr, kind int) (fd int) {
	t.Helper()
	family := unix.AF_INET6
	if address.Is4() {
		family = unix.AF_INET
	}
	s.do(t, func() (err error) {
		fd, err = unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		limit := &unix.Timeval{Sec: 20}
		return errors.Join(unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, limit), unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, limit))
	})
	return fd
}

func sockaddr(address netip.Addr, port int) unix.Sockaddr {
	if address.Is4() {
		return &unix.SockaddrInet4{Port: port, Addr: address.As4()}
	}
	return &unix.SockaddrInet6{Port: port, Addr: address.As16()}
}

// tunnels are between the two hosts: their large packets have an inner TCP header that is to be cut, and outer headers that follow.
var tunnels = []string{"vx0", "vx1"}

// TestLiveOffloads: hosts whose interfaces leave checksums and segmentation to be offloaded, as veths do by default, talk through the
// gateway: TCP both ways, and UDP with segmentation offload (UDP_SEGMENT), over IPv4 and IPv6, as BIG TCP too, and
// TCP in tunnels. The receiving kernel checks every checksum.
func TestLiveOffloads(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	program := liveBinary(t)
	enterNamespace(t)
	var hosts [2]*station
	for i, side := range []string{"a", "b"} {
		s, namespace := newStation(t)
		hosts[i] = s
		ip(t, "link set "+side+"1 netns "+namespace)
		s.ip(t, fmt.Sprintf("address add 198.18.0.%d/24 dev %s1", i+1, side), fmt.Sprintf("address add fd00:18::%d/64 dev %s1 nodad", i+1, side), "link set "+side+"1 up")
	}
	// The tunnels' MTU is less than the underlay's 1500 by their headers.
	for i, s := range hosts {
		device, other := [2]string{"a1", "b1"}[i], 2-i
		s.ip(t, fmt.Sprintf("link add vx0 mtu 1400 type vxlan id 42 remote 198.18.0.%d dstport 4789 dev %s", other, device),
			fmt.Sprintf("link add vx1 mtu 1400 type vxlan id 43 local fd00:18::%d remote fd00:18::%d dstport 4789 dev %s", i+1, other, device),
			"link set "+device+" gso_max_size 180000")
		for j, tunnel := range tunnels {
			s.ip(t, fmt.Sprintf("address add 198.19.%d.%d/24 dev %s", j, i+1, tunnel), "link set "+tunnel+" up")
		}
	}
	p := startGateway(t, program)
	for j := range tunnels {
		transferTCP(t, hosts[0], hosts[1], netip.AddrFrom4([4]byte{198, 19, byte(j), 2}))
	}
	for _, c := range []struct {
		from int
		to   netip.Addr
	}{
		{0, netip.MustParseAddr("198.18.0.2")}, {1, netip.MustParseAddr("198.18.0.1")},
		{0, netip.MustParseAddr("fd00:18::2")}, {1, netip.MustParseAddr("fd00:18::1")},
	} {
		transferTCP(t, hosts[c.from], hosts[1-c.from], c.to)
		transferUDP(t, hosts[c.from], hosts[1-c.from], c.to)
	}
	fabric, wan := p.stop()
	for i, r := range []portReport{fabric, wan} {
		for reason, n := range r.Counters.Dropped {
			if n != 0 {
				t.Errorf("port %d dropped %d frames: %s", i, n, reason)
			}
		}
	}
}

const transferred = 32 << 20

func transferTCP(t *testing.T, from, to *station, address netip.Addr) {
	t.Helper()
	listener := to.socket(t, address, unix.SOCK_STREAM)
	if err := errors.Join(unix.SetsockoptInt(listener, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1), unix.Bind(listener, sockaddr(address, 7000)), unix.Listen(listener, 1)); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(listener)
	sum := make(chan [32]byte)
	go func() {
		h := sha256.New()
		if fd, _, err := unix.Accept(listener); err == nil {
			f := os.NewFile(uintptr(fd), "tcp")
			_, _ = io.Copy(h, f)
			_ = f.Close()
		}
		sum <- [32]byte(h.Sum(nil))
	}()
	fd := from.socket(t, address, unix.SOCK_STREAM)
	if err := unix.Connect(fd, sockaddr(address, 7000)); err != nil {
		t.Errorf("TCP to %s: %v", address, err)
		_ = unix.Shutdown(listener, unix.SHUT_RDWR)
	}
	f, h := os.NewFile(uintptr(fd), "tcp"), sha256.New()
	block := make([]byte, 1<<20)
	for i := range transferred / len(block) {
		for j := range block {
			block[j] = byte(i + j*j>>8)
		}
		_, _ = h.Write(block)
		if _, err := f.Write(block); err != nil {
			t.Errorf("TCP to %s: %v", address, err)
			break
		}
	}
	_ = f.Close()
	if got := <-sum; got != [32]byte(h.Sum(nil)) {
		t.Errorf("TCP to %s: other data arrived than was sent", address)
	}
}

// transferUDP sends datagrams of 1000 bytes, many in one packet of the kernel's, which the gateway has to cut.
func transferUDP(t *testing.T, from, to *station, address netip.Addr) {
	t.Helper()
	receiver, sender := to.socket(t, address, unix.SOCK_DGRAM), from.socket(t, address, unix.SOCK_DGRAM)
	defer unix.Close(receiver)
	defer unix.Close(sender)
	const size, packets, datagrams = 1000, 20, 40
	err := errors.Join(
		unix.SetsockoptInt(receiver, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20), unix.Bind(receiver, sockaddr(address, 7001)),
		unix.SetsockoptInt(sender, unix.SOL_UDP, unix.UDP_SEGMENT, size), unix.Connect(sender, sockaddr(address, 7001)))
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, size*datagrams-500) // the last one is shorter
	for i := range packets {
		for j := range b {
			b[j] = byte(i + j/size)
		}
		if _, err := unix.Write(sender, b); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond) // the receiver's backlog has its limit
	}
	got := make([]byte, 2000)
	for n := range packets * datagrams {
		i, j := n/datagrams, n%datagrams
		want := size
		if j == datagrams-1 {
			want -= 500
		}
		length, err := unix.Read(receiver, got)
		if err != nil || length != want || got[0] != byte(i+j) || got[length-1] != byte(i+j) {
			t.Errorf("UDP to %s: datagram %d of %d has %d bytes (%v), expected %d", address, n, packets*datagrams, length, err, want)
			return
		}
	}
}
