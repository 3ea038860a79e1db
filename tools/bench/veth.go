package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/internal/netif"
)

// These rows are what a container gets: ports on the kernel's veth. A generator on the core that isn't measured sends as fast as it can.

// onVeth compares cnpgate's packet sockets with DPDK's drivers for them.
func onVeth() group {
	g := group{name: "veth", cores: 2, once: true}
	for _, driver := range []string{"af_packet", "af_xdp"} {
		g.rows = append(g.rows, row{Name: "veth_" + driver, What: "veth", Unit: "Mpps", Peer: "testpmd io, net_" + driver})
	}
	g.measure = func(b *bench, rows []row) error {
		if os.Getuid() != 0 {
			return fmt.Errorf("%w: network interfaces need root", errLeftOut)
		}
		failed := make(chan error)
		go func() {
			runtime.LockOSThread() // the thread is in a namespace of its own, and so are the programs that it starts: both end with it
			err := unix.Unshare(unix.CLONE_NEWNET)
			if err == nil {
				err = b.compareVeths(rows)
			}
			failed <- err
		}()
		return <-failed
	}
	return g
}

func (b *bench) compareVeths(rows []row) (err error) {
	ours, err := b.newVeths(0, true, func(device string) (side, func(), error) {
		gw, err := b.gatewayOf(vethLayout(device), func(s *gatewaySetup) { s.Short = true })
		if err != nil {
			return nil, nil, err
		}
		return gw, gw.close, nil
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ours.close()) }()
	longer := *b
	if longer.aStart = max(b.runs/4, 1); !b.short {
		longer.time = 10 * b.time // the kernel's own work is in bursts
	}
	for i := range rows {
		theirs, err := b.newVeths(1+i, false, func(device string) (side, func(), error) {
			driver := strings.TrimPrefix(rows[i].Peer, "testpmd io, ")
			peer, err := startTestpmd(b, vethLayout(strings.Replace(device, "net_af_packet", driver, 1)))
			if err != nil {
				return nil, nil, err
			}
			return testpmdMode{peer, "io", true}, peer.close, nil
		})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, theirs.close()) }()
		longer.taken[rows[i].Name] = nil
		one := rows[i : i+1]
		if err := longer.compare(one, func(taken slicesOf) {
			one[0].fill(taken.millions(0), taken.millions(1), b.noise)
			one[0].What = fmt.Sprintf("veth; lost: %.2g %%, by testpmd %.2g %%", 100*median(taken.extra(0, "lost")), 100*median(taken.extra(1, "lost")))
		}, ours, theirs); err != nil {
			return err
		}
	}
	return nil
}

var vethTraffic = traffic{flows: 1 << 10, payload: smallest}

// vethLayout is a layout of two veths; %d in device is the port.
func vethLayout(device string) *layout {
	l := &layout{name: "veth", flows: vethTraffic.flows, frames: vethTraffic.flows, room: roomOf(0), queues: 1, longest: 1518}
	for port := range 2 {
		l.devices = append(l.devices, fmt.Sprintf(device, port))
	}
	return l
}

// veths are two veths with a forwarder between their near ends: it receives what the generator sends into the first, and the second's far end counts.
type veths struct {
	side
	stop    func()
	in, out string // far ends
	load    *generator
}

// newVeths makes the veths number n, of this thread's network namespace, and starts what forwards; it learns flows, if learns, as long as it starts. Its
// device has %d in place of the port.
func (b *bench) newVeths(n int, learns bool, start func(device string) (side, func(), error)) (*veths, error) {
	v := &veths{in: fmt.Sprintf("far%d-0", n), out: fmt.Sprintf("far%d-1", n)}
	for port := range 2 {
		near, far := fmt.Sprintf("near%d-%d", n, port), fmt.Sprintf("far%d-%d", n, port)
		for _, args := range []string{"link add " + near + " type veth peer name " + far, "link set " + near + " up", "link set " + far + " up"} {
			if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
				return nil, fmt.Errorf("ip %s: %w: %s", args, err, out)
			}
		}
	}
	var err error
	if v.load, err = startGenerator(v.in, vethTraffic, b.otherCore()); err != nil {
		return nil, err
	}
	v.load.paused.Store(!learns)
	if v.side, v.stop, err = start(fmt.Sprintf("net_af_packet%%[1]d,iface=near%d-%%[1]d", n)); err != nil {
		return nil, errors.Join(err, v.load.end())
	}
	v.load.paused.Store(true)
	return v, nil
}

func (v *veths) close() error {
	v.stop()
	return v.load.end()
}

// run is a slice by the clock, since the kernel forwards in more than one thread: what has arrived in the middle half of it.
func (v *veths) run(d time.Duration) (*sample, error) {
	v.load.paused.Store(false)
	defer v.load.paused.Store(true)
	ended := make(chan error, 1)
	go func() {
		_, err := v.side.run(d)
		ended <- err
	}()
	time.Sleep(d / 4)
	began, sent, arrived := time.Now(), v.load.sent.Load(), v.arrived()
	time.Sleep(d / 2)
	s := &sample{Ops: v.arrived() - arrived, CPU: time.Since(began).Nanoseconds()}
	s.Extra = map[string]float64{"lost": max(1-float64(s.Ops)/float64(max(v.load.sent.Load()-sent, 1)), 0)}
	return s, <-ended
}

// arrived is the number of frames that the second far end has received. It is called by the thread in the namespace.
func (v *veths) arrived() uint64 {
	text, _ := os.ReadFile("/proc/thread-self/net/dev")
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if name, counts, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == v.out {
			n, _ := number(counts, strings.Fields(counts)[0])
			return n
		}
	}
	return 0
}

// generator sends frames of all flows, over and over.
type generator struct {
	paused, over atomic.Bool
	sent         atomic.Uint64
	done         chan error
}

// message is the kernel's struct mmsghdr.
type message struct {
	header unix.Msghdr
	sent   uint32
}

// startGenerator sends into an interface of this thread's network namespace, from a core.
func startGenerator(iface string, t traffic, core int) (*generator, error) {
	to, err := netif.Read(iface)
	if err != nil {
		return nil, err
	}
	socket, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(unix.SetsockoptInt(socket, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1), unix.Bind(socket, &unix.SockaddrLinklayer{Ifindex: to.Index})); err != nil {
		return nil, errors.Join(err, unix.Close(socket))
	}
	messages := make([]message, t.flows)
	for i := range messages {
		frame := t.frame()
		t.put(frame, i)
		vector := &unix.Iovec{Base: &frame[0]}
		vector.SetLen(len(frame))
		messages[i].header.Iov = vector
		messages[i].header.SetIovlen(1)
	}
	g := &generator{done: make(chan error)}
	go func() { g.done <- errors.Join(g.send(socket, messages, core), unix.Close(socket)) }()
	return g, nil
}

func (g *generator) send(socket int, messages []message, core int) error {
	if err := pin(core); err != nil {
		return err
	}
	for at := 0; !g.over.Load(); {
		if g.paused.Load() {
			time.Sleep(100 * time.Microsecond)
			continue
		}
		part := messages[at:min(at+64, len(messages))]
		n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(socket), uintptr(unsafe.Pointer(&part[0])), uintptr(len(part)), 0, 0, 0)
		if errno != 0 && errno != unix.ENOBUFS && errno != unix.EINTR {
			return fmt.Errorf("sending into a veth: %w", errno)
		} else if errno == 0 {
			g.sent.Add(uint64(n))
			at = (at + int(n)) % len(messages)
		}
	}
	return nil
}

func (g *generator) end() error {
	g.over.Store(true)
	return <-g.done
}
