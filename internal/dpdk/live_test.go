//go:build live && !nodpdk

package dpdk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
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
	for _, name := range []string{"live forward", "live fragments", "live two queues", "live refused", "live link", "live lost",
		"live discarded", "live tags", "live watched", "live same index", "live locked meanwhile", "live again", "live tap", "live vhost",
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
	// Also those that are made later are silent, before they are up.
	err := errors.Join(os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0),
		ip("link add a0 type veth peer name a1", "link add b0 type veth peer name b1"))
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
	children["live fragments"] = liveFragments
	children["live lost"] = liveLost
	children["live discarded"] = liveDiscarded
	children["live tags"] = liveTags
	children["live watched"] = liveWatched
	children["live same index"] = liveSameIndex
	children["live locked meanwhile"] = liveLockedMeanwhile
	children["live again"] = liveAgain
	children["live tap"] = liveTap
	children["live vhost"] = liveVhost
	children["live hugepages"] = func() error { return liveHugepages(false) }
	children["live hugepages in memory"] = func() error { return liveHugepages(true) }
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
