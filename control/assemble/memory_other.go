//go:build !linux

package assemble

import "github.com/cnpgate/cnpgate/internal/virtual"

// Memory is zeroed memory for tables; on this system it comes from the Go heap.
type Memory struct{}

// Allocate returns a block of the given size, aligned to 64 bytes.
func (m *Memory) Allocate(octets int) ([]byte, error) { return virtual.Heap(octets) }

// Release does nothing: the garbage collector frees the blocks.
func (m *Memory) Release() error { return nil }
