//go:build live && !nodpdk

package dpdk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The live tests need root. Each runs in a child process with a network namespace of its own, which ends with it:
//
//	socket -- a1 ==== a0 -- net_af_packet0 [the smallest worker] net_af_packet1 -- b0 ==== b1 -- socket
const afPacketPair = "net_af_packet0,iface=a0|net_af_packet1,iface=b0"

const patience = 10 * time.Second // until a live test gives up; nothing is measured

func TestLive(t *testing.T) {
	for _, name := range []string{"live forward", "live two queues", "live refused", "live link", "live again", "live tap", "live vhost",
		"live hugepages", "live hugepages in memory"} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			cmd := exec.Command(os.Args[0], "-test.run=^$")
			cmd.Env = append(os.Environ(), childEnv+"="+name)
			cmd.Stdout, cmd.Stderr = &out, &out
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS}
			if err := cmd.Run(); err != nil {
				t.Errorf("%v; it said:\n%s", err, out.String())
			}
		})
	}
}

// ip runs ip(8) for each line.
func ip(lines ...string) error {
	for _, line := range lines {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", line, err, out)
		}
	}
	return nil
}

// wire makes the two veth pairs, silent (no IPv6 of the host's own), without offloads, at an MTU.
func wire(mtu int) error {
	err := ip("link add a0 type veth peer name a1", "link add b0 type veth peer name b1")
	for _, name := range []string{"a0", "a1", "b0", "b1"} {
		err = errors.Join(err, os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/disable_ipv6", []byte("1"), 0),
			ip(fmt.Sprintf("link set %s mtu %d up", name, mtu)))
	}
	return err
}

func pair(workers, mtu int) Config {
	cfg := oneWorker(strings.Split(afPacketPair, "|")...)
	cfg.Cores = make([]int, workers)
	for i := range cfg.Cores {
		cfg.Cores[i] = -1
	}
	for i := range cfg.Ports {
		cfg.Ports[i].MTU = mtu
	}
	return cfg
}

// packetSocket is a plain AF_PACKET socket on an interface: what a host at the end of the wire would see.
func packetSocket(name string) (int, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	ifr, err := unix.NewIfreq(name)
	if err == nil {
		err = unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, ifr)
	}
	if err == nil {
		err = errors.Join(
			unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1),
			unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 8*mebi),
			unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: 0x0300, Ifindex: int(ifr.Uint32())}))
	}
	return fd, err
}

// receive takes the next frame, nil when there is none, and puts the VLAN tag back that the kernel keeps beside it.
func receive(fd int) ([]byte, error) {
	frame, oob := make([]byte, 20000), make([]byte, 256)
	n, oobn, _, _, err := unix.Recvmsg(fd, frame, oob, unix.MSG_DONTWAIT)
	if err == unix.EAGAIN {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	frame = frame[:n]
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		aux := (*unix.TpacketAuxdata)(unsafe.Pointer(unsafe.SliceData(m.Data)))
		if m.Header.Type == unix.PACKET_AUXDATA && aux.Status&unix.TP_STATUS_VLAN_VALID != 0 {
			tag := binary.BigEndian.AppendUint16(nil, aux.Vlan_tpid)
			tag = binary.BigEndian.AppendUint16(tag, aux.Vlan_tci)
			frame = bytes.Join([][]byte{frame[:12], tag, frame[12:]}, nil)
		}
	}
	return frame, nil
}

// ethernet is a frame of an EtherType; its addresses and contents tell it from others.
func ethernet(n, size int, types ...uint16) []byte {
	f := numbered(n, size)
	copy(f, []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, byte(n >> 8), byte(n)})
	for i, typ := range types {
		binary.BigEndian.PutUint16(f[12+4*i:], typ)
		if i < len(types)-1 {
			binary.BigEndian.PutUint16(f[14+4*i:], uint16(0x2000|n+i+1)) // priority 1
		}
	}
	return f
}

