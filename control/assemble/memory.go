package assemble

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Memory is zeroed memory that the garbage collector doesn't see. It counts against the machine only where it is touched.
type Memory struct{ pieces [][]byte }

const hugePage = 2 << 20 // octets; what the kernel can map at once on amd64 and arm64 with pages of 4 KiB

// Allocate gives a piece of the given size, aligned to a page. A large one is aligned to a huge page and the kernel is asked to map it by
// such pages: where tables are read in no order, looking up small pages costs more than the tables themselves.
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
	// A kernel without transparent huge pages refuses, and maps small ones: slower, nothing else.
	_ = unix.Madvise(piece, unix.MADV_HUGEPAGE)
	return piece, nil
}

// Release gives all of it back. Nothing may use it any more.
func (m *Memory) Release() error {
	var errs []error
	for _, piece := range m.pieces {
		errs = append(errs, unix.Munmap(piece))
	}
	m.pieces = nil
	return errors.Join(errs...)
}
