//go:build !nodpdk

package dpdk

import (
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const mebi = 1 << 20

// Bytes of one frame buffer besides its data: the mempool's object header, struct rte_mbuf, and up to four cache lines
// that the mempool adds to spread objects over memory channels. The headroom precedes every frame.
const (
	mbufOverhead = 64 + 128 + 4*64
	headroom     = 128
	maxRoom      = 65535 - headroom // a mbuf's lengths are 16 bits
)

// Memory of the EAL, the drivers' tables and the ring of a mempool, besides the frames.
const (
	ealMemory  = 32 * mebi
	pairMemory = 2 * mebi // a pair of queues on one port
)

// PoolMemory is the number of bytes of a mempool with this many frames, each with room bytes of data after its headroom.
func PoolMemory(frames, room int) int {
	ring := 16 << bits.Len(uint(frames)) // pointers, at the next power of two, twice for slack
	return frames*(mbufOverhead+alignRoom(room)+headroom) + ring
}

func alignRoom(room int) int { return (room + 63) &^ 63 }

func toMiB(octets int) int { return (octets + mebi - 1) / mebi }

// hugepages is one size of hugepages, in bytes, with the number of free ones and of all.
type hugepages struct{ size, free, total int }

// readHugepages lists the machine's hugepage sizes. root is "/" except in tests.
func readHugepages(root string) []hugepages {
	dirs, _ := filepath.Glob(filepath.Join(root, "sys/kernel/mm/hugepages/hugepages-*kB"))
	var all []hugepages
	for _, dir := range dirs {
		kb := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(dir), "hugepages-"), "kB")
		size, err := strconv.Atoi(kb)
		if err != nil {
			continue
		}
		all = append(all, hugepages{size * 1024, readNumber(filepath.Join(dir, "free_hugepages"), 0), readNumber(filepath.Join(dir, "nr_hugepages"), 0)})
	}
	return all
}

// checkHugepages compares what is needed, in bytes, with the free hugepages, and looks for a hugetlbfs where EAL needs one.
func checkHugepages(root string, needed int, inMemory bool) error {
	free, size, total := 0, 2*mebi, 0
	for _, h := range readHugepages(root) {
		free += h.size * h.free
		if h.free > 0 || total == 0 {
			size, total = h.size, h.total
		}
	}
	if free < needed {
		pages, missing := pagesOf(needed, size), pagesOf(needed-free, size)
		return fmt.Errorf("dpdk: %d MiB of hugepages are needed (%d of %d kB), %d MiB are free: reserve %d pages more "+
			"(`echo %d > /sys/kernel/mm/hugepages/hugepages-%dkB/nr_hugepages`, or scripts/host-setup), or do without (hugepages: false)",
			toMiB(needed), pages, size/1024, free/mebi, missing, total+missing, size/1024)
	}
	if inMemory {
		return nil
	}
	mounts, err := os.ReadFile(filepath.Join(root, "proc/mounts"))
	if err == nil && !strings.Contains(string(mounts), " hugetlbfs ") {
		return fmt.Errorf("dpdk: no hugetlbfs is mounted: `mount -t hugetlbfs none /dev/hugepages`, or set in_memory: true")
	}
	return nil
}

func pagesOf(bytes, size int) int { return (bytes + size - 1) / size }

// checkMemory compares what is needed, in bytes, with what the machine and the control groups leave.
func checkMemory(root string, needed int) error {
	if free, limit := availableMemory(root); free < needed {
		return fmt.Errorf("dpdk: %d MiB of memory are needed, %d MiB are available (%s): configure smaller queues, a smaller mtu or fewer workers, "+
			"or give the machine (or container) more", toMiB(needed), free/mebi, limit)
	}
	return nil
}

// availableMemory returns bytes and the limiting factor; if the kernel doesn't report it, there is no limit.
func availableMemory(root string) (free int, limit string) {
	free = int(^uint(0) >> 1)
	if text, err := os.ReadFile(filepath.Join(root, "proc/meminfo")); err == nil {
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) >= 2 && f[0] == "MemAvailable:" {
				if kb, err := strconv.Atoi(f[1]); err == nil {
					free, limit = kb*1024, "MemAvailable of /proc/meminfo"
				}
			}
		}
	}
	for _, group := range controlGroups(root) {
		if left, ok := group.left(); ok && left < free {
			free, limit = left, group.limit
		}
	}
	return free, limit
}

// controlGroup is a control group of the process, and the names of its files in the two versions of control groups.
type controlGroup struct{ limit, usage, stat, cache string }

// controlGroups are the process's own group and all its ancestors: the lowest of their limits applies. In a container the path may be the
// host's and not exist; then the top group is the container's own.
func controlGroups(root string) (groups []controlGroup) {
	text, _ := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	add := func(mount, path, limit, usage, cache string) {
		for ; ; path = filepath.Dir(path) {
			dir := filepath.Join(root, mount, path)
			groups = append(groups, controlGroup{filepath.Join(dir, limit), filepath.Join(dir, usage), filepath.Join(dir, "memory.stat"), cache})
			if path == "/" || path == "." {
				return
			}
		}
	}
	second, first := "/", "/"
	for line := range strings.Lines(string(text)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(f) < 3:
		case f[1] == "":
			second = f[2]
		case slices.Contains(strings.Split(f[1], ","), "memory"):
			first = f[2]
		}
	}
	add("sys/fs/cgroup", second, "memory.max", "memory.current", "inactive_file")
	add("sys/fs/cgroup/memory", first, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
	return groups
}

// left is the memory that the group may still use, in bytes; page cache that it can drop counts as free. False: it has no limit.
func (g controlGroup) left() (int, bool) {
	limit := readNumber(g.limit, -1) // "max" is no number
	if limit < 0 {
		return 0, false
	}
	used := readNumber(g.usage, 0)
	if text, err := os.ReadFile(g.stat); err == nil {
		for line := range strings.Lines(string(text)) {
			if value, ok := strings.CutPrefix(line, g.cache+" "); ok {
				n, _ := strconv.Atoi(strings.TrimSpace(value))
				used -= n
			}
		}
	}
	return max(0, limit-max(0, used)), true
}

// readNumber reads a file with one decimal number; otherwise it returns the given value.
func readNumber(path string, otherwise int) int {
	text, err := os.ReadFile(path)
	if err != nil {
		return otherwise
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return otherwise
	}
	return n
}