// carry sends frames into one end and collects what comes out at the other, until all are there.
func carry(d *Devices, in, out int, frames [][]byte) ([][]byte, error) {
	var got [][]byte
	deadline := time.Now().Add(patience)
	for i := 0; len(got) < len(frames) && time.Now().Before(deadline); i++ {
		if i < len(frames) {
			if err := unix.Send(in, frames[i], 0); err != nil {
				return nil, fmt.Errorf("sending frame %d of %d octets: %w", i, len(frames[i]), err)
			}
		}
		for w := range d.Workers() {
			d.Backend(w).Exchange()
			forward(d.Backend(w).Batch())
		}
		for {
			f, err := receive(out)
			if err != nil {
				return nil, err
			}
			if f == nil {
				break
			}
			got = append(got, f)
		}
		runtime.Gosched()
	}
	if len(got) != len(frames) {
		return nil, fmt.Errorf("%d frames of %d came out", len(got), len(frames))
	}
	return got, nil
}

// finish closes everything and wants all frames back.
func finish(d *Devices) error {
	for w := range d.Workers() {
		dropAll(d.Backend(w))
	}
	err := d.Stop()
	if n := d.Pool().InUse(); n != 0 {
		err = errors.Join(err, fmt.Errorf("%d frames were not given back", n))
	}
	return errors.Join(err, d.Close())
}

func sockets() (a, b int, err error) {
	a, errA := packetSocket("a1")
	b, errB := packetSocket("b1")
	return a, b, errors.Join(errA, errB)
}

func init() {
	children["live forward"] = liveForward
	children["live two queues"] = liveTwoQueues
	children["live refused"] = liveRefused
	children["live link"] = liveLink
	children["live again"] = liveAgain
	children["live tap"] = liveTap
	children["live vhost"] = liveVhost
	children["live hugepages"] = func() error { return liveHugepages(false) }
	children["live hugepages in memory"] = func() error { return liveHugepages(true) }
}

// Both ways, small to jumbo, with and without tags. An S-tag's type is what the PMD is known to change.
func liveForward() error {
	if err := wire(9000); err != nil {
		return err
	}
	d, err := Open(pair(1, 9000))
	if err != nil {
		return err
	}
	a, b, err := sockets()
	if err != nil {
		return err
	}
	frames := [][]byte{
		ethernet(1, 60, 0x88b5), ethernet(2, 64, 0x88b5), ethernet(3, 1514, 0x88b5), ethernet(4, 9014, 0x88b5),
		ethernet(5, 100, 0x8100, 0x88b5), ethernet(6, 9018, 0x8100, 0x88b5), ethernet(7, 200, 0x8100, 0x8100, 0x88b5),
		ethernet(8, 300, 0x88a8, 0x8100, 0x88b5),
	}
	for i := range 400 {
		frames = append(frames, ethernet(100+i, 60+i*20, 0x88b5))
	}
	for _, way := range [][2]int{{a, b}, {b, a}} {
		got, err := carry(d, way[0], way[1], frames)
		if err != nil {
			return err
		}
		for i, want := range frames {
			if i == 7 {
				want = bytes.Clone(want)
				binary.BigEndian.PutUint16(want[12:], 0x8100)
			}
			if !bytes.Equal(got[i], want) {
				return fmt.Errorf("frame %d (%d octets, % x ...) came out as %d octets, % x ...", i, len(want), want[:26], len(got[i]), got[i][:26])
			}
		}
	}
	s, err := d.Port(1).Stats()
	if err != nil || s.RxPackets != uint64(len(frames)) || s.TxPackets != uint64(len(frames)) {
		return fmt.Errorf("statistics: %+v, %v", s, err)
	}
	if d.Port(0).Driver() != "net_af_packet" {
		return fmt.Errorf("the driver is %s", d.Port(0).Driver())
	}
	return finish(d)
}

