package agent

import (
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"time"

	"github.com/cnpgate/cnpgate/internal/rdma"
)

// Kernel is what the agent asks the kernel: rdma.Reader.
type Kernel interface {
	Devices() ([]rdma.Device, error)
	Counts() (map[uint32]uint32, error)
	QPs(device uint32, f func(rdma.QP)) error
	CMIDs(device uint32, f func(rdma.CMID)) error
}

// The kernel queries the NIC for each QP, which takes a NIC microseconds: a read of 100,000 QPs may take seconds. So reading QPs takes at most
// one part in calm of the time, and one part in hurried after the number of QPs has changed, for as long as settle: QPs are connected in steps.
const (
	calm    = 20
	hurried = 4
	settle  = 5 * time.Second
)

// Scanner reads the host's QPs at the right times. It belongs to one goroutine.
type Scanner struct {
	kernel   Kernel
	sysfs    fs.FS // of /sys/class/infiniband
	interval time.Duration

	counts    map[uint32]uint32 // QPs of each device at the last read
	changed   time.Time         // when they have changed last
	ended     time.Time         // of the last read
	took      time.Duration     // by it
	addresses map[Port][]netip.Addr
	looked    time.Time // when the addresses were read
}

// NewScanner returns a Scanner that reads at most once an interval.
func NewScanner(k Kernel, sysfs fs.FS, interval time.Duration) *Scanner {
	return &Scanner{kernel: k, sysfs: sysfs, interval: interval}
}

// Scan reads the QPs if it is time for that, and passes them to use, whose time counts as that of reading. It counts the QPs first, which
// costs little.
func (s *Scanner) Scan(use func(*Snapshot)) error {
	begin := time.Now()
	since := begin.Sub(s.ended)
	if s.counts != nil && since < max(s.interval, hurried*s.took) {
		return nil
	}
	counts, err := s.kernel.Counts()
	if err != nil {
		s.counts = nil // reads all again
		return err
	}
	if !maps.Equal(counts, s.counts) {
		s.counts, s.changed = counts, begin
	}
	if begin.Sub(s.changed) > settle && since < calm*s.took {
		return nil
	}
	snapshot, err := s.read(begin)
	if err == nil {
		use(snapshot)
	} else {
		s.counts = nil
	}
	s.ended = time.Now()
	s.took = s.ended.Sub(begin)
	return err
}

// The addresses are files, of which a device may have a thousand. They are read again when the number of QPs has changed, and now and then.
const (
	addressesEvery  = 10 * time.Second
	addressesAtMost = time.Second
)

func (s *Scanner) read(now time.Time) (*Snapshot, error) {
	devices, err := s.kernel.Devices()
	if err != nil {
		return nil, err
	}
	if age := now.Sub(s.looked); age >= addressesEvery || age >= addressesAtMost && s.changed.Equal(now) {
		s.looked, s.addresses = now, map[Port][]netip.Addr{}
	}
	all := &Snapshot{Devices: devices, Addresses: s.addresses}
	for _, d := range devices {
		if d.Protocol != "" && d.Protocol != "roce" {
			continue
		}
		err := s.kernel.QPs(d.Index, func(q rdma.QP) {
			if q.Connected() && len(all.QPs) < MaxHints {
				all.QPs = append(all.QPs, q)
			}
		})
		if err != nil {
			return nil, fmt.Errorf("device %s: %w", d.Name, err)
		}
		if len(all.QPs) == 0 {
			continue
		}
		if err := s.kernel.CMIDs(d.Index, func(c rdma.CMID) { all.CMIDs = append(all.CMIDs, c) }); err != nil {
			return nil, fmt.Errorf("device %s: %w", d.Name, err)
		}
		if err := s.readAddresses(d); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (s *Scanner) readAddresses(d rdma.Device) error {
	for port := range min(d.Ports, 256) {
		at := Port{d.Index, port + 1}
		if _, ok := s.addresses[at]; ok {
			continue
		}
		a, err := rdma.Addresses(s.sysfs, d.Name, port+1)
		if err != nil {
			return err
		}
		s.addresses[at] = a
	}
	return nil
}
