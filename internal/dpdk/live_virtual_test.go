//go:build live && !nodpdk

package dpdk

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/internal/burst"
)

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
	b, tooLong := d.Backend(0), 0
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
			for _, l := range p.Lost {
				if l.Cause == burst.TooLong {
					tooLong++
				}
			}
			if i == 50 && tooLong == 0 && len(p.Tx) == 0 {
				long := batch.Spare[len(batch.Spare)-1]
				batch.Spare = batch.Spare[:len(batch.Spare)-1]
				long.Len = 1527 // the device's MTU is 1504, so that two tags fit as far as they can
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
	if tooLong != 1 {
		return fmt.Errorf("%d frames were too long, expected 1", tooLong)
	}
	return errors.Join(tapRefuses(d), finish(d), e.Close())
}

// tapRefuses: a frame that waits because the tap device takes none is no error, however often it is tried.
func tapRefuses(d *Devices) error {
	if err := ip("link set tap7 down"); err != nil {
		return err
	}
	b := d.Backend(0)
	p, batch := &b.Batch().Ports[0], b.Batch()
	frame := batch.Spare[len(batch.Spare)-1]
	batch.Spare = batch.Spare[:len(batch.Spare)-1]
	frame.Len = 60
	for range 100 {
		p.Tx = append(p.Tx[:0], frame)
		if b.Exchange(); p.Sent != 0 || len(p.Lost) != 0 {
			return errors.New("the frame is gone, expected it to wait")
		}
	}
	batch.Free, p.Tx = append(batch.Free, frame.Buf), p.Tx[:0]
	s, err := d.Port(0).Stats()
	if err == nil && s.TxErrors != 0 {
		err = fmt.Errorf("%d frames failed, expected none: one waited", s.TxErrors)
	}
	return err
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
	if err := until("link up", func() bool { return linkUp(d.Port(0)) && linkUp(d.Port(1)) }); err != nil {
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
				_ = os.WriteFile(reserve, []byte(fmt.Sprint(before)), 0)
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
	defer func() { _ = unix.Unmount(mounts, unix.MNT_DETACH) }()
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