// Two workers: the kernel spreads flows over two pairs of queues, and none is lost.
func liveTwoQueues() error {
	if err := wire(1500); err != nil {
		return err
	}
	d, err := Open(pair(2, 1500))
	if err != nil {
		return err
	}
	a, b, err := sockets()
	if err != nil {
		return err
	}
	var frames [][]byte
	missing := map[string]bool{}
	for i := range 300 {
		f := ethernet(i, 200, 0x0800)
		copy(f[14:], []byte{0x45, 0, 0, 186, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, byte(i), 10, 0, 1, 1, byte(i), 1, 0x12, 0xb7, 0, 166, 0, 0})
		frames = append(frames, f)
		missing[string(f)] = true
	}
	got, err := carry(d, a, b, frames)
	if err != nil {
		return err
	}
	for _, f := range got {
		if !missing[string(f)] {
			return errors.New("a frame came out changed, or twice")
		}
		delete(missing, string(f))
	}
	return finish(d)
}

// What the PMD would accept and then do wrong is refused; a device that failed is no obstacle to the next.
func liveRefused() error {
	err := errors.Join(wire(1500), ip("link set a0 mtu 16301", "link set b0 down"))
	if err != nil {
		return err
	}
	e, err := Start(EALConfig{Memory: 256 * mebi, MainCore: -1})
	if err != nil {
		return err
	}
	for device, fault := range map[string]string{
		"net_af_packet0,iface=a0":               "interface a0 has MTU 16301, but framesz=16384 takes whole frames of MTU 16300",
		"net_af_packet0,iface=a0,framesz=2048":  "framesz=2048 takes whole frames of MTU 1964",
		"net_af_packet0,iface=b0":               "interface b0 is down",
		"net_af_packet0,iface=a1,framesz=20000": "can't be opened", // not a part of the block
	} {
		if _, err := e.Open(oneWorker(device)); err == nil || !strings.Contains(err.Error(), fault) {
			return fmt.Errorf("%s: error %v, expected one with %q", device, err, fault)
		}
	}
	cfg := oneWorker("net_af_packet0,iface=a1")
	cfg.Ports[0].MTU = 9000
	if _, err := e.Open(cfg); err == nil || !strings.Contains(err.Error(), "has MTU 1500, but the port is configured for 9000") {
		return fmt.Errorf("an interface whose MTU is too small: %v", err)
	}
	d, err := e.Open(oneWorker("net_af_packet0,iface=a1"))
	if err != nil {
		return err
	}
	return errors.Join(finish(d), e.Close())
}

// until waits for a state that the kernel reaches by itself.
func until(what string, reached func() bool) error {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); runtime.Gosched() {
		if reached() {
			return nil
		}
	}
	return fmt.Errorf("not reached: %s", what)
}

// The carrier shows although the PMD says that the link is always up, and promiscuous mode ends with the port.
func liveLink() error {
	if err := wire(1500); err != nil {
		return err
	}
	d, err := Open(pair(1, 1500))
	if err != nil {
		return err
	}
	n, err := readNetif("a0")
	if err != nil || n.flags&unix.IFF_PROMISC == 0 {
		return fmt.Errorf("not promiscuous: %+v, %v", n, err)
	}
	err = errors.Join(
		until("link up", d.Port(0).LinkUp),
		ip("link set a1 down"), until("link down", func() bool { return !d.Port(0).LinkUp() && d.Port(1).LinkUp() }),
		ip("link set a1 up"), until("link up again", d.Port(0).LinkUp))
	if err := d.Port(0).SetLink(false); !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("switching the link: %v", err)
	}
	// A worker does not get stuck on an interface that goes down under it.
	err = errors.Join(err, ip("link set b0 down"))
	b := d.Backend(0)
	b.Exchange()
	batch := b.Batch()
	f := batch.Spare[len(batch.Spare)-1]
	batch.Spare = batch.Spare[:len(batch.Spare)-1]
	f.Len = uint32(copy(batch.Bytes(f), ethernet(1, 64, 0x88b5)))
	batch.Ports[1].Tx = append(batch.Ports[1].Tx, f)
	b.Exchange()
	err = errors.Join(err, finish(d))
	if n, e := readNetif("a0"); e != nil || n.flags&unix.IFF_PROMISC != 0 {
		err = errors.Join(err, fmt.Errorf("still promiscuous: %+v, %v", n, e))
	}
	return err
}

