//go:build live && !nodpdk

package dpdk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/internal/netif"
)

// An interface that is deleted and made again is used again; what happens to it is said.
func liveWatched() error {
	if err := wire(1500); err != nil {
		return err
	}
	e, err := Start(EALConfig{Memory: 256 * mebi, MainCore: -1})
	if err != nil {
		return err
	}
	for _, workers := range []int{1, 2} {
		d, err := e.Open(pair(workers, 1500))
		if err != nil {
			return err
		}
		if err := errors.Join(watchInterfaces(d), finish(d)); err != nil {
			return fmt.Errorf("%d workers: %w", workers, err)
		}
	}
	return e.Close()
}

func watchInterfaces(d *Devices) error {
	const before = "link set b0 mtu 1400" // done between opening the ports and watching them
	if err := ip(before); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	notices, ended := make(chan Notice, 100), make(chan error, 1)
	go func() { ended <- d.Watch(ctx, func(n Notice) { notices <- n }) }()
	said := func(port int, healthy bool, text string) func() bool {
		return func() bool {
			select {
			case n := <-notices:
				return n.Port == port && (n.Problem == "") == healthy && strings.Contains(n.Text+": "+n.Problem, text)
			default:
				return false
			}
		}
	}
	a, _, err := sockets()
	if err != nil {
		return err
	}
	steps := []struct {
		do      string
		port    int
		healthy bool
		text    string
	}{
		{before, 1, false, "interface b0 has MTU 1400 now, it was 1500: interface b0 has MTU 1400, but the port is configured for 1500"},
		{"link set b0 down", 1, false, "interface b0 is switched off: interface b0 is down"},
		{"link set b0 up", 1, false, "interface b0 is switched on: interface b0 has MTU 1400"},
		{"link set b0 mtu 1500", 1, true, "has MTU 1500 now"},
		{"link set a0 mtu 9000", 0, false, "interface a0 has MTU 9000, and buffers have 2048 bytes"},
		{"link set a0 mtu 1500", 0, true, "has MTU 1500 now"},
		{"link set b0 down", 1, false, "is switched off"},
		{"link set b0 up", 1, true, "is switched on"},
		{"link set b0 name c0", 1, true, "interface b0 is called c0 now"},
		{"link set c0 name b0", 1, true, "interface c0 is called b0 now"},
		{"link del b0", 1, false, "interface b0 is gone"},
		{"tuntap add mode tun name b0", 1, false, "interface b0 is back, but switched off: interface b0 carries no Ethernet frames"},
		{"link set b0 up", 1, false, "interface b0 is switched on: interface b0 carries no Ethernet frames"},
		{"link del b0", 1, false, "interface b0 is gone"},
		{"link add b0 mtu 9000 type veth peer name b1", 1, false, "interface b0 is back, but switched off: interface b0 is down"},
		{"link set b0 up", 1, false, "interface b0 is switched on: interface b0 has MTU 9000, and buffers have 2048 bytes"},
		{"link set b0 mtu 1500", 1, true, "has MTU 1500 now"},
	}
	for _, s := range steps {
		if err := errors.Join(ip(s.do), until("said after "+s.do+": "+s.text, said(s.port, s.healthy, s.text))); err != nil {
			return err
		}
	}
	b, err := madeAgain(d)
	if err == nil {
		err = passes(d, a, b)
	}
	cancel()
	return errors.Join(err, <-ended)
}

// madeAgain switches on the far end of b0, and returns a socket there.
func madeAgain(d *Devices) (b int, err error) {
	err = errors.Join(os.WriteFile("/proc/sys/net/ipv6/conf/b1/disable_ipv6", []byte("1"), 0), ip("link set b1 mtu 1500 up"),
		until("link", func() bool { return linkUp(d.Port(1)) }))
	if err != nil {
		return -1, err
	}
	return packetSocket("b1")
}

// passes wants a frame to pass both ways.
func passes(d *Devices, a, b int) error {
	for _, way := range [][2]int{{a, b}, {b, a}} {
		want := ethernet(1, 128, 0x88b5)
		got, err := carry(d, way[0], way[1], [][]byte{want})
		if err != nil {
			return err
		}
		if !bytes.Equal(got[0], want) {
			return fmt.Errorf("another frame came out: % x", got[0][:26])
		}
	}
	return nil
}

