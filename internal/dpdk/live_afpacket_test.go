//go:build live && !nodpdk

package dpdk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/internal/burst"
)

// Both ways, small to jumbo, with one tag, two, and an S-tag outside. The kernel takes one 802.1Q tag on top of the MTU.
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
		ethernet(8, 300, 0x88a8, 0x8100, 0x88b5), ethernet(9, 9014, 0x88a8, 0x8100, 0x88b5), ethernet(10, 9018, 0x8100, 0x8100, 0x88b5),
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
			if !bytes.Equal(got[i], want) {
				return fmt.Errorf("frame %d (%d bytes, % x ...) came out as %d bytes, % x ...", i, len(want), want[:26], len(got[i]), got[i][:26])
			}
		}
	}
	if f := d.Profile(0); f.Driver != "net_af_packet" || f.Interface != "a0" || f.MTU != 9000 || f.Buffer != 9216 || f.Tags != 1 || f.ServiceTags != 0 ||
		len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0], "raise the interface's MTU by 8") {
		return fmt.Errorf("the profile is %+v", f)
	}
	return finish(d)
}

// Fragments pass as they are: nobody puts them together, with one worker or two.
func liveFragments() error {
	if err := wire(1500); err != nil {
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
	for _, workers := range []int{1, 2} {
		d, err := e.Open(pair(workers, 1500))
		if err != nil {
			return err
		}
		var frames [][]byte
		missing := map[string]bool{}
		for i := range 100 {
			f := ethernet(i, 1514, 0x0800)
			copy(f[14:], []byte{0x45, 0, 0x05, 0xdc, 1, byte(i / 2), 0x20, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 1, 1})
			if i%2 == 1 {
				f = f[:1200]
				binary.BigEndian.PutUint16(f[16:], 1200-14)
				binary.BigEndian.PutUint16(f[20:], 1480/8)
			}
			frames = append(frames, f)
			missing[string(f)] = true
		}
		got, err := carry(d, a, b, frames)
		if err != nil {
			return fmt.Errorf("%d workers: %w", workers, err)
		}
		for _, f := range got {
			if !missing[string(f)] {
				return fmt.Errorf("%d workers: a frame of %d bytes came out that nobody sent", workers, len(f))
			}
			delete(missing, string(f))
		}
		if err := finish(d); err != nil {
			return err
		}
	}
	return e.Close()
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

// What can't work is refused; a device that failed is no obstacle to the next. A second gateway on an interface is refused with the
// first one's process, also under another name of the interface.
func liveRefused() error {
	err := errors.Join(wire(1500), ip("link set a0 mtu 65500", "link set b0 down", "tuntap add mode tun name tun0", "link set tun0 up"))
	if err != nil {
		return err
	}
	e, err := Start(EALConfig{Memory: 256 * mebi, MainCore: -1})
	if err != nil {
		return err
	}
	for device, fault := range map[string]string{
		"net_af_packet0,iface=a0":   "interface a0 has MTU 65500, but buffers have 65407",
		"net_af_packet0,iface=b0":   "interface b0 is down",
		"net_af_packet0,iface=lo":   "is the loopback interface",
		"net_af_packet0,iface=tun0": "carries no Ethernet frames",
	} {
		if _, err := e.Open(oneWorker(device)); err == nil || !strings.Contains(err.Error(), fault) {
			return fmt.Errorf("%s: error %v, expected one with %q", device, err, fault)
		}
	}
	cfg := oneWorker("net_af_packet0,iface=a1")
	cfg.Ports[0].MTU = 9000
	if err := ip("link set a0 mtu 1500", "link set a1 mtu 1500"); err != nil {
		return err
	}
	if _, err := e.Open(cfg); err == nil || !strings.Contains(err.Error(), "has MTU 1500, but the port is configured for 9000") {
		return fmt.Errorf("an interface whose MTU is too small: %v", err)
	}
	for _, second := range []string{"net_af_packet1,iface=a1", "net_pcap1,iface=a1", "net_pcap1,iface=alias"} {
		if err := ip("link property add dev a1 altname alias"); second == "net_af_packet1,iface=a1" && err != nil {
			return err
		}
		if _, err := e.Open(oneWorker("net_af_packet0,iface=a1", second)); err == nil || !strings.Contains(err.Error(), "port port0 uses interface ") {
			return fmt.Errorf("%s beside net_af_packet0,iface=a1: %v", second, err)
		}
	}
	d, err := e.Open(oneWorker("net_af_packet0,iface=a1"))
	if err != nil {
		return err
	}
	for _, name := range []string{"a1", "other"} {
		want := fmt.Sprintf("interface %s is in use by the gateway with process ID %d", name, os.Getpid())
		if _, err := e.Open(oneWorker("net_af_packet1,iface=" + name)); err == nil || !strings.Contains(err.Error(), want) {
			return fmt.Errorf("a second gateway: %v, expected %q", err, want)
		}
		for _, device := range []string{"net_pcap1,iface=" + name, "net_pcap1,rx_iface=b1,tx_iface=" + name, "net_af_xdp1,iface=" + name, "net_tap1,remote=" + name} {
			if _, err := e.Open(oneWorker(device)); err == nil || !strings.Contains(err.Error(), want) {
				return fmt.Errorf("a second gateway with %s: %v, expected %q", device, err, want)
			}
		}
		if err := ip("link set a1 name other", "link set other up"); name == "a1" && err != nil {
			return err
		}
	}
	return errors.Join(finish(d), e.Close())
}

// The carrier shows, and promiscuous mode ends with the port.
func liveLink() error {
	if err := wire(1500); err != nil {
		return err
	}
	d, err := Open(pair(1, 1500))
	if err != nil {
		return err
	}
	if !promiscuous("a0") {
		return errors.New("not promiscuous")
	}
	err = errors.Join(
		until("link up", func() bool { return linkUp(d.Port(0)) }),
		ip("link set a1 down"), until("link down", func() bool { return !linkUp(d.Port(0)) && linkUp(d.Port(1)) }),
		ip("link set a1 up"), until("link up again", func() bool { return linkUp(d.Port(0)) }))
	if err := d.Port(0).SetLink(false); !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("switching the link: %v", err)
	}
	err = errors.Join(err, finish(d))
	if promiscuous("a0") {
		err = errors.Join(err, errors.New("still promiscuous"))
	}
	return err
}

func promiscuous(name string) bool {
	out, err := exec.Command("ip", "-d", "link", "show", name).Output()
	return err == nil && strings.Contains(string(out), "promiscuity 1")
}

// loss offers frames to port 1 and returns how many of them arrived at b1, and the causes of those that the port lost. What stays offered
// is dropped by the test.
func loss(d *Devices, b int, frames ...[]byte) (arrived int, causes []burst.Cause, err error) {
	w := d.Backend(0)
	batch := w.Batch()
	w.Exchange()
	for _, frame := range frames {
		f := batch.Spare[len(batch.Spare)-1]
		batch.Spare = batch.Spare[:len(batch.Spare)-1]
		f.Len = uint32(copy(batch.Bytes(f), frame))
		batch.Ports[1].Tx = append(batch.Ports[1].Tx, f)
	}
	w.Exchange()
	p := &batch.Ports[1]
	for _, l := range p.Lost {
		causes = append(causes, l.Cause)
	}
	kept := len(p.Tx) - p.Sent
	for {
		f, err := receive(b)
		if err != nil || f == nil {
			break
		}
		arrived++
	}
	dropAll(w)
	batch.Drain = false
	if arrived+len(causes)+kept != len(frames) {
		err = fmt.Errorf("%d frames: %d arrived, %d lost, %d kept", len(frames), arrived, len(causes), kept)
	}
	return arrived, causes, err
}

// What the kernel discards counts as lost, frame by frame: longer than the MTU, the interface down, the far end down, the interface gone.
func liveLost() error {
	if err := wire(1500); err != nil {
		return err
	}
	if err := ip("link set a0 mtu 9000", "link set a1 mtu 9000"); err != nil {
		return err
	}
	d, err := Open(pair(1, 1500))
	if err != nil {
		return err
	}
	_, b, err := sockets()
	if err != nil {
		return err
	}
	want := func(what string, arrive int, cause burst.Cause, lost int, sizes ...int) {
		var frames [][]byte
		for i, size := range sizes {
			frames = append(frames, ethernet(i, size, 0x88b5))
		}
		arrived, causes, e := loss(d, b, frames...)
		if e != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", what, e))
		}
		n := 0
		for _, c := range causes {
			if c == cause {
				n++
			}
		}
		if arrived != arrive || n != lost || len(causes) != lost {
			err = errors.Join(err, fmt.Errorf("%s: %d arrived, lost %v; expected %d, and %d lost as %d", what, arrived, causes, arrive, lost, cause))
		}
	}
	want("MTU", 3, burst.TooLong, 3, 60, 1515, 1514, 9014, 4000, 1000)
	err = errors.Join(err, ip("link set b1 down"), until("no link", func() bool { return !linkUp(d.Port(1)) }))
	want("far end down", 0, burst.LinkDown, 3, 60, 100, 200)
	err = errors.Join(err, ip("link set b1 up"), until("link", func() bool { return linkUp(d.Port(1)) }))
	want("up again", 2, 0, 0, 60, 100)
	// Nobody has looked at the link meanwhile: the kernel's own answer counts.
	err = errors.Join(err, ip("link set b0 down"))
	want("down", 0, burst.LinkDown, 2, 60, 100)
	err = errors.Join(err, ip("link set b0 up"), until("link", func() bool { return linkUp(d.Port(1)) }))
	want("up once more", 2, 0, 0, 60, 100)
	err = errors.Join(err, ip("link del b0"))
	want("gone", 0, burst.LinkDown, 2, 60, 100)
	return errors.Join(err, finish(d))
}