// The same interfaces can be opened again in one process, and what they saw while closed or unbound does not come through.
func liveAgain() error {
	err := errors.Join(wire(1500), ip("link add x0 type veth peer name x1", "link set x0 up", "link set x1 up"))
	if err != nil {
		return err
	}
	e, err := Start(EALConfig{Memory: 256 * mebi, MainCore: -1})
	if err != nil {
		return err
	}
	a, b, err := sockets()
	if err != nil {
		return err
	}
	x, err := packetSocket("x1")
	if err != nil {
		return err
	}
	for round := range 3 {
		stop, stopped := make(chan bool), make(chan bool)
		go func() { // noise on another interface while the sockets are made
			defer close(stopped)
			for {
				select {
				case <-stop:
					return
				default:
					unix.Send(x, ethernet(999, 64, 0x88b6), 0)
				}
			}
		}()
		d, err := e.Open(pair(1, 1500))
		close(stop)
		<-stopped
		if err != nil {
			return err
		}
		want := ethernet(round, 128, 0x88b5)
		got, err := carry(d, a, b, [][]byte{want})
		if err != nil {
			return err
		}
		if !bytes.Equal(got[0], want) {
			return fmt.Errorf("round %d: a frame of another time or interface came out: % x", round, got[0][:26])
		}
		if err := finish(d); err != nil {
			return err
		}
		if err := unix.Send(a, ethernet(998, 64, 0x88b6), 0); err != nil {
			return err
		}
	}
	return e.Close()
}

// A tap device takes frames both ways; jumbo frames, which its PMD can't send, are refused at start or dropped, and don't stop it.
func liveTap() error {
	e, err := Start(EALConfig{Memory: 256 * mebi, MainCore: -1})
	if err != nil {
		return err
	}
	cfg := oneWorker("net_tap0,iface=tap7")
	cfg.Ports[0].MTU = 9000
	if _, err := e.Open(cfg); err == nil || !strings.Contains(err.Error(), "to 1504, not 9000") {
		return fmt.Errorf("a jumbo MTU: %v", err)
	}
	cfg.Ports[0].MTU = 1500
	d, err := e.Open(cfg)
	if err != nil {
		return err
	}
	if err := os.WriteFile("/proc/sys/net/ipv6/conf/tap7/disable_ipv6", []byte("1"), 0); err != nil {
		return err
	}
	s, err := packetSocket("tap7")
	if err != nil {
		return err
	}
	b := d.Backend(0)
	batch := b.Batch()
	for i := range 100 {
		want := ethernet(i, 60+14*i, 0x88b5)
		if err := unix.Send(s, want, 0); err != nil {
			return err
		}
		err := until("the frame is back at the tap interface", func() bool {
			b.Exchange()
			p := &batch.Ports[0]
			p.Tx = p.Tx[:copy(p.Tx, p.Tx[p.Sent:])]
			for _, f := range p.Rx {
				if bytes.Equal(batch.Bytes(f), want) {
					p.Tx = append(p.Tx, f)
					continue
				}
				batch.Free = append(batch.Free, f.Buf)
			}
			if i == 50 && b.TooLong() == 0 && len(p.Tx) == 0 {
				long := batch.Spare[len(batch.Spare)-1]
				batch.Spare = batch.Spare[:len(batch.Spare)-1]
				long.Len = 1523
				p.Tx = append(p.Tx, long)
			}
			f, err := receive(s)
			return err == nil && bytes.Equal(f, want)
		})
		if err != nil {
			return fmt.Errorf("frame %d: %w", i, err)
		}
	}
	b.Exchange()
	if b.TooLong() != 1 {
		return fmt.Errorf("%d frames were too long, expected 1", b.TooLong())
	}
	return errors.Join(finish(d), e.Close())
}

