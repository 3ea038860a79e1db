//go:build live && !nodpdk

package dpdk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

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
		until("link up", func() bool { return linkUp(d.Port(0)) }),
		ip("link set a1 down"), until("link down", func() bool { return !linkUp(d.Port(0)) && linkUp(d.Port(1)) }),
		ip("link set a1 up"), until("link up again", func() bool { return linkUp(d.Port(0)) }))
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
