//go:build !amd64 || purego || race

package fastpath

import (
	"sync/atomic"
	"unsafe"

	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
)

const vectors = false

func parsePlain(base unsafe.Pointer, frames []burst.Frame, port uint64, records []packet.Record) (r Run) {
	return ParsePlainGo(base, frames, port, records)
}

func markBurst(base unsafe.Pointer, frames []burst.Frame, records []packet.Record, these uint64) (marked uint64) {
	return MarkBurstGo(base, frames, records, these)
}

// Store64 is the assembly's specification.
func Store64(word *atomic.Int64, value int64) { word.Store(value) }

// Prefetch is the assembly's specification: it has no effect but on time.
func Prefetch(unsafe.Pointer) {}
