//go:build !nodpdk

package dpdk

/*
#include "batch.h"
#include "socket.h"
*/
import "C"

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/internal/netif"
)

// Bytes that the kernel keeps for a worker's sockets of one interface. The first is for frames that wait to be received. The second bounds
// the unsent frames of a NIC, to a burst of jumbo frames: further frames wait in the egress queue, where they count as depth.
const (
	receiveMemory = 16 * mebi
	sendMemory    = 2 * mebi
)

// kernelInterface is a port on one of the kernel's interfaces: a pair of packet sockets a worker. It has the name of DPDK's net_af_packet
// and replaces it (the package comment says why).
type kernelInterface struct {
	cfg      PortConfig
	device   device
	workers  int
	follower follower // from setup on

	lock    *lock // of the interface
	sockets []socketPair
	before  *offeredSockets // of the gateway before this one; nil: none
	offer   *offer          // to the next one; nil: none
	group   int             // PACKET_FANOUT group, which spreads frames over the workers' sockets
	c       []*C.struct_cnp_socket

	discarded uint64 // frames that waited when the port was stopped

	mutex  sync.Mutex
	missed uint64 // frames dropped by the full kernel queue; reading them resets the kernel's count
}

// socketPair is one worker's.
type socketPair struct{ rx, tx int }

func newInterface(cfg PortConfig, d device) (*kernelInterface, error) {
	p := &kernelInterface{cfg: cfg, device: d}
	var err error
	p.lock, err = lockInterface(d.iface)
	return p, err
}

func (p *kernelInterface) numa() int { return -1 }

func (p *kernelInterface) buffer(mtu int) int { return bufferFor(mtu) }

// setup opens the sockets.
func (p *kernelInterface) setup(pool *Pool, workers int) (Profile, error) {
	n, err := netif.Read(p.device.iface)
	if err != nil {
		return Profile{}, err
	}
	p.workers = workers
	p.follower = follower{iface: netif.Follow(n), mtu: p.cfg.MTU, room: pool.Room(), connect: p.connect, disconnect: p.disconnect, connected: true}
	if err := p.open(n.Index); err != nil {
		return Profile{}, err
	}
	for _, s := range p.sockets {
		c := C.cnp_socket_new(C.int(s.rx), C.int(s.tx), pool.pool, C.uint32_t(pool.Room()))
		if c == nil {
			return Profile{}, errors.New("no memory for the sockets' buffers")
		}
		p.c = append(p.c, c)
	}
	f := Profile{
		Driver: "net_af_packet", Interface: p.device.iface, Address: netif.MAC(n.Name), MTU: n.MTU, Buffer: pool.Room(), Longest: n.MTU + 14 + 4,
		Workers: workers, Spread: OneWorker,
	}
	if workers > 1 {
		f.Spread = KernelHash
	}
	f.tagsOfKernel(n.MTU, cmp.Or(p.cfg.MTU, n.MTU))
	f.consequences()
	return f, nil
}

// open makes the sockets for the interface with this index, and replaces the present ones, which workers may be using. If it fails, nothing
// has changed.
func (p *kernelInterface) open(index int) (err error) {
	p.group = 0
	defer func() {
		if err == nil { // the present ones may be of an interface that is gone
			p.offerSockets()
		}
	}()
	if len(p.sockets) == 0 {
		if p.sockets = p.before.take(index, p.workers); p.sockets != nil {
			return nil
		}
	}
	var pairs []socketPair
	for w := range p.workers {
		s, err := p.openPair(w, index)
		if err != nil {
			return errors.Join(err, closePairs(pairs))
		}
		pairs = append(pairs, s)
	}
	if len(p.sockets) == 0 {
		p.sockets = pairs
		return nil
	}
	var errs []error
	for w, s := range pairs {
		old := p.sockets[w]
		p.collectMissed(old.rx)
		errs = append(errs, unix.Dup3(s.rx, old.rx, unix.O_CLOEXEC), unix.Dup3(s.tx, old.tx, unix.O_CLOEXEC))
	}
	if err := errors.Join(append(errs, closePairs(pairs))...); err != nil {
		return fmt.Errorf("replacing the packet sockets: %w", err)
	}
	return nil
}

// offerSockets offers the sockets to the next gateway. Without the offer that one opens its own, and frames are lost meanwhile.
func (p *kernelInterface) offerSockets() {
	if p.offer == nil && len(p.sockets) > 0 {
		p.offer, _ = newOffer(offerPath(p.lock.file.Name()), p.sockets)
	}
}

// endOffer reports whether another gateway has the sockets.
func (p *kernelInterface) endOffer() (taken bool) {
	taken, p.offer = p.offer.close(), nil
	return taken
}

func closePairs(pairs []socketPair) error {
	var errs []error
	for _, s := range pairs {
		errs = append(errs, unix.Close(s.rx), unix.Close(s.tx))
	}
	return errors.Join(errs...)
}