// The kernel takes as many tags on frames of the port's full MTU as the profile says, and not one more.
func liveTags() error {
	if err := wire(1500); err != nil {
		return err
	}
	e, err := Start(EALConfig{Memory: 256 * mebi, MainCore: -1})
	if err != nil {
		return err
	}
	_, b, err := sockets()
	if err != nil {
		return err
	}
	for _, mtu := range []int{1500, 1504, 1508} {
		if err := ip(fmt.Sprintf("link set b0 mtu %d", mtu), "link set b1 mtu 9000"); err != nil {
			return err
		}
		d, err := e.Open(pair(1, 1500))
		if err != nil {
			return err
		}
		for outer, most := range map[uint16]int{0x8100: d.Profile(1).Tags, 0x88a8: d.Profile(1).ServiceTags} {
			for tags, types := range [][]uint16{1: {outer, 0x88b5}, 2: {outer, 0x8100, 0x88b5}} {
				if tags == 0 {
					continue
				}
				arrived, causes, err := loss(d, b, ethernet(1, 1514+tags*tagSize, types...))
				if err != nil || (arrived == 1) != (tags <= most) || len(causes) == 1 && causes[0] != burst.TooLong {
					return fmt.Errorf("interface MTU %d, %d tags, the outer one %#x: %d arrived, lost %v (%v); the profile says that %d fit", mtu, tags, outer, arrived, causes, err, most)
				}
			}
		}
		if err := finish(d); err != nil {
			return err
		}
	}
	return e.Close()
}