// An interface that is unregistered and comes back with its index between two looks: made again, or moved to another namespace and back.
func liveSameIndex() error {
	if err := wire(1500); err != nil {
		return err
	}
	e, err := Start(EALConfig{Memory: 256 * mebi, MainCore: -1})
	if err != nil {
		return err
	}
	elsewhere := exec.Command("unshare", "--net", "sleep", "infinity")
	if err := elsewhere.Start(); err != nil {
		return err
	}
	defer func() { _ = elsewhere.Process.Kill() }()
	other := fmt.Sprint(elsewhere.Process.Pid)
	namespace := func(pid string) string {
		name, _ := os.Readlink("/proc/" + pid + "/ns/net")
		return name
	}
	if err := until("a namespace", func() bool { return namespace(other) != namespace("self") }); err != nil {
		return err
	}
	back := fmt.Sprintf("nsenter -t %s -n ip link set b0 netns %d", other, os.Getpid())
	silent := "echo 1 > /proc/sys/net/ipv6/conf/b0/disable_ipv6"
	for _, steps := range [][]string{
		{"ip link set b0 netns " + other, back, silent, "ip link set b0 up"},
		{"ip link del b0", "ip link add b0 index %d type veth peer name b1", silent, "ip link set b0 up"},
	} {
		for _, workers := range []int{1, 2} {
			d, err := e.Open(pair(workers, 1500))
			if err != nil {
				return err
			}
			if err := errors.Join(sameIndex(d, steps), finish(d)); err != nil {
				return fmt.Errorf("after %q, %d workers: %w", steps, workers, err)
			}
		}
	}
	return e.Close()
}

// sameIndex does the steps while nobody looks; %d in one is the index of b0.
func sameIndex(d *Devices, steps []string) error {
	before, err := netif.Read("b0")
	if err != nil {
		return err
	}
	for _, step := range steps {
		step = strings.Replace(step, "%d", fmt.Sprint(before.Index), 1)
		if out, err := exec.Command("sh", "-c", step).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", step, err, out)
		}
	}
	if now, err := netif.Read("b0"); err != nil || now.Index != before.Index {
		return fmt.Errorf("b0 has index %d, expected %d (%w)", now.Index, before.Index, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	notices, ended := make(chan Notice, 100), make(chan error, 1)
	go func() { ended <- d.Watch(ctx, func(n Notice) { notices <- n }) }()
	select {
	case n := <-notices:
		if n != (Notice{Port: 1, Text: "interface b0 is gone, interface b0 is back"}) {
			return fmt.Errorf("it was said: %+v", n)
		}
	case <-time.After(patience):
		return errors.New("nothing was said")
	}
	b, err := madeAgain(d)
	if err != nil {
		return err
	}
	a, err := packetSocket("a1")
	if err == nil {
		err = passes(d, a, b)
	}
	cancel()
	return errors.Join(err, <-ended, unix.Close(a), unix.Close(b))
}

// An interface that another gateway has locked when it is back is used once that one has given it free.
func liveLockedMeanwhile() error {
	if err := wire(1500); err != nil {
		return err
	}
	d, err := Open(pair(2, 1500))
	if err != nil {
		return err
	}
	if err := ip("link del b0"); err != nil {
		return err
	}
	k := d.Port(1).driver.(*kernelInterface)
	look := func() (n Notice, news bool, err error) {
		err = d.eal.Do(func() error {
			n, news = k.look(d.Port(1))
			return nil
		})
		return n, news, err
	}
	if n, _, err := look(); err != nil || n.Problem != "interface b0 is gone: the port will use the next one of that name" {
		return fmt.Errorf("gone: %+v, %w", n, err)
	}
	if err := ip("link add b0 type veth peer name b1", "link set b0 up"); err != nil {
		return err
	}
	other, err := lockInterface("b0")
	if err != nil {
		return err
	}
	refused := fmt.Sprintf("the port can't use interface b0, and tries again: interface b0 is in use by the gateway with process ID %d", os.Getpid())
	if n, _, err := look(); err != nil || n.Text != "interface b0 is back" || !strings.HasPrefix(n.Problem, refused) {
		return fmt.Errorf("locked: %+v, %w; expected %q", n, err, refused)
	}
	if n, news, err := look(); err != nil || news {
		return fmt.Errorf("still locked: %+v, %w", n, err)
	}
	if linkUp(d.Port(1)) {
		return errors.New("a port that is not connected has a link")
	}
	if err := other.release(); err != nil {
		return err
	}
	if n, _, err := look(); err != nil || n != (Notice{Text: "interface b0 is in use again"}) {
		return fmt.Errorf("free: %+v, %w", n, err)
	}
	b, err := madeAgain(d)
	if err != nil {
		return err
	}
	a, err := packetSocket("a1")
	if err == nil {
		err = passes(d, a, b)
	}
	return errors.Join(err, finish(d))
}