// net_vhost and net_virtio_user, back to back over a socket in one process.
func liveVhost() error {
	dir, err := os.MkdirTemp("", "vhost")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "s")
	cfg := oneWorker("net_vhost0,iface="+socket, "net_virtio_user0,path="+socket)
	d, err := Open(cfg)
	if err != nil {
		return err
	}
	if err := until("link up", func() bool { return d.Port(0).LinkUp() && d.Port(1).LinkUp() }); err != nil {
		return err
	}
	b := d.Backend(0)
	batch := b.Batch()
	b.Exchange()
	for from := range 2 {
		var want [][]byte
		for i := range 32 {
			f := batch.Spare[len(batch.Spare)-1]
			batch.Spare = batch.Spare[:len(batch.Spare)-1]
			want = append(want, ethernet(i, 64+i*40, 0x88b5))
			f.Len = uint32(copy(batch.Bytes(f), want[i]))
			batch.Ports[from].Tx = append(batch.Ports[from].Tx, f)
		}
		n := 0
		err := until("all frames at the other end", func() bool {
			b.Exchange()
			p := &batch.Ports[from]
			p.Tx = p.Tx[:copy(p.Tx, p.Tx[p.Sent:])]
			p.Sent = 0
			for _, f := range batch.Ports[1-from].Rx {
				if n < len(want) && bytes.Equal(batch.Bytes(f), want[n]) {
					n++
				}
				batch.Free = append(batch.Free, f.Buf)
			}
			return n == len(want)
		})
		if err != nil {
			return fmt.Errorf("from port %d, %d of %d: %w", from, n, len(want), err)
		}
	}
	return finish(d)
}

// With hugepages, of which the test reserves a few if there are too few, and gives them back. Files of theirs stay nowhere.
func liveHugepages(inMemory bool) error {
	const reserve, wanted = "/proc/sys/vm/nr_hugepages", 64
	if before := readNumber(reserve, 0); readNumber("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", 0) < wanted {
		if err := os.WriteFile(reserve, []byte(fmt.Sprint(before+wanted)), 0); err != nil {
			return err
		}
		defer func() {
			if readNumber(reserve, 0) == before+wanted {
				os.WriteFile(reserve, []byte(fmt.Sprint(before)), 0)
			}
		}()
	}
	mounts, err := os.MkdirTemp("", "hugetlbfs")
	if err != nil {
		return err
	}
	defer os.Remove(mounts)
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := unix.Mount("none", mounts, "hugetlbfs", 0, "pagesize=2M"); err != nil {
		return err
	}
	defer unix.Unmount(mounts, unix.MNT_DETACH)
	cfg := oneWorker("net_null0", "net_null1")
	cfg.Hugepages, cfg.InMemory = true, inMemory
	d, err := Open(cfg)
	if err != nil {
		return err
	}
	if err := RegisterThread(-1); err != nil { // which the EAL refuses where it shares itself with other processes
		return err
	}
	b := d.Backend(0)
	for range 10 {
		b.Exchange()
		forward(b.Batch())
	}
	dropAll(b)
	UnregisterThread()
	err = finish(d)
	if left, e := os.ReadDir(mounts); e != nil || len(left) != 0 {
		err = errors.Join(err, fmt.Errorf("%d files were left in hugetlbfs, %w", len(left), e))
	}
	if _, e := os.Stat("/var/run/dpdk/" + filePrefix()); e == nil {
		err = errors.Join(err, errors.New("the EAL's runtime directory was left"))
	}
	return err
}