func (p *kernelInterface) openPair(worker, index int) (s socketPair, err error) {
	if s.rx, err = p.openReceiver(worker, index); err != nil {
		return s, fmt.Errorf("opening a packet socket to receive: %w%s", err, capabilities(err))
	}
	if s.tx, err = openSender(index); err != nil {
		_ = unix.Close(s.rx)
		return s, fmt.Errorf("opening a packet socket to send: %w%s", err, capabilities(err))
	}
	return s, nil
}

// capabilities names the missing capabilities, if an error means that.
func capabilities(err error) string {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return " (CAP_NET_RAW and CAP_NET_ADMIN are needed)"
	}
	return ""
}

// openReceiver makes a socket that receives every frame of one interface and no others: it is bound before it selects a protocol.
func (p *kernelInterface) openReceiver(worker, index int) (int, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	set := func(option, value int) error { return unix.SetsockoptInt(fd, unix.SOL_PACKET, option, value) }
	err = errors.Join(
		set(unix.PACKET_AUXDATA, 1), set(unix.PACKET_VNET_HDR, 1), set(unix.PACKET_IGNORE_OUTGOING, 1),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveMemory/2)) // the kernel doubles it
	if err == nil && worker == 0 {
		err = unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &unix.PacketMreq{Ifindex: int32(index), Type: unix.PACKET_MR_PROMISC})
	}
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: networkOrder(unix.ETH_P_ALL), Ifindex: index})
	}
	if err == nil && p.workers > 1 {
		err = p.joinGroup(fd, worker)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// joinGroup makes the kernel spread frames over the workers by a hash that is the same for both directions of a flow. Unlike DPDK's driver
// it sets no other flag: with PACKET_FANOUT_FLAG_DEFRAG the kernel would reassemble IP fragments, which then fit no link.
func (p *kernelInterface) joinGroup(fd, worker int) error {
	const hash = unix.PACKET_FANOUT_HASH << 16
	if worker > 0 {
		return unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_FANOUT, hash|p.group)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_FANOUT, hash|unix.PACKET_FANOUT_FLAG_UNIQUEID<<16); err != nil {
		return err
	}
	group, err := unix.GetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_FANOUT)
	p.group = group & 0xffff
	return err
}

// openSender makes a socket that only sends. It bypasses the queueing discipline, so that sendmmsg reports the result of every frame: with
// a queueing discipline, an interface without a carrier would accept frames and drop them.
func openSender(index int) (int, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, sendMemory/2),
		unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: index}))
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func networkOrder(v uint16) uint16 { return v<<8 | v>>8 }

func (p *kernelInterface) queue(worker int, q *C.struct_cnp_queue) {
	q.longest = math.MaxUint32 // the kernel reports frames that are too long
	q.socket = p.c[worker]
}

// linkUp is false for an interface that is gone, or that the port isn't connected to.
func (p *kernelInterface) linkUp() (bool, error) {
	if !p.follower.connected {
		return false, nil
	}
	n, err := netif.Read(p.follower.iface.Name())
	if errors.Is(err, netif.ErrNone) {
		return false, nil
	}
	return n.Up(), err
}

func (p *kernelInterface) speed() uint64 {
	f, _ := netif.Describe(p.follower.iface.Name()) // an error: what is known is there
	return f.Rate
}

// setLink: the interface is the operator's and stays as it is.
func (p *kernelInterface) setLink(bool) error { return errors.ErrUnsupported }

// stats are the sockets' counts; the worker counts received and sent frames.
func (p *kernelInterface) stats() (Stats, error) {
	var s Stats
	for w := range p.sockets {
		p.collectMissed(p.sockets[w].rx)
		if w < len(p.c) {
			s.RxNoBuffer += uint64(C.cnp_socket_no_buffer(p.c[w]))
		}
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	s.RxMissed = p.missed
	return s, nil
}

func (p *kernelInterface) collectMissed(fd int) {
	if s, err := unix.GetsockoptTpacketStats(fd, unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil {
		p.mutex.Lock()
		p.missed += uint64(s.Drops)
		p.mutex.Unlock()
	}
}

func (p *kernelInterface) stopped() uint64 { return p.discarded }

func (p *kernelInterface) stop() error {
	most := C.uint32_t(maxDiscarded)
	if p.endOffer() {
		most = 0 // what waits in the kernel is the next gateway's
	}
	for _, c := range p.c {
		p.discarded += uint64(C.cnp_socket_discard(c, most))
		C.cnp_socket_free(c)
	}
	p.c = nil
	return nil
}

func (p *kernelInterface) close() error {
	p.endOffer()
	err := closePairs(p.sockets)
	p.sockets = nil
	return errors.Join(err, p.lock.release())
}
