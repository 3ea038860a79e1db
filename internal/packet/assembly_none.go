//go:build !amd64 || purego || race

package packet

import (
	"unsafe"

	"github.com/cnpgate/cnpgate/internal/burst"
)

const vectors, folds = false, false

func parsePlain(base unsafe.Pointer, frames []burst.Frame, port uint64, records []Record) (r Run) {
	return parsePlainGo(base, frames, port, records)
}

func markBurst(base unsafe.Pointer, frames []burst.Frame, records []Record, these uint64) (marked uint64) {
	return markBurstGo(base, frames, records, these)
}

func putFoldedCRC(b *byte, n int) { putSeededCRC(unsafe.Slice(b, n+ICRCLen)) }
