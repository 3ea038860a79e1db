package assemble

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Memory is zeroed memory that the garbage collector doesn't see. It counts against the machine only where it is touched.
type Memory struct{ pieces [][]byte }

// Allocate gives a piece of the given size, aligned to a page.
func (m *Memory) Allocate(octets int) ([]byte, error) {
	piece, err := unix.Mmap(-1, 0, octets, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("memory for tables: %d MiB of address space: %w; lower flows.capacity or the ports' queue_capacity",
			(octets+1<<20-1)>>20, err)
	}
	m.pieces = append(m.pieces, piece)
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
