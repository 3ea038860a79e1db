package assemble

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Memory is zeroed memory outside the garbage collector's heap. Pages use physical memory only once they are touched.
type Memory struct{ pieces [][]byte }

const hugePage = 2 << 20 // bytes; the size of a huge page on amd64 and arm64 with pages of 4 KiB

// Allocate returns a block of the given size, aligned to a page. A large one is aligned to a huge page, and the kernel is asked to use
// huge pages for it: tables are read in random order, where TLB misses of small pages cost more than the reads themselves.
func (m *Memory) Allocate(octets int) ([]byte, error) {
	room := octets
	if octets >= hugePage {
		room += hugePage
	}
	piece, err := unix.Mmap(-1, 0, room, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("memory for tables: %d MiB of address space: %w; lower flows.capacity or the ports' queue_capacity",
			(octets+1<<20-1)>>20, err)
	}
	m.pieces = append(m.pieces, piece)
	if room == octets {
		return piece, nil
	}
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(piece))) % hugePage)
	piece = piece[skip : skip+octets : skip+octets]
	// A kernel without transparent huge pages refuses, and uses small ones, which is only slower.
	_ = unix.Madvise(piece, unix.MADV_HUGEPAGE)
	return piece, nil
}

// Release frees all of it. No block may be used afterwards.
func (m *Memory) Release() error {
	var errs []error
	for _, piece := range m.pieces {
		errs = append(errs, unix.Munmap(piece))
	}
	m.pieces = nil
	return errors.Join(errs...)
}
