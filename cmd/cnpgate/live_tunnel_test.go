//go:build live && !nodpdk

package main

import (
	endian "encoding/binary" // main_test.go has a variable named binary
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// wirePort is one end of a veth pair: a packet socket that sends and receives whole frames.
type wirePort struct{ socket int }

func openWire(t *testing.T, name string) *wirePort {
	t.Helper()
	i, err := net.InterfaceByName(name)
	if err != nil {
		t.Fatal(err)
	}
	const all = 0x0300 // ETH_P_ALL in network byte order
	s, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = errors.Join(
			unix.SetsockoptInt(s, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
			unix.SetsockoptInt(s, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20),
			unix.SetsockoptTimeval(s, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 20_000}),
			unix.Bind(s, &unix.SockaddrLinklayer{Ifindex: i.Index, Protocol: all}))
	}
	if err != nil {
		t.Fatal(err)
	}
	return &wirePort{s}
}

// A tunnel puts frames into a tunnel, and takes them out of it. unwrap returns nil for a frame that is in none.
type tunnel struct {
	name   string
	wrap   func(inner []byte) []byte
	unwrap func(outer []byte) []byte
}

var (
	nearEdge, farEdge = [6]byte{2, 0, 0, 0, 0x77, 1}, [6]byte{2, 0, 0, 0, 0x77, 2}
	noTunnel          = tunnel{"plain", func(b []byte) []byte { return b }, func([]byte) []byte { return nil }}
)

// vxlanTunnel carries whole frames over IPv4 (RFC 7348 5). The outer ECN field is the inner one (RFC 6040 4.1).
func vxlanTunnel(from, to [6]byte) tunnel {
	const outer = packet.EthernetLen + packet.IPv4Len + packet.UDPLen + 8
	return tunnel{"VXLAN", func(inner []byte) []byte {
		b := make([]byte, outer, outer+len(inner))
		copy(b, to[:])
		copy(b[6:], from[:])
		endian.BigEndian.PutUint16(b[12:], packet.EtherTypeIPv4)
		endian.BigEndian.PutUint16(b[34:], 50000)
		endian.BigEndian.PutUint16(b[36:], 4789)
		endian.BigEndian.PutUint16(b[38:], uint16(outer-packet.EthernetLen-packet.IPv4Len+len(inner)))
		copy(b[42:], []byte{8, 0, 0, 0, 0, 0x12, 0x34, 0}) // VNI 0x1234
		packet.PutIPv4(b[packet.EthernetLen:], uint16(outer-packet.EthernetLen+len(inner)), ecnOf(inner), 64, packet.ProtoUDP, 192<<24|2<<8|uint32(from[5]), 192<<24|2<<8|uint32(to[5]))
		return append(b, inner...)
	}, func(b []byte) []byte {
		if len(b) < outer || endian.BigEndian.Uint16(b[12:]) != packet.EtherTypeIPv4 || b[23] != packet.ProtoUDP || endian.BigEndian.Uint16(b[36:]) != 4789 {
			return nil
		}
		return b[outer:]
	}}
}

// mplsTunnel carries IP packets below two labels (RFC 3032): one of the path and one of the VPN. What comes out has the addresses of the hosts' own
// link.
func mplsTunnel(from, to, host, hostPeer [6]byte) tunnel {
	return tunnel{"MPLS", func(inner []byte) []byte {
		etherType := endian.BigEndian.Uint16(inner[12:])
		if etherType != packet.EtherTypeIPv4 && etherType != packet.EtherTypeIPv6 {
			return nil
		}
		b := append(append(append([]byte{}, to[:]...), from[:]...), 0x88, 0x47)
		b = endian.BigEndian.AppendUint32(b, 16<<12|64)      // the path's label
		b = endian.BigEndian.AppendUint32(b, 17<<12|1<<8|64) // the VPN's, at the bottom
		return append(b, inner[packet.EthernetLen:]...)
	}, func(b []byte) []byte {
		const inner = packet.EthernetLen + 8
		if len(b) <= inner || endian.BigEndian.Uint16(b[12:]) != 0x8847 {
			return nil
		}
		f := append(append([]byte{}, host[:]...), hostPeer[:]...)
		etherType := uint16(packet.EtherTypeIPv6)
		if b[inner]>>4 == 4 {
			etherType = packet.EtherTypeIPv4
		}
		return append(endian.BigEndian.AppendUint16(f, etherType), b[inner:]...)
	}}
}

func ecnOf(frame []byte) uint8 {
	var p packet.Parsed
	packet.Parse(frame, uint32(len(frame)), &p)
	return p.ECN
}

// provider is a provider edge: it joins a wire with plain frames and one with a tunnel. Frames outside the tunnel pass as they are. It keeps the
// notifications to proxies that pass.
type provider struct {
	plain, tunneled *wirePort
	tunnel          tunnel
	stopped         atomic.Bool
	loops           sync.WaitGroup

	mu            sync.Mutex
	wrapped       int // frames that went into the tunnel
	notifications [][]byte
}

func startProvider(plain, tunneled *wirePort, through tunnel) *provider {
	e := &provider{plain: plain, tunneled: tunneled, tunnel: through}
	e.loops.Go(func() { e.carry(plain, tunneled, e.into) })
	e.loops.Go(func() { e.carry(tunneled, plain, e.outOf) })
	return e
}

func (e *provider) carry(from, to *wirePort, change func([]byte) []byte) {
	b := make([]byte, 16384)
	for !e.stopped.Load() {
		n, _, err := unix.Recvfrom(from.socket, b, 0)
		if err != nil || n < packet.EthernetLen {
			continue
		}
		if f := change(b[:n]); f != nil {
			_ = unix.Send(to.socket, f, 0)
		}
	}
}

func (e *provider) into(b []byte) []byte {
	e.mu.Lock()
	e.wrapped++
	e.mu.Unlock()
	return e.tunnel.wrap(b)
}

func (e *provider) outOf(b []byte) []byte {
	if inner := e.tunnel.unwrap(b); inner != nil {
		return inner
	}
	var p packet.Parsed
	if packet.Parse(b, uint32(len(b)), &p); p.DstPort == packet.DefaultCodePoints.ProxyPort {
		e.mu.Lock()
		e.notifications = append(e.notifications, slices.Clone(b))
		e.mu.Unlock()
	}
	return b
}

func (e *provider) stop() {
	e.stopped.Store(true)
	e.loops.Wait()
	_, _ = unix.Close(e.plain.socket), unix.Close(e.tunneled.socket)
}
