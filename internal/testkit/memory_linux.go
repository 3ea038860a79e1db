//go:build linux && !race

package testkit

import "golang.org/x/sys/unix"

// arena is the memory of a Rig's tables. Most of what a Rig took was the time to clear tables of which a test uses little: here the kernel clears the pages that are
// used. Whoever uses them after release gets a fault.
type arena struct {
	pieces [][]byte
	rest   []byte // of the last one
}

func (a *arena) allocate(octets int) ([]byte, error) {
	const piece, line = 8 << 20, 64
	taken := (octets + line - 1) &^ (line - 1)
	if taken > len(a.rest) {
		b, err := unix.Mmap(-1, 0, max(taken, piece), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
		if err != nil {
			return nil, err
		}
		a.pieces, a.rest = append(a.pieces, b), b
	}
	b := a.rest[:octets:octets]
	a.rest = a.rest[taken:]
	return b, nil
}

func (a *arena) release() {
	for _, piece := range a.pieces {
		_ = unix.Munmap(piece)
	}
	a.pieces, a.rest = nil, nil
}