// What waits at the stop is dropped and counted: frames in the kernel, and the rest of a large packet that was being cut.
func liveDiscarded() error {
	if err := wire(1500); err != nil {
		return err
	}
	cfg := pair(1, 1500)
	cfg.Burst = 1
	d, err := Open(cfg)
	if err != nil {
		return err
	}
	a, _, err := sockets()
	if err != nil {
		return err
	}
	if err := sendLarge(a, 1000, 5000); err != nil {
		return err
	}
	const waiting = 7
	for i := range waiting {
		if err := unix.Send(a, ethernet(i, 100, 0x88b5), 0); err != nil {
			return err
		}
	}
	w := d.Backend(0)
	if err := until("the first frame of the large packet", func() bool {
		w.Exchange()
		return len(w.Batch().Ports[0].Rx) == 1
	}); err != nil {
		return err
	}
	dropAll(w)
	err = d.Stop()
	if n := d.Discarded(0); n != 4+waiting {
		err = errors.Join(err, fmt.Errorf("%d frames were dropped at the stop, expected %d", n, 4+waiting))
	}
	return errors.Join(err, d.Close())
}

// sendLarge sends a TCP packet of IPv4 with a payload to be cut into frames of so many bytes each.
func sendLarge(fd, size, payload int) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1); err != nil {
		return err
	}
	head := []byte{1, 1, 54, 0, byte(size), byte(size >> 8), 34, 0, 16, 0} // to be checksummed; TCP over IPv4; lengths in the host's order
	frame := ethernet(1, 54+payload, 0x0800)
	copy(frame[14:], []byte{0x45, 0, byte((40 + payload) >> 8), byte(40 + payload), 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2})
	copy(frame[34:], []byte{0, 1, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 1, 0, 0, 0, 0, 0})
	err := unix.Send(fd, append(head, frame...), 0)
	return errors.Join(err, unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 0))
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
					_ = unix.Send(x, ethernet(999, 64, 0x88b6), 0)
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
