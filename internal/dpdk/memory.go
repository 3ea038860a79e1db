//go:build !nodpdk

package dpdk

import (
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const mebi = 1 << 20

// Octets that one frame buffer takes beside its data: the mempool's object header, struct rte_mbuf, and up to four cache lines
// that the mempool adds to spread objects over memory channels. The headroom lies in front of every frame.
const (
	mbufOverhead = 64 + 128 + 4*64
	headroom     = 128
	maxRoom      = 65535 - headroom // a mbuf's lengths are 16 bits
)

// What the EAL, the drivers' tables and the ring behind a mempool take beside the frames.
const (
	ealMemory  = 32 * mebi
	pairMemory = 2 * mebi // a pair of queues on one port
)

// PoolMemory is how many octets a mempool of so many frames takes, each with room octets of data behind its headroom.
func PoolMemory(frames, room int) int {
	ring := 16 << bits.Len(uint(frames)) // pointers, at the next power of two, twice for slack
	return frames*(mbufOverhead+alignRoom(room)+headroom) + ring
}

func alignRoom(room int) int { return (room + 63) &^ 63 }

func toMiB(octets int) int { return (octets + mebi - 1) / mebi }

// hugepages is one size of hugepages, in octets, and how many of it are free.
type hugepages struct{ size, free int }

// readHugepages lists the machine's hugepage sizes. root is "/" but in tests.
func readHugepages(root string) []hugepages {
	dirs, _ := filepath.Glob(filepath.Join(root, "sys/kernel/mm/hugepages/hugepages-*kB"))
	var all []hugepages
	for _, dir := range dirs {
		kb := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(dir), "hugepages-"), "kB")
		size, err := strconv.Atoi(kb)
		if err != nil {
			continue
		}
		all = append(all, hugepages{size * 1024, readNumber(filepath.Join(dir, "free_hugepages"), 0)})
	}
	return all
}

// checkHugepages compares what is needed, in octets, with the free hugepages, and looks for a hugetlbfs where EAL needs one.
func checkHugepages(root string, needed int, inMemory bool) error {
	free, size := 0, 2*mebi
	for _, h := range readHugepages(root) {
		free += h.size * h.free
		if h.free > 0 {
			size = h.size
		}
	}
	if free < needed {
		pages := (needed + size - 1) / size
		return fmt.Errorf("dpdk: %d MiB of hugepages are needed (%d of %d kB), %d MiB are free: reserve more "+
			"(`sysctl vm.nr_hugepages=%d`), or do without (hugepages: false)", toMiB(needed), pages, size/1024, free/mebi, pages)
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

// checkMemory compares what is needed, in octets, with what the machine and the control group leave.
func checkMemory(root string, needed int) error {
	if free := availableMemory(root); free < needed {
		return fmt.Errorf("dpdk: %d MiB of memory are needed, %d MiB are available: configure smaller queues or fewer workers, "+
			"or give the machine (or container) more", toMiB(needed), free/mebi)
	}
	return nil
}

// availableMemory is in octets; without an answer from the kernel there is no limit.
func availableMemory(root string) int {
	free := int(^uint(0) >> 1)
	if text, err := os.ReadFile(filepath.Join(root, "proc/meminfo")); err == nil {
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) >= 2 && f[0] == "MemAvailable:" {
				if kb, err := strconv.Atoi(f[1]); err == nil {
					free = kb * 1024
				}
			}
		}
	}
	// Version 2 of control groups, then version 1; "max" is no number and leaves free as it is.
	for _, g := range [][2]string{
		{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory.current"},
		{"sys/fs/cgroup/memory/memory.limit_in_bytes", "sys/fs/cgroup/memory/memory.usage_in_bytes"},
	} {
		if limit := readNumber(filepath.Join(root, g[0]), -1); limit >= 0 {
			free = min(free, max(0, limit-readNumber(filepath.Join(root, g[1]), 0)))
		}
	}
	return free
}

// readNumber reads a file that holds one decimal number, or says otherwise.
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
